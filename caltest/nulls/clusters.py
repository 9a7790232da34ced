"""The nulls of rows in clusters, whose rows may depend on each other in any way.

*Signs of clusters*, the default. Under H0 the centred scores of a row have mean 0, and so has their sum
S_g over a cluster, under any dependence within it. T is ranked among its values with S_g replaced by
ε_g S_g, ε_g = ±1 with equal probability, and with the labels held fixed: mean and covariance stay the
same, cluster by cluster, so p-values are right as the number of clusters grows, if none of them is a
large part of the whole. They are exact if the S_g are symmetric.

*Comonotone labels*: all rows of a cluster are surprised together, see :mod:`caltest.forms.signs`.
If few clusters carry a statistic, judged by the predictions, its p-value is the larger of the one by
signs and the one by comonotone labels. This is not a theorem: of all dependence within clusters,
comonotone labels have the largest variance and the largest mean excesses, but not every tail. The
superquantile of a sum holds for any dependence, :meth:`caltest.forms.Atoms.superquantile`.

*One row per cluster*, chosen at random, and the exact null: valid in every sample, but weak. Rows of
different clusters are independent, so one row of each, chosen without regard to the labels, makes an
exact test. Its p-values p_r for several choices depend on each other in an unknown way; twice their
mean is a p-value all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from caltest import pvalues
from caltest._arguments import options, positive_integer
from caltest._sums import Array, Mask, Places, blocks
from caltest.data.containers import listed
from caltest.exceptions import Argument, InputError
from caltest.forms import Combined, Form, HasSigns, LinearSum
from caltest.forms.signs import FEWEST_CLUSTERS, Atoms, Comonotone, effective_clusters
from caltest.nulls.base import Answer, Guarantee, MonteCarlo, Null, Question, Trial, of_parts, ranked
from caltest.pvalues import Alternative
from caltest.resampling import Carried, Column, carried, columns_of, sign_draws, signed_columns, table
from caltest.sampling import DRAWS, SignSampler, child_seed, generator

_MANY = 80.0  # effective clusters above which the farthest tails of signs are right too
_FAR = 0.01  # smaller p-values by signs of fewer clusters are confirmed
_TIED = 1e-9  # tolerance for evidence of one value, computed twice
_CHOICE, _DRAWS, _LABELS = 0, 1, 3  # keys of seeds


class _OfSums(Null):
    """A null of statistics that are sums over clusters."""

    requires = (
        "sums, paths or pairs of residuals (every statistic but 'cox', 'ece_sweep', 'mcb_brier', "
        "'mcb_log', 't_cal' and functions of your own)"
    )
    of_clusters = True

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Accept forms that can be evaluated for signs."""
        parts = [part.form for part in form.components] if isinstance(form, Combined) else [form]
        return all(isinstance(part, HasSigns) for part in parts)


# ------------------------------------------------------------------ signs


@options()
class ClusterSigns(_OfSums):
    """p-value for rows in clusters: give the errors of each whole cluster a random sign.

    Rows of one cluster may depend on each other in any way; clusters must be independent of each
    other. With few clusters all signs are enumerated: 2^G for G clusters, or half of that if
    flipping all signs changes nothing. Means over pairs of rows are taken over pairs from
    different clusters. :class:`MonteCarlo`, which draws labels row by row, would treat rows that
    repeat each other as new evidence.

    The effective number of clusters is computed for each statistic from predictions, weights and
    clusters alone: (Σ E|S|²)² / Σ E|S|⁴, where S is a cluster's sum if all its rows are surprised
    together. Below 20 (rare events in large clusters, for example), the p-value is the larger of the
    one by signs and the one by :class:`ComonotoneLabels`; from 20 to 80 only p-values below 0.01 are
    confirmed in this way, and never raised above 0.01. Components of "omnibus" that few clusters carry
    share the level with the others in proportion to their number.

    Assumption: clusters are independent of each other, and many.

    References
    ----------
    Canay, Romano, Shaikh, "Randomization tests under an approximate symmetry assumption",
    Econometrica 85 (2017); Cameron, Gelbach, Miller, "Bootstrap-based improvements for inference with
    clustered errors", Review of Economics and Statistics 90 (2008).

    Examples
    --------
    Four doctors looked at each of 50 scans, and agreed:

    >>> import numpy as np
    >>> import caltest
    >>> scans = caltest.simulation.tempered(50, (1, 1), temperature=1.0, rng=0)
    >>> probs, labels = np.repeat(scans.probs, 4, axis=0), np.repeat(scans.labels, 4)
    >>> which = np.repeat(np.arange(50), 4)
    >>> caltest.test(probs, labels, "ecd", rng=0).pvalue
    0.004
    >>> caltest.test(probs, labels, "ecd", clusters=which, rng=0).pvalue
    0.114
    """

    name = "cluster_signs"
    guarantee = "asymptotic"

    def answer(self, question: Question) -> Answer:
        """Return the p-value."""
        columns, codes = columns_of(question.form), question.clusters
        signed = signed_columns(columns, question.labels, codes, question.rows.weights)
        confirm = partial(Confirmation.of, question, names_and_sides(question), columns)
        return answer_of_signs(question, signed, int(codes.max()) + 1, confirm)


