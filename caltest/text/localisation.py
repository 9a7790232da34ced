"""Places in plain language."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caltest._visible import shown
from caltest.localisation.search import Witness
from caltest.text.numbers import page, paragraph, percent, percents, short, table

_CLASSES_TOLD = 4
_CLASSES_OF_CENTRE = 3
_WORTH_NAMING = 0.05  # of a centre's probabilities


def summary(found: Witness) -> str:
    """Return what was searched, the places that stood out, and what that promises."""
    view = f", seen through the lens {shown(found.lens)}" if found.lens else ""
    points = found.n_places // len(found.kernels)
    times = "" if len(found.kernels) == 1 else f", each with {len(found.kernels)} kernels"
    compared = found.n_places * len(found.tested)
    rows = [
        ("searched", f"{found.n_samples:,} predictions of {found.n_classes} classes{view}"),
        ("places", f"{points:,} point{'' if points == 1 else 's'}{times}"),
        ("with", _kernels(found)),
        (
            "p-values",
            f"exact, adjusted for {compared:,} comparisons ({found.n_resamples:,} label draws)",
        ),
    ]
    lines = ["Where the probabilities err", *table(rows), ""]
    for text in [place_told(found, place) for place in found.told]:
        lines += [*paragraph(text), ""]
    lines += paragraph(_promise(found) if found.told else _nothing(found, compared))
    for warning in found.warnings:
        lines += ["", *paragraph(f"Note: {warning}")]
    return page(lines)


def _kernels(found: Witness) -> str:
    """Name the options of the kernels, each once where they agree."""
    keys = dict.fromkeys(key for each in found.kernels for key in each)
    if len(found.kernels) > 1:
        keys.pop("bandwidth_rule", None)  # the first one's, if the others are shares of it
    texts = []
    for key in keys:
        values = [short(each.get(key, "–")) for each in found.kernels]
        texts.append(f"{key} {values[0] if len(set(values)) == 1 else ' / '.join(values)}")
    return ", ".join(texts)


def place_told(found: Witness, place: int) -> str:
    """Return the sentence of one place."""
    claims = found.claims(place)
    told, rest = claims[:_CLASSES_TOLD], len(claims) - _CLASSES_TOLD
    texts = [_claim(found, place, c, first=number == 0) for number, c in enumerate(told)]
    if rest > 0:
        texts.append(f"and {rest} more class{'' if rest == 1 else 'es'}")
    reach = extent(float(found.weights[place]), found.n_samples)
    reach = f"the weight of {reach}" if reach.endswith("rows") else f"over {reach}"
    return (
        f"Near predictions like {row_text(found, place)} ({centre_text(found, place)}), "
        f"{reach}: {'; '.join(texts)}; "
        f"{_pvalue(found.pvalues[place, list(told)].tolist())}."
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


def _claim(found: Witness, place: int, c: int, *, first: bool) -> str:
    said, true = percents(float(found.stated[place, c]), float(found.shares[place, c]))
    verb = "was said" if first else "said"
    return f"{shown(found.names[c])} {verb} {said}, came true {true}"


def extent(weight: float, n_samples: int) -> str:
    """Say over how many rows a place reaches; a place of most rows is hardly one.

    >>> extent(312.0, 3000), extent(1700.0, 3000), extent(2990.0, 3000)
    ('about 310 rows', 'more than half of the predictions', 'nearly all predictions')
    """
    if weight < 0.5 * n_samples:
        return f"about {rounded(weight)} rows"
    return (
        "nearly all predictions" if weight >= 0.9 * n_samples else "more than half of the predictions"
    )


def rounded(number: float) -> str:
    """Write an effective number of rows in two digits or so.

    >>> rounded(1.4), rounded(12.3), rounded(312.0), rounded(8483.0)
    ('1', '12', '310', '8,500')
    """
    digits = max(0, len(f"{number:.0f}") - 2)
    return f"{round(number / 10**digits) * 10**digits:,}"


def _pvalue(pvalues: Sequence[float]) -> str:
    low, high = min(pvalues), max(pvalues)
    if low == high:
        return f"adjusted p = {low:.2g}" + (" for each" if len(pvalues) > 1 else "")
    return f"adjusted p from {low:.2g} to {high:.2g}"


def _promise(found: Witness) -> str:
    return (
        f"If the model is calibrated, the chance of any such claim is at most {found.level:.3g}. "
        "A claim is about the rows near a place taken together, those of small weight included, not "
        "about its one row; the differences are those that stood out, so on average the truth is "
        "smaller. Rows are taken to be independent, and labels not used to fit the model."
    )


def _nothing(found: Witness, compared: int) -> str:
    return (
        f"No place stands out: of {compared:,} comparisons none is significant at level "
        f"{found.level:.3g} (smallest adjusted p = {found.pvalue:.3g}). That is no proof of "
        "calibration: an error may be too small for this many rows, too local for these places or too "
        "spread out for these kernels."
    )
