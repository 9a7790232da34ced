"""The null of rows that depend on each other: signs drawn for whole clusters, the labels held fixed.

Under H0 the centred scores of a row are 0 on average, and so is their sum S_g over a cluster, whatever
the dependence inside it. T is ranked among its values with S_g replaced by ε_g S_g, ε_g = ±1 with equal
chances: the same mean and covariance, cluster by cluster, so that p-values are right as the number of
clusters grows, none of them a large part of the whole. They are exact where the S_g are symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from caltest._arguments import arguments
from caltest.data import Rows
from caltest.data.containers import listed
from caltest.forms import Combined, Form, HasSigns, Signed
from caltest.nulls.base import Answer, Guarantee, Null, Question, ranked
from caltest.nulls.monte_carlo import parts_of
from caltest.pvalues import evidence_of_draws
from caltest.resampling import columns_of, sign_draws, signed_columns, table

_FEWEST = 20  # effective clusters below which p-values may be too small
_TIED = 1e-9  # evidence of one value, computed twice


@arguments()
@dataclass(frozen=True)
class ClusterSigns(Null):
    """Draw a sign for every cluster of rows, and rank the statistic among its values for these signs.

    Rows of one cluster may depend on each other in any way; clusters are independent of each other.
    With so few clusters that all signs can be gone through, they are: 2^G of G clusters, or half of
    that where turning all signs changes nothing. Statistics that are means over pairs of rows are taken
    over pairs of different clusters. What :class:`MonteCarlo` does with labels would take rows that
    repeat each other for new evidence.

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
        form, clusters = question.form, question.clusters
        count = int(clusters.max()) + 1
        weights = cast("Rows", question.rows).weights
        columns = signed_columns(columns_of(form), question.labels, clusters, weights)
        draws = sign_draws(columns, count, question.n_resamples, question.seed)
        values = table(columns, draws, question.workers)
        resolutions = [column.form.resolution for column in columns]
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
                f"All {1 + draws.count} ways to turn signs of {count} clusters were gone through: no "
                f"p-value can be below {least:.3g}."
            )
            found = replace(found, pvalue_interval=(found.pvalue, found.pvalue))
        effective = [cast("Signed", column.form).effective for column in columns]
        if min(effective) < _FEWEST:
            names = form.names if isinstance(form, Combined) else (question.statistic.name,)
            few = listed(n for n, e in zip(names, effective, strict=True) if e < _FEWEST)
            notes.append(
                f"Few clusters make up {few}: {min(effective):.0f} of {count} in effect. With fewer "
                f"than {_FEWEST} p-values may be too small; null='one_per_cluster' is exact."
            )
        return replace(found, notes=tuple(notes))
