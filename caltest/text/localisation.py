"""Places in plain language."""

from __future__ import annotations

import numpy as np

from caltest._visible import shown
from caltest.localisation import Witness
from caltest.text.numbers import counted, percent, short
from caltest.text.pages import written

_CLASSES_OF_CENTRE = 3
_WORTH_NAMING = 0.05  # of a centre's probabilities


def summary(found: Witness) -> str:
    """Return what was searched, the places that stood out, and what that promises."""
    kernels = found.kernels
    keys = dict.fromkeys(key for each in kernels for key in each)
    if len(kernels) > 1:
        keys.pop("bandwidth_rule", None)  # the first one's, if the others are shares of it
    options = []
    for key in keys:
        values = [short(each.get(key, "–")) for each in kernels]
        options.append(f"{key} {values[0] if len(set(values)) == 1 else ' / '.join(values)}")
    facts = {"row_text": row_text, "centre_text": centre_text, "extent": extent}
    return written("witness", found.warnings, w=found, options=options, **facts)


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
