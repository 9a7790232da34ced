"""The null of rows that depend on each other: signs drawn for whole clusters, the labels held fixed.

Under H0 the centred scores of a row are 0 on average, and so is their sum S_g over a cluster, whatever
the dependence inside it. T is ranked among its values with S_g replaced by ε_g S_g, ε_g = ±1 with equal
chances: the same mean and covariance, cluster by cluster, so that p-values are right as the number of
clusters grows, none of them a large part of the whole. They are exact where the S_g are symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments
from caltest.data import Rows
from caltest.data.clusters import expected_with
from caltest.data.containers import listed
from caltest.forms import Combined, Form, HasSigns, Signed, SignedSums, check_bins
from caltest.nulls.base import Answer, Guarantee, Null, Question, ranked
from caltest.nulls.monte_carlo import parts_of
from caltest.pvalues import evidence_of_draws
from caltest.resampling import Column, columns_of, sign_draws, signed_columns, table

FEWEST_CLUSTERS = 20  # effective clusters below which p-values may be too small
_TIED = 1e-9  # evidence of one value, computed twice


@arguments()
@dataclass(frozen=True)
class ClusterSigns(Null):
    """p-value for rows in clusters: give the errors of each whole cluster a random sign.

    Rows of one cluster may depend on each other in any way; clusters must be independent of each
    other. With few clusters all signs are enumerated: 2^G for G clusters, or half of that if
    flipping all signs changes nothing. Means over pairs of rows are taken over pairs from
    different clusters. :class:`MonteCarlo`, which draws labels row by row, would treat rows that
    repeat each other as new evidence.

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
    requires: ClassVar[str] = (
        "sums, paths or pairs of residuals (every statistic but 'cox', 'mcb_brier', 'mcb_log' and "
        "functions of your own)"
    )
    of_clusters: ClassVar[bool] = True

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit forms that know their values for signs."""
        if isinstance(form, Combined):
            return all(isinstance(part.form, HasSigns) for part in form.components)
        return isinstance(form, HasSigns)

    def answer(self, question: Question) -> Answer:
        """Return the p-value."""
        clusters = question.clusters
        weights = cast("Rows", question.rows).weights
        columns = signed_columns(columns_of(question.form), question.labels, clusters, weights)
        found = answer_of_signs(question, columns, int(clusters.max()) + 1)
        probs = cast("Rows", question.rows).probs
        expected = expected_with(probs[:, 1], clusters) if probs.shape[1] == 2 else np.inf
        if expected >= FEWEST_CLUSTERS:
            return found
        note = (
            f"Few clusters are expected to have an event, or none: about {expected:.0f} if all rows of "
            f"a cluster agree. With fewer than {FEWEST_CLUSTERS} p-values may be too small; "
            "null='one_per_cluster' is exact."
        )
        return replace(found, notes=(*found.notes, note))


def answer_of_signs(
    question: Question,
    columns: Sequence[Column],
    count: int,
    rounding: NDArray[np.float64] | None = None,
) -> Answer:
    """Rank a statistic, of which these are the columns of signs of ``count`` clusters.

    ``rounding`` says how far two evaluations of a column's value may differ. Default: as forms say.
    """
    form = question.form
    draws = sign_draws(columns, count, question.n_resamples, question.seed)
    values = table(columns, draws, question.workers)
    resolutions = [column.form.resolution for column in columns]
    if rounding is not None:
        resolutions = rounding.tolist()
    if isinstance(form, Combined):
        sides = [part.alternative for part in form.components]
        evidence = evidence_of_draws(values, sides, resolutions)
        whole = form.combine(evidence)
        found = ranked(whole[1:], float(whole[0]), question.alternative, _TIED)
        found = replace(found, parts=parts_of(form.names, values[0], evidence, _TIED))
    else:
        value = float(values[0, 0])
        found = ranked(values[1:, 0], value, question.alternative, resolutions[0])
    notes = []
    if draws.sampler.every is not None:  # type: ignore[union-attr]
        sides_counted = 2 if question.alternative == "two-sided" else 1
        least = min(sides_counted / (1 + draws.count), 1.0)
        notes.append(
            f"All {1 + draws.count} ways to flip the signs of {count} clusters were enumerated: no "
            f"p-value can be below {least:.3g}."
        )
        found = replace(found, pvalue_interval=(found.pvalue, found.pvalue))
    forms = [cast("Signed", column.form) for column in columns]
    names = form.names if isinstance(form, Combined) else (question.statistic.name,)
    check_bins(names, forms)
    of_a_bin = [each.of_a_bin if isinstance(each, SignedSums) else np.inf for each in forms]
    if min(of_a_bin) < FEWEST_CLUSTERS:
        few = listed(n for n, e in zip(names, of_a_bin, strict=True) if e < FEWEST_CLUSTERS)
        notes.append(
            f"Few clusters share a bin of {few}: {min(of_a_bin):.0f} of {count} in effect, on average. "
            f"With fewer than {FEWEST_CLUSTERS} p-values may be too small: take fewer bins, or "
            "null='one_per_cluster', which is exact."
        )
    effective = [each.effective for each in forms]
    if min(effective) < FEWEST_CLUSTERS:
        few = listed(n for n, e in zip(names, effective, strict=True) if e < FEWEST_CLUSTERS)
        notes.append(
            f"Few clusters make up {few}: {min(effective):.0f} of {count} in effect. With fewer "
            f"than {FEWEST_CLUSTERS} p-values may be too small; null='one_per_cluster' is exact."
        )
    return replace(found, notes=tuple(notes))
