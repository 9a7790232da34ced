"""p-values of an estimated squared calibration error: of the held-out rows, and of the whole pipeline.

Both are exact, the split and the predictions held fixed. Of the held-out rows: h and its options come
from the tuning rows alone, and given these the labels of the test rows are still independent draws
under H0. Of the whole pipeline: every drawn label vector goes through tuning, selection and estimate
as the observed one did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest.data import Rows
from caltest.estimation.base import Array, Labels, residuals
from caltest.estimation.pipeline import CalibrationPipeline, Split, recommended
from caltest.forms import Additive, DenseWeights, Form, Pairwise, Term
from caltest.statistics import Statistic


@dataclass(frozen=True, eq=False)
class HeldOut(Statistic):
    """How well h, learned elsewhere, foretells ⟨r_i, r_j⟩: the mean of h(g_i, g_j) ⟨r_i, r_j⟩, i ≠ j.

    It is SKCE_uq with a learned kernel, and, but for what labels do not change, half of what h takes
    off the risk of calling the model calibrated, R(0) − R(h).

    Attributes
    ----------
    label
        Name of the function.
    left, right
        (n, q) with h(g_i, g_j) = ⟨left_i, right_j⟩ on the held-out rows.
    """

    label: str
    left: Array = field(repr=False)
    right: Array = field(repr=False)

    name: ClassVar[str] = "held_out_agreement"
    measures: ClassVar[str] = "agreement of held-out residuals with the estimated errors"

    @property
    def parameters(self) -> dict[str, Any]:
        """Which function was learned."""
        return {"function": self.label}

    def given(self, predictions: Rows) -> ProductsOfPairs | Pairwise:
        """Fix the predictions of the held-out rows: through h itself if that is smaller."""
        n, q = self.left.shape
        if 2 * q <= n:
            return ProductsOfPairs(predictions.probs, self.left, self.right)
        h = self.left @ self.right.T
        scale = (0.5 if predictions.n_classes == 2 else 1.0) / (n * (n - 1.0))
        terms = (Term(DenseWeights(0.5 * (h + h.T)), None),)
        return Pairwise(predictions.probs, terms, scale, diagonal=False)


@dataclass(frozen=True, eq=False)
class ProductsOfPairs(Additive):
    """T = (n(n − 1))⁻¹ Σ_{i≠j} ⟨u_i, v_j⟩ ⟨r_i, r_j⟩, from the sums Σ u rᵀ, Σ v rᵀ and Σ ⟨u, v⟩ ‖r‖².

    Attributes
    ----------
    probs
        The predictions, (n, m).
    left, right
        u and v, (n, q).
    """

    probs: Array
    left: Array
    right: Array

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return len(self.probs)

    @property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs."""
        sizes = np.linalg.norm(self.left, axis=1).mean() * np.linalg.norm(self.right, axis=1).mean()
        return 1e-13 * float(sizes)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Return the three sums, (B, 2 q k + 1)."""
        r = residuals(self.probs[rows], labels)
        flat, u, v = r.reshape(len(r), -1), self.left[rows], self.right[rows]
        own = np.einsum("eq,eq,ebk->b", u, v, r**2, optimize=True)
        sums = [(each.T @ flat).reshape(each.shape[1], *r.shape[1:]) for each in (u, v)]
        parts = [each.transpose(1, 0, 2).reshape(len(labels), -1) for each in sums]
        return np.hstack([*parts, own[:, None]])

    def finish(self, sums: Array) -> Array:
        """Return the (B,) means over pairs."""
        size = (sums.shape[1] - 1) // 2
        total = np.einsum("bs,bs->b", sums[:, :size], sums[:, size:-1]) - sums[:, -1]
        return np.asarray(total / (self.n_samples * (self.n_samples - 1.0)))


@dataclass(frozen=True, eq=False)
class WholePipeline(Statistic):
    """The estimate of the function that the pipeline recommends, all of it re-run for given labels.

    Attributes
    ----------
    pipeline, split
        What is run, and on which rows.
    """

    pipeline: CalibrationPipeline
    split: Split = field(repr=False)

    name: ClassVar[str] = "squared_error_estimate"
    measures: ClassVar[str] = "estimated squared calibration error, recommended function"

    def given(self, predictions: Rows) -> PipelineForm:
        """Fix the predictions."""
        return PipelineForm(predictions.probs, self.pipeline, self.split)


@dataclass(frozen=True, eq=False)
class PipelineForm(Form):
    """The pipeline as a function of the labels.

    Attributes
    ----------
    probs
        The predictions, (n, m).
    pipeline, split
        As of :class:`WholePipeline`.
    """

    probs: Array
    pipeline: CalibrationPipeline
    split: Split

    together: ClassVar[bool] = True

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) estimates for ``labels`` (B, n).

        Where labels are all but certain, risks are equal up to rounding, and rounding chooses among
        them. Every different vector goes through once, in an order of their own: equal labels then
        give equal estimates, and the result does not depend on which of them was observed.
        """
        different, places = np.unique(labels, axis=0, return_inverse=True)
        paths = self.pipeline.run(self.probs, different, self.split, workers)
        chosen = recommended(paths)
        values = np.stack([path.estimate for path in paths])[chosen, np.arange(len(different))]
        return np.asarray(values[places.reshape(-1)])
