"""One row a cluster, chosen by chance, and the exact null: valid in every sample, but weak.

Rows of different clusters are independent, so that one row of each, chosen without a look at the
labels, makes an exact test. Its p-values p_r for several choices depend on each other in an unknown
way; twice their mean is a p-value all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from caltest._arguments import arguments, positive_integer
from caltest.forms import Form
from caltest.nulls.base import Answer, Guarantee, Null, Question
from caltest.nulls.monte_carlo import MonteCarlo
from caltest.sampling import child_seed, generator

_CHOICE, _DRAWS = 0, 1  # keys of seeds


@arguments(choices=positive_integer)
@dataclass(frozen=True)
class OnePerCluster(Null):
    """Exact p-value for rows in clusters: test one row per cluster, and repeat with other choices.

    p = min(1, 2 · mean p_r) over the choices r (Rüschendorf 1982). It is valid for every number of
    rows and any dependence inside clusters, and works with every statistic. But each test uses
    only as many rows as there are clusters, and the factor of two costs power. The value of the
    statistic is its mean over the choices.

    Parameters
    ----------
    choices
        How often rows are chosen. Default 20: more depend less on chance, and take longer.

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

    name: ClassVar[str] = "one_per_cluster"
    guarantee: ClassVar[Guarantee] = "exact"
    assumption: ClassVar[str] = "none: clusters are independent of each other, that is all"
    requires: ClassVar[str] = "any statistic"
    of_clusters: ClassVar[bool] = True

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit any form."""
        return True

    def label_vectors(self, n_resamples: int) -> int:
        """Return the number of draws."""
        return self.choices * n_resamples

    def answer(self, question: Question) -> Answer:
        """Return twice the mean of the choices' exact p-values."""
        rows, codes = question.rows, question.clusters
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes)
        starts = np.cumsum(sizes) - sizes
        pvalues, values = [], []
        for choice in range(self.choices):
            uniforms = generator(child_seed(question.seed, _CHOICE, choice)).random(len(sizes))
            chosen = np.sort(order[starts + (uniforms * sizes).astype(np.intp)])
            some = replace(rows.take(chosen), clusters=None)
            # To these rows alone: their labels may depend on the predictions of other rows.
            fitted = (question.asked or question.statistic).fitted(some)
            form = fitted.given(some)
            asked = replace(
                question,
                statistic=fitted,
                form=form,
                rows=some,
                labels=question.labels[chosen],
                seed=child_seed(question.seed, _DRAWS, choice),
            )
            found = MonteCarlo().answer(asked)
            pvalues.append(found.pvalue)
            values.append(asked.observed if found.statistic is None else found.statistic)
        return Answer(
            pvalue=min(1.0, 2.0 * float(np.mean(pvalues))),
            statistic=float(np.mean(values)),
            notes=(
                f"One row of each of {len(sizes)} clusters was looked at, {self.choices} times, and "
                "the p-value is twice the mean of as many exact ones.",
            ),
        )
