"""The null of rows that depend on each other: signs drawn for whole clusters, the labels held fixed.

Under H0 the centred scores of a row are 0 on average, and so is their sum S_g over a cluster, whatever
the dependence inside it. T is ranked among its values with S_g replaced by ε_g S_g, ε_g = ±1 with equal
chances: the same mean and covariance, cluster by cluster, so that p-values are right as the number of
clusters grows, none of them a large part of the whole. They are exact where the S_g are symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments
from caltest.data.containers import listed
from caltest.forms import FEWEST_CLUSTERS, Form
from caltest.nulls.base import Answer, Guarantee, Null, Question
from caltest.nulls.comonotone import ComonotoneLabels, Confirmation, Trial, names_and_sides, rank
from caltest.resampling import Column, columns_of, sign_draws, signed_columns, table
from caltest.sampling import SignSampler

Array: TypeAlias = NDArray[np.float64]


@arguments()
@dataclass(frozen=True)
class ClusterSigns(Null):
    """p-value for rows in clusters: give the errors of each whole cluster a random sign.

    Rows of one cluster may depend on each other in any way; clusters must be independent of each
    other. With few clusters all signs are enumerated: 2^G for G clusters, or half of that if
    flipping all signs changes nothing. Means over pairs of rows are taken over pairs from
    different clusters. :class:`MonteCarlo`, which draws labels row by row, would treat rows that
    repeat each other as new evidence.

    How many clusters count in effect is judged for each statistic from predictions, weights and
    clusters alone: (Σ E|S|²)² / Σ E|S|⁴, S what a cluster adds if all its rows are surprised
    together. Where fewer than 20 count (rare events in large clusters, for example), the p-value is
    the larger of that by signs and that of :class:`ComonotoneLabels`; from 20 to 80 only p-values
    below 0.01 are confirmed in this way, and never raised above 0.01. Parts of "omnibus" that few
    clusters carry share the level with the others in proportion to their number.

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

    name: ClassVar[str] = "cluster_signs"
    guarantee: ClassVar[Guarantee] = "asymptotic"
    assumption: ClassVar[str] = "clusters are independent of each other, and many"
    requires: ClassVar[str] = ComonotoneLabels.requires
    of_clusters: ClassVar[bool] = True

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit forms that know their values for signs."""
        return ComonotoneLabels.fits(form)

    def answer(self, question: Question) -> Answer:
        """Return the p-value."""
        codes = question.clusters  # numbered anew, if some rows count nothing
        trial, columns = Trial.of(question), columns_of(question.form)
        signed = signed_columns(columns, question.labels, codes, trial.rows.weights)
        confirm = partial(Confirmation.of, trial, *names_and_sides(question), columns)
        return answer_of_signs(question, signed, int(codes.max()) + 1, confirm)


def answer_of_signs(
    question: Question,
    columns: Sequence[Column],
    n_clusters: int,
    confirm: Callable[[Array], Confirmation],
    rounding: Array | None = None,
) -> Answer:
    """Rank a statistic, of which these are the columns of signs of so many clusters.

    ``confirm`` takes the values of its columns, those of the observed labels first, and says how many
    clusters count; ``rounding``, how far two evaluations of a column's value may differ (default: as
    forms say).
    """
    draws = sign_draws(columns, n_clusters, question.n_resamples, question.seed)
    values = table(columns, draws, question.workers)
    resolutions = [column.form.resolution for column in columns] if rounding is None else rounding
    confirmed = confirm(values)
    found, notes = rank(question, values, list(resolutions), confirmed), []
    if cast("SignSampler", draws.sampler).every is not None:
        sides_counted = 2 if question.alternative == "two-sided" else 1
        least = min(sides_counted / (1 + draws.count), 1.0)
        notes.append(
            f"All {1 + draws.count} ways to flip the signs of {n_clusters} clusters were enumerated: "
            f"no p-value can be below {least:.3g}."
        )
        found = replace(found, n_resamples=draws.count, pvalue_interval=(found.pvalue, found.pvalue))
    if confirmed.few.any():
        names, _ = names_and_sides(question)
        few = listed(name for name, weak in zip(names, confirmed.few, strict=True) if weak)
        notes.append(
            f"Few clusters carry {few}: about {confirmed.effective.min():.0f} of {n_clusters:,} in "
            f"effect, judged by the predictions. With fewer than {FEWEST_CLUSTERS} random signs may "
            "reject too often, so the p-value is the larger of two: by signs, and by labels for which "
            "all rows of a cluster are surprised together. It is approximate; null='one_per_cluster' "
            "is exact."
        )
        found = replace(found, guarantee="approximate")
    return replace(found, notes=tuple(notes))
