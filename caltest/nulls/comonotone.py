"""What confirms signs where few clusters count: all rows of a cluster are surprised together.

Signs of clusters are right where many clusters count. Where few do, by the predictions, a p-value is
the larger of that by signs and that of comonotone labels, see :mod:`caltest.forms.comonotone`. That is
no theorem: of all dependence inside clusters, comonotone labels have the largest variance and the
largest mean excesses, not every tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import Workers
from caltest._tiles import blocks
from caltest.clusters import Clusters
from caltest.data import Rows
from caltest.forms import FEWEST_CLUSTERS, Combined, Comonotone, HasSigns, effective_clusters
from caltest.lenses import ALL
from caltest.nulls.base import Answer, Array, Question, ranked
from caltest.nulls.monte_carlo import of_parts
from caltest.pvalues import Alternative, evidence_of_draws, interval_of_adjusted, step_down
from caltest.resampling import Column
from caltest.sampling import DRAWS, child_seed, generator

_MANY = 80.0  # effective clusters from where on the farthest tails of signs are right, too
_FAR = 0.01  # a smaller p-value by signs of fewer clusters is confirmed
_SEED = 3  # key of the draws
_TIED = 1e-9  # evidence of one value, computed twice


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


def _carried(columns: Sequence[Column], trial: Trial) -> list[_Carried]:
    codes, weights = cast("NDArray[np.intp]", trial.rows.clusters), trial.rows.weights
    found = []
    for column in columns:
        rows = ALL if column.view is None or column.view.places is None else column.view.places
        clusters, own = Clusters.of(codes[rows], weights[rows]), np.unique(codes[rows])
        observed = column.outcomes(trial.labels[None])
        found.append(_Carried(cast("HasSigns", column.form), own, clusters, observed))
    return found


def table_of_labels(columns: Sequence[Column], trial: Trial) -> Array:
    """Return (1 + B, H) values, of the observed labels and of comonotone ones; draws are shared.

    All forms are `HasSigns`.
    """
    carried = _carried(columns, trial)
    first = np.column_stack([each.form.apart(each.observed, each.clusters) for each in carried])
    drawn = [Comonotone.of(each.form) for each in carried]
    draw = partial(_drawn, carried, drawn, child_seed(trial.seed, _SEED))
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
        carried = _carried(columns, trial)
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
        values = table_of_labels([columns[h] for h in places.tolist()], trial)
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
            found[family] = step_down(evidence[0, family] - tied, evidence[1:, family])
            again = family[self.places]
            if again.any():
                places = self.places[again]
                those = [sides[h] for h in places.tolist()]
                other = evidence_of_draws(self.values[:, again], those, self.resolutions[again])
                other[np.isnan(other)] = 0.0
                found[places] = np.maximum(found[places], step_down(other[0] - tied, other[1:]))
            found[family] = np.minimum(found[family] * (len(sides) / family.sum()), 1.0)
        return found


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
    found = of_parts(form, values[0], evidence, _TIED)
    if confirmed is None or not len(confirmed.places):
        return found
    parts = found.parts
    alone = [each.pvalue for each in confirmed.larger([Answer(part.pvalue) for part in parts], sides)]
    together = np.maximum(confirmed.together(evidence, sides, _TIED), alone)
    both = zip(parts, alone, together.tolist(), strict=True)
    parts = tuple(replace(part, pvalue=own, adjusted=joint) for part, own, joint in both)
    p, best = float(together.min()), int(together.argmin())
    share = len(sides) / int((confirmed.few == confirmed.few[best]).sum())  # of the level
    ends = interval_of_adjusted(p, len(values) - 1, share)
    return replace(found, parts=parts, pvalue=p, pvalue_interval=ends)


def names_and_sides(question: Question) -> tuple[Sequence[str], Sequence[Alternative]]:
    """Return the names of a statistic's columns, and which of their values count."""
    form = question.form
    if isinstance(form, Combined):
        return form.names, [part.alternative for part in form.components]
    return (question.statistic.name,), [question.alternative]