def answer_of_signs(
    question: Question,
    columns: Sequence[Column],
    n_clusters: int,
    confirm: Callable[[Array], Confirmation],
    rounding: Array | None = None,
) -> Answer:
    """Rank a statistic by its columns, as functions of the signs of so many clusters.

    ``confirm`` takes the values of its columns, with the observed labels first, and returns the
    effective numbers of clusters; ``rounding`` is the largest difference of two evaluations of a
    column's value (default: that of its form).
    """
    draws = sign_draws(columns, n_clusters, question.n_resamples, question.seed)
    values = table(columns, draws, question.workers)
    resolutions = [column.form.resolution for column in columns] if rounding is None else rounding
    confirmed = confirm(values)
    found, notes = rank(question, values, list(resolutions), confirmed), []
    if cast("SignSampler", draws.sampler).every is not None:
        sides_counted = 2 if question.alternative == "two-sided" else 1
        least = min(sides_counted / (1 + draws.count), 1.0)
        why = f"All {1 + draws.count} ways to flip the signs of {n_clusters} clusters were enumerated"
        notes.append(f"{why}: no p-value can be below {least:.3g}.")
        found = replace(found, n_resamples=draws.count, pvalue_interval=(found.pvalue, found.pvalue))
    if confirmed.few.any():
        names, _ = names_and_sides(question)
        few = listed(name for name, weak in zip(names, confirmed.few, strict=True) if weak)
        notes.append(
            f"Few clusters carry {few}: about {confirmed.effective.min():.0f} of {n_clusters:,} in "
            f"effect, judged by the predictions. With fewer than {FEWEST_CLUSTERS} random signs may "
            "reject too often, so the p-value is the larger of two: by signs, and by labels for which "
            "all rows of a cluster are surprised together. It is approximate; "
            f"{Argument('null', 'one_per_cluster')} is exact."
        )
        found = replace(found, guarantee="approximate")
    return replace(found, notes=tuple(notes))


# ------------------------------------------------------------------ draws of comonotone labels


def _carried(columns: Sequence[Column], trial: Trial) -> list[Carried]:
    return list(carried(columns, trial.labels, cast("Places", trial.rows.clusters), trial.rows.weights))


def table_of_labels(columns: Sequence[Column], trial: Trial) -> Array:
    """Return (1 + B, H) values for the observed labels and for comonotone ones, with shared draws.

    All forms are `HasSigns`.
    """
    every = _carried(columns, trial)
    first = np.column_stack([each.form.apart(each.observed, each.clusters) for each in every])
    drawn = [each.form.comonotone() for each in every]
    draw = partial(_drawn, every, drawn, child_seed(trial.seed, _LABELS))
    tasks = [(part.start, part.stop) for part in blocks(trial.n_resamples, DRAWS)]
    return np.concatenate([first, *trial.workers.map(draw, tasks, "comonotone labels")])


