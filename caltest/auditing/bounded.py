"""Lower bounds of the error, in units of probability, of the views where that says most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import Workers
from caltest._seeds import child_seed
from caltest.auditing.looks import CANONICAL, Look, Source
from caltest.auditing.seeds import key_of
from caltest.bounds.lower import BoundsPlan, draws_needed
from caltest.tolerance import event

MOST_GROUPS = 30
MOST_CLASSES = 10
_DRAWS = 499
_MOST_WORK = 1e9  # rows times draws: a minute or two at worst on one core
_MOST_FOR_ONE = 1e10
_ROWS_OF_A_DRAW = 5_000  # what a draw costs besides its rows
_TOP_LABEL = "top_label"


@dataclass(frozen=True)
class Bounded:
    """What is proved of one look: it claims at least this much too much, or too little, somewhere."""

    over: float
    under: float


#: What is proved of a look in which no check found an error.
NOTHING = Bounded(0.0, 0.0)


def family(looks: Iterable[Look], alpha: float) -> tuple[Look, ...]:
    """Return the looks whose error is bounded, chosen from the predictions alone.

    The top label on all rows (or what one probability the audit looks at on all rows), the classes
    with the most expected events on all rows, and the top label in the largest groups: as many of
    them, in this order, as can be bounded in minutes.
    """
    single = [look for look in looks if look.event is not None]
    overall = [look for look in single if look.group is None]
    first = [look for look in overall if look.scope.column is None and look.scope.label != CANONICAL]
    first += [look for look in overall if look.scope.label == CANONICAL]
    classes = [look for look in overall if look.scope.column is not None]
    classes.sort(key=lambda look: (-look.expected, look.key))
    named = first[0].scope.label if first else None
    label = _TOP_LABEL if any(look.scope.label == _TOP_LABEL for look in single) else named
    groups = [look for look in single if look.group and look.scope.label == label]
    groups.sort(key=lambda look: (-look.n_rows, look.key))
    wanted = [*first, *groups[:MOST_GROUPS], *classes[:MOST_CLASSES]]
    kept = [*first, *classes[:MOST_CLASSES], *groups[:MOST_GROUPS]]
    while kept and _work(kept, alpha) > (_MOST_WORK if len(kept) > 1 else _MOST_FOR_ONE):
        kept.pop()
    return tuple(look for look in wanted if look in kept)


def _work(looks: Sequence[Look], alpha: float) -> float:
    return _draws(len(looks), alpha) * sum(look.n_rows + _ROWS_OF_A_DRAW for look in looks)


def _draws(count: int, alpha: float) -> int:
    return max(_DRAWS, draws_needed(alpha / (2 * count)))


def bounds(
    source: Source,
    labels: NDArray[np.intp],
    looks: Sequence[Look],
    alpha: float,
    seed: int,
    workers: Workers,
) -> dict[Look, Bounded]:
    """Bound the error of every look, all bounds together with confidence 1 − alpha (Bonferroni).

    The draws of a look are its own: another look changes the level only.
    """
    if not looks:
        return {}
    level, n_draws = alpha / (2 * len(looks)), _draws(len(looks), alpha)
    found = {}
    for look in looks:
        plan = BoundsPlan(
            level=level,
            family=2 * len(looks),
            n_draws=n_draws,
            seed=child_seed(seed, *key_of("bounds", *look.key)),
            workers=workers,
        )
        view = source.sample(look, labels)
        lens = None if look.scope.lens is None else look.scope.label
        each = plan.view(event(lens, view.predictions), view, lens)
        found[look] = Bounded(each.over.bound, each.under.bound)
    return found
