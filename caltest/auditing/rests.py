"""What a group leaves of the groups that contain it, and what the checks of means would have found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from caltest.auditing.draws import Answers
from caltest.auditing.plan import MEAN, Hypothesis, Look, Plan
from caltest.auditing.sizes import Sizes
from caltest.auditing.views import Rest, Sensitivity, View
from caltest.forms.base import CERTAIN
from caltest.pvalues import reaching

Array: TypeAlias = NDArray[np.float64]

_LEAST_LEFT = 1e-6  # of a parent's variance, for a difference to be more than rounding
_POWER = 0.8
_MOST_LAW = 20_000  # predictions by which the power of a mean is computed
_HALVINGS = 40


class Subtraction(NamedTuple):
    """A group, the group with one condition less, their mean checks, and what is left of both."""

    look: Look
    parent: Look
    own: int  # the places of the hypotheses
    of_parent: int
    variance: float  # of the sum of the group's labels
    left: float  # that of the rest
    rows: int  # of the rest

    @property
    def remaining(self) -> Look:
        """The rows of the parent that are not in the group, which are found anew and not held."""
        of_whole = np.arange(self.parent.n_rows) if self.parent.places is None else self.parent.places
        assert self.look.places is not None
        places = np.setdiff1d(of_whole, self.look.places, assume_unique=True)
        return replace(self.parent, places=places, n_rows=self.rows)

    def rest(
        self,
        views: Mapping[Look, View],
        labels: NDArray[np.intp],
        sizes: Sizes,
        adjusted: float,
    ) -> Rest:
        """Describe the rest, of this adjusted p-value."""
        part, whole = views[self.look], views[self.parent]

        def left(of_whole: float | None, of_part: float | None) -> float:
            found = ((of_whole or 0.0) * whole.rows - (of_part or 0.0) * part.rows) / self.rows
            return min(max(found, 0.0), 1.0)

        assert part.group is not None
        if sizes.design.plain:
            predicted = left(whole.predicted, part.predicted)
            observed = left(whole.observed, part.observed)
            low, high = sizes.family.interval(predicted, self.rows, round(observed * self.rows))
        else:
            look = self.remaining
            seen = look.sample(labels)
            predicted, observed, low, high = sizes.design.of_look(look).interval(
                seen.rows.probs[:, 1], seen.labels, sizes.family.of_view
            )
        sized = (self.rows, predicted, observed, low, high)
        return Rest(part.lens, part.group, whole.group, *sized, adjusted, adjusted <= sizes.level)


def subtractions(hypotheses: Sequence[Hypothesis]) -> list[Subtraction]:
    """List what every group leaves of the groups with a condition less, where means are checked."""
    places = {look: h for h, (look, statistic) in enumerate(hypotheses) if statistic == MEAN}
    by_key = {(look.scope.label, look.group): look for look in places}
    variances = {}
    for look in places:
        seen = look.scope.rows(look.places)
        variances[look] = float(seen.weights**2 @ (seen.probs[:, 0] * seen.probs[:, 1]))
    found = []
    for look, own in places.items():
        for parent in () if look.group is None else look.group.parents():
            whole = by_key.get((look.scope.label, parent))
            if whole is None or whole.n_rows <= look.n_rows:
                continue
            left = variances[whole] - variances[look]
            if left > _LEAST_LEFT * variances[whole] and variances[look] > CERTAIN:
                rows = whole.n_rows - look.n_rows
                found.append(Subtraction(look, whole, own, places[whole], variances[look], left, rows))
    return found


def with_rests(values: Array, resolutions: Array, rests: Sequence[Subtraction]) -> tuple[Array, Array]:
    """Add the mean checks of what groups leave: a sum over a parent less that over the group."""
    more = np.empty((len(values), len(rests)))
    rounding = np.empty(len(rests))
    for k, each in enumerate(rests):
        part, whole = (each.variance / each.left) ** 0.5, (each.variance / each.left + 1.0) ** 0.5
        more[:, k] = values[:, each.of_parent] * whole - values[:, each.own] * part
        rounding[k] = resolutions[each.of_parent] * whole + resolutions[each.own] * part
    return np.hstack([values, more]), np.concatenate([resolutions, rounding])


def sensitivity(plan: Plan, found: Answers, values: Array | None, level: float) -> Sensitivity | None:
    """Return the smallest shift of one probability that the check of its mean would have found.

    By the normal law of the number of events if every probability is too high, or too low, by as much,
    against what the check has to reach in the joint test.
    """
    h = next((h for h, (_, each) in enumerate(plan.hypotheses) if each == MEAN), None)
    if h is None or values is None or found.threshold is None:
        return None
    look = plan.hypotheses[h][0]
    low, high = reaching(values[:, h], found.threshold, MEAN.alternatives[0])
    p, n = np.sort(look.scores()), look.n_rows
    if n > _MOST_LAW:
        p = p[((np.arange(_MOST_LAW) + 0.5) * n / _MOST_LAW).astype(np.intp)]
    scale = math.sqrt(n * float((p * (1.0 - p)).mean()))
    # No adjusted p-value is below that of the check alone, of which both sides count.
    draws = np.sort(values[1:, h])
    beyond = math.floor(level * (len(draws) + 1) / 2.0 * (1.0 + 1e-12)) - 1  # draws that may reach it
    if scale == 0.0 or beyond < 0:
        return Sensitivity(plan.looks.index(look), None, _POWER)
    low, high = min(low, draws[beyond] - 0.5 / scale), max(high, draws[-1 - beyond] + 0.5 / scale)
    if low * scale < -n * float(p.mean()):  # not even without any event
        low = -math.inf

    def shifted(by: float) -> tuple[float, float]:
        """Return the mean shift of the probabilities, and how often the check finds it."""
        q = np.clip(p + by, 0.0, 1.0)
        mean, spread = float((q - p).mean()), math.sqrt(n * float((q * (1.0 - q)).mean()))
        reached = n * mean - high * scale if by > 0.0 else low * scale - n * mean
        return abs(mean), float(ndtr(reached / max(spread, 1e-12)))

    errors = []
    for sign in (1.0, -1.0):
        least, most = 0.0, 1.0
        if shifted(sign * most)[1] < _POWER:
            return Sensitivity(plan.looks.index(look), None, _POWER)
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (least, middle) if shifted(sign * middle)[1] >= _POWER else (middle, most)
        errors.append(shifted(sign * most)[0])
    return Sensitivity(plan.looks.index(look), max(errors), _POWER)
