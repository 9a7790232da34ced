"""The null of few clusters: all rows of a cluster are surprised together, see `forms.comonotone`.

Signs of clusters are right where many clusters count. Where few do, by the predictions, a p-value is
the larger of that by signs and that of comonotone labels. That is no theorem: of all dependence inside
clusters, comonotone labels have the largest variance and the largest mean excesses, not every tail.
What holds for any dependence is the superquantile of a sum: with S at most S⁺ in the convex order,
P(S ≥ t) ≤ sup {a: the mean of the largest share a of S⁺ is at least t}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments
from caltest._parallel import Workers
from caltest._tiles import blocks
from caltest.clusters import Clusters
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import (
    FEWEST_CLUSTERS,
    Atoms,
    Combined,
    Comonotone,
    Form,
    HasSigns,
    LinearSum,
    effective_clusters,
)
from caltest.lenses import ALL
from caltest.nulls.base import Answer, Guarantee, Null, Question, ranked
from caltest.nulls.monte_carlo import parts_of
from caltest.pvalues import (
    Alternative,
    StepDown,
    combine_sides,
    evidence_of_draws,
    interval,
)
from caltest.resampling import Column, columns_of
from caltest.sampling import DRAWS, child_seed, generator

Array: TypeAlias = NDArray[np.float64]

_MANY = 80.0  # effective clusters from where on the farthest tails of signs are right, too
_FAR = 0.01  # a smaller p-value by signs of fewer clusters is confirmed
_SEED = 3  # key of the draws
_TIED = 1e-9  # evidence of one value, computed twice
_FINE = 40.0  # steps of the grid in a standard deviation, times the root of the number of clusters
_LONGEST = 2**23  # points of the grid
_ROUNDING = 1e-11  # of probabilities that were convolved


# ------------------------------------------------------------------ draws


class Trial(NamedTuple):
    """Rows with their observed labels, and how labels are drawn in place of these."""

    rows: Rows
    labels: NDArray[np.intp]
    n_resamples: int
    seed: int
    workers: Workers

    @classmethod
    def of(cls, question: Question) -> Trial:
        """Take a test as it is asked."""
        rows = replace(question.rows, clusters=question.clusters)
        return cls(rows, question.labels, question.n_resamples, question.seed, question.workers)


class _Carried(NamedTuple):
    """A column, and the clusters of its rows."""

    form: HasSigns
    places: NDArray[np.intp]  # of its clusters among all
    clusters: Clusters
    observed: NDArray[np.intp]  # its labels, (1, n)

    @classmethod
    def all_of(cls, columns: Sequence[Column], trial: Trial) -> list[_Carried]:
        """Take columns of which all forms are `HasSigns`."""
        codes, weights = cast("NDArray[np.intp]", trial.rows.clusters), trial.rows.weights
        found = []
        for column in columns:
            rows = ALL if column.view is None or column.view.places is None else column.view.places
            clusters = Clusters.of(codes[rows], weights[rows])
            observed = column.outcomes(trial.labels[None])
            found.append(cls(cast("HasSigns", column.form), np.unique(codes[rows]), clusters, observed))
        return found


def _table(columns: Sequence[_Carried], trial: Trial) -> Array:
    """Return (1 + B, H) values, of the observed labels and of comonotone ones; draws are shared."""
    first = np.column_stack([each.form.apart(each.observed, each.clusters) for each in columns])
    drawn = [Comonotone.of(each.form) for each in columns]
    draw = partial(_drawn, tuple(columns), drawn, child_seed(trial.seed, _SEED))
    tasks = [(part.start, part.stop) for part in blocks(trial.n_resamples, DRAWS)]
    return np.concatenate([first, *trial.workers.map(draw, tasks, "comonotone labels")])


def _drawn(
    columns: Sequence[_Carried], drawn: Sequence[Comonotone], seed: int, start: int, stop: int
) -> Array:
    count = 1 + max(int(each.places[-1]) for each in columns)
    stream = generator(seed, start // DRAWS)
    numbers, found = stream.random((count, DRAWS)).T[: stop - start], []
    for (form, places, clusters, _), labels in zip(columns, drawn, strict=True):
        quantiles = numbers[:, places[clusters.codes]]
        found.append(form.apart(labels.labels(quantiles), clusters))
    return np.column_stack(found)


# ------------------------------------------------------------------ signs, and what confirms them


class Confirmation(NamedTuple):
    """How many clusters count in H columns of signs, and comonotone draws of those where few do."""

    effective: Array  #: Effective clusters, (H,).
    places: NDArray[np.intp]  #: The columns with draws, (A,).
    values: Array  #: (1 + B, A), those of the observed labels first.
    resolutions: Array  #: How far two evaluations of a value may differ, (A,).

    @classmethod
    def of(
        cls,
        trial: Trial,
        names: Sequence[str],
        sides: Sequence[Alternative],
        columns: Sequence[Column],
        by_signs: Array,
    ) -> Confirmation:
        """Draw for columns of which few clusters count, or not many if signs reject clearly.

        ``by_signs`` are values (1 + B, H) of the columns, the observed ones first.
        """
        carried = _Carried.all_of(columns, trial)
        pairs = zip(names, carried, strict=True)
        effective = np.array(
            [effective_clusters(name, c.form, c.clusters, c.observed[0]) for name, c in pairs]
        )
        resolutions = np.array([each.form.resolution for each in carried], dtype=np.float64)
        by_column = zip(by_signs.T, sides, resolutions, strict=True)
        clear = [ranked(x[1:], float(x[0]), *each).pvalue < _FAR for x, *each in by_column]
        places = np.flatnonzero(
            (effective < FEWEST_CLUSTERS) | ((effective < _MANY) & np.array(clear, bool))
        )
        if not len(places):
            return cls(effective, places, np.empty((1, 0)), np.empty(0))
        values = _table([carried[h] for h in places.tolist()], trial)
        return cls(effective, places, values, resolutions[places])

    def beside(self, other: Confirmation) -> Confirmation:
        """Return that of more columns, drawn with the same numbers."""
        tables = [each.values for each in (self, other) if len(each.places)]
        return Confirmation(
            np.concatenate([self.effective, other.effective]),
            np.concatenate([self.places, other.places + len(self.effective)]),
            np.hstack(tables) if tables else self.values,
            np.concatenate([self.resolutions, other.resolutions]),
        )

    @property
    def few(self) -> NDArray[np.bool_]:
        """Where few clusters count, (H,)."""
        return self.effective < FEWEST_CLUSTERS

    def larger(self, by_signs: Iterable[Answer], sides: Sequence[Alternative]) -> list[Answer]:
        """Return the answers of columns, each alone: those with the larger p-value of the two."""
        found = list(by_signs)
        for h, values, resolution in zip(self.places, self.values.T, self.resolutions, strict=True):
            other = ranked(values[1:], float(values[0]), sides[h], float(resolution))
            if not self.few[h] and other.pvalue > _FAR:
                other = replace(other, pvalue=_FAR, pvalue_interval=(_FAR, _FAR))
            found[h] = max(found[h], other, key=lambda each: each.pvalue)
        return found

    def together(self, evidence: Array, sides: Sequence[Alternative], tied: float = 0.0) -> Array:
        """Return adjusted p-values, (H,), by step-down maxima of the evidence by signs, (1 + B, H).

        Columns of few clusters are a family of their own; the level is shared in proportion to the
        number of columns. Where columns were drawn anew, the larger adjusted p-value counts.
        """
        found = np.ones(len(sides))
        for family in (~self.few, self.few):
            if not family.any():
                continue
            found[family] = _step_down(evidence[:, family], tied)
            again = family[self.places]
            if again.any():
                places = self.places[again]
                those = [sides[h] for h in places.tolist()]
                other = evidence_of_draws(self.values[:, again], those, self.resolutions[again])
                other[np.isnan(other)] = 0.0
                found[places] = np.maximum(found[places], _step_down(other, tied))
            found[family] = np.minimum(found[family] * (len(sides) / family.sum()), 1.0)
        return found


def _step_down(evidence: Array, tied: float) -> Array:
    test = StepDown.of(evidence[0] - tied)
    return test.pvalues(test.count(evidence[1:]), len(evidence) - 1)


def rank(
    question: Question,
    values: Array,
    resolutions: Sequence[float],
    confirmed: Confirmation | None = None,
) -> Answer:
    """Rank a statistic by the values (1 + B, H) of its columns, the observed ones first."""
    form, sides = question.form, names_and_sides(question)[1]
    if not isinstance(form, Combined):
        found = ranked(values[1:, 0], float(values[0, 0]), sides[0], resolutions[0])
        return found if confirmed is None else confirmed.larger([found], sides)[0]
    evidence = evidence_of_draws(values, sides, resolutions)
    whole = form.combine(evidence)
    found = ranked(whole[1:], float(whole[0]), question.alternative, _TIED)
    parts = parts_of(form.names, values[0], evidence, _TIED)
    if confirmed is None or not len(confirmed.places):
        return replace(found, parts=parts)
    alone = [each.pvalue for each in confirmed.larger([Answer(part.pvalue) for part in parts], sides)]
    together = np.maximum(confirmed.together(evidence, sides, _TIED), alone)
    both = zip(parts, alone, together.tolist(), strict=True)
    parts = tuple(replace(part, pvalue=own, adjusted=joint) for part, own, joint in both)
    p, best = float(together.min()), int(together.argmin())
    share = len(sides) / int((confirmed.few == confirmed.few[best]).sum())  # of the level
    reached = max(round(p / share * len(values)) - 1, 0)
    low, high = (min(share * end, 1.0) for end in interval(reached, len(values) - 1, "greater"))
    return replace(found, parts=parts, pvalue=p, pvalue_interval=(low, high))


def names_and_sides(question: Question) -> tuple[Sequence[str], Sequence[Alternative]]:
    """Return the names of a statistic's columns, and which of their values count."""
    form = question.form
    if isinstance(form, Combined):
        return form.names, [part.alternative for part in form.components]
    return (question.statistic.name,), [question.alternative]


