"""Places in plain language."""

from __future__ import annotations

import numpy as np

from caltest._visible import shown
from caltest.localisation.search import Witness
from caltest.text.numbers import counted, page, percent, percents, short, through

_CLASSES_NAMED = 4
_CLASSES_OF_CENTRE = 3
_WORTH_NAMING = 0.05  # of a centre's probabilities


def summary(found: Witness) -> str:
    """Return what was searched, the places that stood out, and what that promises."""
    kernels = found.kernels
    points = counted(found.n_places // len(kernels), "point")
    times = "" if len(kernels) == 1 else f", each with {len(kernels)} kernels"
    compared = found.n_places * len(found.tested)
    keys = dict.fromkeys(key for each in kernels for key in each)
    if len(kernels) > 1:
        keys.pop("bandwidth_rule", None)  # the first one's, if the others are shares of it
    options = []
    for key in keys:
        values = [short(each.get(key, "–")) for each in kernels]
        options.append(f"{key} {values[0] if len(set(values)) == 1 else ' / '.join(values)}")
    classes = through(found.lens) or f" of {found.n_classes} classes"
    rows = [
        ("data", f"{found.n_samples:,} predictions{classes}"),
        ("places", f"{points}{times}"),
        ("options", ", ".join(options)),
        (
            "p-values",
            f"exact, adjusted for {compared:,} comparisons ({found.n_resamples:,} label draws)",
        ),
    ]
    meaning = (
        f"If the model is calibrated, the chance of any such finding is at most {found.level:.3g}. "
        "A finding is about all rows near a place, weighted by their nearness, not about the row that "
        "names it. Because these are the places that stood out, the true differences are smaller on "
        "average. This assumes independent rows and labels that were not used to fit the model."
    )
    if not found.identified:
        meaning = (
            f"No place stands out: of {compared:,} comparisons none is significant at level "
            f"{found.level:.3g} (smallest adjusted p = {found.pvalue:.3g}). That does not prove "
            "calibration: an error may be too small for this many rows, too local for these places or "
            "too spread out for these kernels."
        )
    places = [_place(found, place) for place in found.identified]
    p = f"smallest adjusted p = {found.pvalue:.3g}"
    near = "No place stands out"
    if found.identified:
        near = (
            f"Near {counted(len(found.identified), 'place')} classes are predicted too high or too low"
        )
    brief = f"{counted(len(found.identified), 'place')}, {p}, n = {found.n_samples:,}"
    title, headline = "Where the probabilities are wrong", f"{near} ({p})."
    return page(title, rows, *places, meaning, notes=found.warnings, headline=headline, brief=brief)


def _place(found: Witness, place: int) -> str:
    claims = found.claims(place)
    named, rest = list(claims[:_CLASSES_NAMED]), len(claims) - _CLASSES_NAMED
    texts: list[str] = []
    for c in named:
        ends = percents(float(found.predicted[place, c]), float(found.observed[place, c]))
        texts.append(f"{shown(found.names[c])} predicted {ends[0]}, observed {ends[1]}")
    if rest > 0:
        texts.append(f"and {rest} more class{'' if rest == 1 else 'es'}")
    reach = extent(float(found.weights[place]), found.n_samples)
    reach = f"effectively {reach}" if reach.endswith("rows") else f"over {reach}"
    pvalues = found.pvalues[place, named].tolist()
    low, high = min(pvalues), max(pvalues)
    adjusted = f"adjusted p from {low:.2g} to {high:.2g}"
    if low == high:
        adjusted = f"adjusted p = {low:.2g}" + (" for each" if len(pvalues) > 1 else "")
    return (
        f"Near predictions like {row_text(found, place)} ({centre_text(found, place)}), "
        f"{reach}: {'; '.join(texts)}; {adjusted}."
    )


def row_text(found: Witness, place: int) -> str:
    """Return which row a place is, or which of the points given."""
    number = int(found.rows[place])
    points = found.n_places // len(found.kernels)
    return f"row {number}" if number >= 0 else f"point {place % points}"


def centre_text(found: Witness, place: int, most: int = _CLASSES_OF_CENTRE) -> str:
    """Return the most probable classes of a place's centre."""
    centre = found.centres[place]
    order = [int(c) for c in np.argsort(-centre, kind="stable")[:most]]
    likely = [c for number, c in enumerate(order) if number == 0 or centre[c] >= _WORTH_NAMING]
    return ", ".join(f"{shown(found.names[c])} {percent(float(centre[c]), 0)}" for c in likely)


def extent(weight: float, n_samples: int) -> str:
    """Say over how many rows, to two digits or so, a place reaches; one of most rows is hardly one."""
    if weight >= 0.5 * n_samples:
        most = "nearly all" if weight >= 0.9 * n_samples else "more than half of the"
        return f"{most} predictions"
    step = 10 ** max(0, len(f"{weight:.0f}") - 2)
    return f"about {counted(round(weight / step) * step, 'row')}"