def _drawn(columns: list[Carried], drawn: list[Comonotone], seed: int, start: int, stop: int) -> Array:
    count = 1 + max(int(each.places[-1]) for each in columns)
    stream = generator(seed, start // DRAWS)
    numbers, found = stream.random((count, DRAWS)).T[: stop - start], []
    for (form, places, clusters, _), labels in zip(columns, drawn, strict=True):
        found.append(form.apart(labels.labels(numbers[:, places[clusters.codes]]), clusters))
    return np.column_stack(found)


# ------------------------------------------------------------------ confirmation of signs


#: The names of columns, and their alternatives.
Asked: TypeAlias = tuple[Sequence[str], Sequence[Alternative]]


class Confirmation(NamedTuple):
    """Effective clusters of H columns of signs, and comonotone draws for columns with few."""

    effective: Array  #: Effective clusters, (H,).
    places: Places  #: The columns with draws, (A,).
    values: Array  #: Values (1 + B, A), with the observed labels first.
    resolutions: Array  #: Largest differences of two evaluations of a value, (A,).

    @classmethod
    def of(cls, trial: Trial, asked: Asked, columns: Sequence[Column], by_signs: Array) -> Confirmation:
        """Draw for columns with few effective clusters, or with not many if signs clearly reject.

        ``by_signs`` are values (1 + B, H) of the columns, with the observed ones first.
        """
        every = _carried(columns, trial)
        names, sides = asked
        named = zip(names, every, strict=True)
        facts = ((name, c.form, c.clusters, c.observed[0]) for name, c in named)
        effective = np.array([effective_clusters(*each) for each in facts])
        resolutions = np.array([each.form.resolution for each in every], dtype=np.float64)
        by_column = zip(by_signs.T, sides, resolutions, strict=True)
        clear = [ranked(x[1:], float(x[0]), *each).pvalue < _FAR for x, *each in by_column]
        doubtful = (effective < _MANY) & np.array(clear, bool)
        places = np.flatnonzero((effective < FEWEST_CLUSTERS) | doubtful)
        if not len(places):
            return cls(effective, places, np.empty((1, 0)), np.empty(0))
        values = table_of_labels([columns[h] for h in places.tolist()], trial)
        return cls(effective, places, values, resolutions[places])

    def beside(self, other: Confirmation) -> Confirmation:
        """Return this confirmation with more columns, drawn with the same numbers."""
        tables = [each.values for each in (self, other) if len(each.places)]
        effective = np.concatenate([self.effective, other.effective])
        places = np.concatenate([self.places, other.places + len(self.effective)])
        resolutions = np.concatenate([self.resolutions, other.resolutions])
        values = np.hstack(tables) if tables else self.values
        return Confirmation(effective, places, values, resolutions)

    @property
    def few(self) -> Mask:
        """Mask of the columns that few clusters carry, (H,)."""
        return self.effective < FEWEST_CLUSTERS

    def larger(self, by_signs: Iterable[Answer], sides: Sequence[Alternative]) -> list[Answer]:
        """Return the answers of columns, each alone, with the larger of the two p-values."""
        found = list(by_signs)
        for h, values, resolution in zip(self.places, self.values.T, self.resolutions, strict=True):
            other = ranked(values[1:], float(values[0]), sides[h], float(resolution))
            if not self.few[h] and other.pvalue > _FAR:
                other = replace(other, pvalue=_FAR, pvalue_interval=(_FAR, _FAR))
            found[h] = max(found[h], other, key=lambda each: each.pvalue)
        return found

    def together(self, evidence: Array, sides: Sequence[Alternative], tied: float = 0.0) -> Array:
        """Return adjusted p-values, (H,), by step-down maxima of the evidence by signs, (1 + B, H).

        Columns with few clusters are a family of their own; the level is shared in proportion to the
        number of columns. If a column has comonotone draws, the larger adjusted p-value is used.
        """
        found = np.ones(len(sides))
        for family in (~self.few, self.few):
            if not family.any():
                continue
            found[family] = pvalues.step_down(evidence[0, family] - tied, evidence[1:, family])
            again = family[self.places]
            if again.any():
                places = self.places[again]
                those = [sides[h] for h in places.tolist()]
                other = pvalues.evidence_of_draws(self.values[:, again], those, self.resolutions[again])
                other[np.isnan(other)] = 0.0
                found[places] = np.maximum(found[places], pvalues.step_down(other[0] - tied, other[1:]))
            found[family] = np.minimum(found[family] * (len(sides) / family.sum()), 1.0)
        return found


def rank(
    question: Question, values: Array, resolutions: list[float], confirmed: Confirmation | None = None
) -> Answer:
    """Rank a statistic by the values (1 + B, H) of its columns, with the observed ones first."""
    form, sides = question.form, names_and_sides(question)[1]
    if not isinstance(form, Combined):
        found = ranked(values[1:, 0], float(values[0, 0]), sides[0], resolutions[0])
        return found if confirmed is None else confirmed.larger([found], sides)[0]
    evidence = pvalues.evidence_of_draws(values, sides, resolutions)
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
    ends = pvalues.interval_of_adjusted(p, len(values) - 1, share)
    return replace(found, parts=parts, pvalue=p, pvalue_interval=ends)


def names_and_sides(question: Question) -> Asked:
    """Return the names of a statistic's columns, and their alternatives."""
    form = question.form
    if isinstance(form, Combined):
        return form.names, [part.alternative for part in form.components]
    return (question.statistic.name,), [question.alternative]


# ------------------------------------------------------------------ comonotone labels


@options()
class ComonotoneLabels(_OfSums):
    """p-value for few clusters: labels for which all rows of a cluster are surprised together.

    One uniform number is drawn per cluster, and every row takes the label at that quantile of its own
    prediction, in the order of the statistic's scores. This is the strongest dependence that the
    predictions allow, so the null is cautious: if rows are independent, it finds little.
    :class:`ClusterSigns` uses it by itself where few clusters count.

    Assumption: clusters are independent of each other.

    Parameters
    ----------
    guaranteed : bool, default False
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
    (0.06, 'bound')
    """

    guaranteed: bool = False

    name = "comonotone"
    guarantee = "approximate"

    def guarantee_for(self, form: Form) -> Guarantee:
        """Return "bound" if it is guaranteed."""
        return "bound" if self.guaranteed else self.guarantee

    def answer(self, question: Question) -> Answer:
        """Return the p-value."""
        if self.guaranteed:
            return self._guaranteed(question)
        columns = columns_of(question.form)
        values = table_of_labels(columns, question)
        return rank(question, values, [column.form.resolution for column in columns])

    def _guaranteed(self, question: Question) -> Answer:
        form, codes = question.form, question.clusters
        if not isinstance(form, LinearSum):
            found = f"is for sums over rows of classes, and {question.statistic.name!r} is none"
            do = "leave it out, or take 'citl', 'brier' or 'ecd'"
            raise InputError(f"{Argument('guaranteed', True)} {found}; {do}.")
        scores = form.row_scores
        atoms = Atoms.of(scores, form.probs, codes, int(codes.max()) + 1)
        entries = scores[np.arange(len(scores)), question.labels]
        excess = float((entries - np.einsum("ik,ik->i", form.probs, scores)).sum())
        greater, less = (atoms.superquantile(excess, sign) for sign in (1.0, -1.0))
        return Answer(pvalue=min(pvalues.combine_sides(greater, less, question.alternative), 1.0))


# ------------------------------------------------------------------ one row per cluster


@options(choices=positive_integer)
class OnePerCluster(Null):
    """Exact p-value for rows in clusters: test one row per cluster, and repeat with other choices.

    p = min(1, 2 · mean p_r) over the choices r (Rüschendorf 1982). It is valid for every number of
    rows and any dependence inside clusters, and works with every statistic. But each test uses
    only as many rows as there are clusters, and the factor of two costs power. The value of the
    statistic is its mean over the choices.

    Assumption: clusters are independent of each other; no other.

    Parameters
    ----------
    choices : int, default 20
        How often rows are chosen. Default 20: more make the p-value depend less on chance, and take
        longer.

    References
    ----------
    Rüschendorf, "Random variables with maximum sums", Advances in Applied Probability 14 (1982).

    Examples
    --------
    >>> import numpy as np
    >>> import caltest
    >>> data = caltest.simulation.tempered(n_samples=400, temperature=0.3, rng=0)
    >>> which = np.arange(400) // 4
    >>> found = caltest.test(
    ...     data.probs, data.labels, "ecd", null="one_per_cluster", clusters=which, rng=0
    ... )
    >>> round(found.pvalue, 4), found.guarantee
    (0.004, 'exact')
    """

    choices: int = 20

    name = "one_per_cluster"
    guarantee = "exact"
    requires = "any statistic"
    of_clusters = takes_completions = True

    def answer(self, question: Question) -> Answer:
        """Return twice the mean of the choices' exact p-values."""
        rows, codes = question.rows, question.clusters
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes)
        starts = np.cumsum(sizes) - sizes
        found = []
        for choice in range(self.choices):
            uniforms = generator(child_seed(question.seed, _CHOICE, choice)).random(len(sizes))
            chosen = np.sort(order[starts + (uniforms * sizes).astype(np.intp)])
            some = replace(rows.take(chosen), clusters=None)
            # Fit to these rows alone: their labels may depend on the predictions of other rows.
            fitted = (question.asked or question.statistic).fitted(some)
            seed = child_seed(question.seed, _DRAWS, choice)
            trial = replace(question, rows=some, labels=question.labels[chosen], seed=seed)
            anew = tuple(each[chosen] for each in question.completions)
            asked = fitted, fitted.given(some), question.alternative
            answer = MonteCarlo().answer(trial.question(*asked, completions=anew))
            found.append((answer.pvalue, cast("float", answer.statistic)))
        mean, statistic = np.mean(found, axis=0).tolist()
        seen = f"One row of each of {len(sizes)} clusters was looked at, {self.choices} times"
        note = f"{seen}, and the p-value is twice the mean of as many exact ones."
        return Answer(min(1.0, 2.0 * mean), statistic, notes=(*answer.notes, note))