# ------------------------------------------------------------------ the null


@arguments()
@dataclass(frozen=True)
class ComonotoneLabels(Null):
    """p-value for few clusters: labels for which all rows of a cluster are surprised together.

    One uniform number is drawn a cluster, and every row takes the label at that quantile of its own
    prediction, in the order of the statistic's scores. It is the strongest dependence that the
    predictions allow, so that the null is cautious where rows depend less on each other: if they are
    independent, little is found. :class:`ClusterSigns` looks at it by itself where few clusters count.

    Parameters
    ----------
    guaranteed
        Compute a p-value that is valid for every number of clusters and any dependence inside
        them, from the exact law of the comonotone sum: for statistics that are sums over rows,
        such as "citl", "brier" or "ecd". It is larger. Default False: ranks among draws, without a
        guarantee.

    References
    ----------
    Rockafellar and Uryasev, "Conditional value-at-risk for general loss distributions", Journal of
    Banking & Finance 26 (2002); Denuit, Dhaene, Goovaerts, Kaas, Vyncke, "The concept of comonotonicity
    in actuarial science and finance: theory", Insurance: Mathematics and Economics 31 (2002).

    Examples
    --------
    Three wards, and one of them had an outbreak:

    >>> import numpy as np
    >>> import caltest
    >>> ward = np.repeat([0, 1, 2], 100)
    >>> risk, ill = np.full(300, 0.01), (ward == 1).astype(int)
    >>> null = caltest.nulls.ComonotoneLabels(guaranteed=True)
    >>> found = caltest.test(risk, ill, "citl", null=null, clusters=ward)
    >>> round(found.pvalue, 3), found.guarantee
    (0.061, 'bound')
    """

    guaranteed: bool = False

    name: ClassVar[str] = "comonotone"
    guarantee: ClassVar[Guarantee] = "approximate"
    assumption: ClassVar[str] = "clusters are independent of each other"
    requires: ClassVar[str] = (
        "sums, paths or pairs of residuals (every statistic but 'cox', 'mcb_brier', 'mcb_log' and "
        "functions of your own)"
    )
    of_clusters: ClassVar[bool] = True

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit forms that know their values for signs."""
        parts = [part.form for part in form.components] if isinstance(form, Combined) else [form]
        return all(isinstance(part, HasSigns) for part in parts)

    def guarantee_for(self, form: Form) -> Guarantee:
        """Say "bound" where it is guaranteed."""
        return "bound" if self.guaranteed else self.guarantee

    def label_vectors(self, n_resamples: int) -> int:
        """Return the number of draws."""
        return 1 if self.guaranteed else n_resamples

    def answer(self, question: Question) -> Answer:
        """Return the p-value."""
        if self.guaranteed:
            return self._guaranteed(question)
        trial, columns = Trial.of(question), columns_of(question.form)
        values = _table(_Carried.all_of(columns, trial), trial)
        return rank(question, values, [column.form.resolution for column in columns])

    def _guaranteed(self, question: Question) -> Answer:
        form, codes = question.form, question.clusters
        if not isinstance(form, LinearSum):
            raise InputError(
                f"guaranteed=True is for sums over rows, and {question.statistic.name!r} is none; "
                "leave it out, or take 'citl', 'brier' or 'ecd'."
            )
        scores = form.row_scores
        atoms = Atoms.of(scores, form.probs, codes, int(codes.max()) + 1)
        entries = scores[np.arange(len(scores)), question.labels]
        excess = float((entries - np.einsum("ik,ik->i", form.probs, scores)).sum())
        greater, less = (superquantile(atoms, excess, sign) for sign in (1.0, -1.0))
        return Answer(pvalue=min(combine_sides(greater, less, question.alternative), 1.0))


def superquantile(atoms: Atoms, excess: float, sign: float) -> float:
    """Bound P(sign · Σ_g S_g ≥ sign · excess) for all sums at most these in the convex order.

    The law of the sum is convolved on a grid: an atom between two points is split between these so that
    its mean stays, which makes the law larger in the convex order, never smaller.
    """
    from scipy.signal import convolve  # slow to import

    values, target = sign * atoms.values, sign * excess
    first = np.flatnonzero(np.diff(atoms.clusters, prepend=-1))
    deviation = float(np.sqrt(atoms.chances @ values**2))
    if deviation == 0.0:
        return 1.0 if target <= 0.0 else _ROUNDING
    least = np.minimum.reduceat(values, first)
    width = float((np.maximum.reduceat(values, first) - least).sum())
    step = max(deviation / (_FINE * len(first) ** 0.5), width / _LONGEST)
    target -= 1e-9 * (deviation + abs(target))  # ties count
    laws = []
    for cut, start in zip(np.split(np.arange(len(values)), first[1:]), least, strict=True):
        place = (values[cut] - start) / step
        below = np.floor(place).astype(np.intp)
        masses = np.zeros(int(below.max()) + 2)
        np.add.at(masses, below, atoms.chances[cut] * (1.0 - (place - below)))
        np.add.at(masses, below + 1, atoms.chances[cut] * (place - below))
        laws.append(masses)
    while len(laws) > 1:  # neighbours first, so that what is convolved is of one length, about
        merged = [convolve(*pair).clip(min=0.0) for pair in zip(laws[::2], laws[1::2], strict=False)]
        laws = merged if len(laws) % 2 == 0 else [*merged, laws[-1]]
    masses = laws[0][::-1]
    points = float(least.sum()) + step * np.arange(len(masses))[::-1]
    gained = np.cumsum(masses * (points - target))  # of the largest share, from its mean to the target
    if gained[-1] >= 0.0:
        return 1.0
    last = int(np.flatnonzero(gained >= 0.0)[-1]) if (gained >= 0.0).any() else -1
    if last < 0:
        return _ROUNDING
    share = float(masses[: last + 1].sum()) + float(gained[last]) / (target - float(points[last + 1]))
    return min(share + _ROUNDING, 1.0)
