"""The unnormalised calibration mean embedding: residuals added up around a few test locations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Whole, arguments, choose, real_kernel
from caltest._sampling import generator
from caltest.data import Extent, Rows
from caltest.forms import (
    Additive,
    AddsByCluster,
    Clusters,
    ClusterSums,
    FeatureSquares,
    SignedSums,
)
from caltest.forms.base import ROUNDING, Array, Labels
from caltest.kernels import Exponential, Kernel, fitted
from caltest.kernels.bandwidth import fixed_order
from caltest.statistics.base import Partwise, Statistic


@arguments(kernel=real_kernel, locations=Whole(1, 10_000), seed=Whole(0))
@dataclass(frozen=True)
class UCME(Statistic):
    """Unnormalised calibration mean embedding: a kernel measure at a few test locations. O(n J m).

    T = Σ_j ‖n⁻¹ Σ_i k(g_i, t_j) D_i‖².

    It measures how far labels and predictions, D_i = onehot(y_i) − g_i, differ around each of a
    few test locations t_j. ``skce_b`` compares all pairs of rows; this compares rows with
    locations. That is cheap, but misses errors that are not near any location. It is never
    negative.

    Parameters
    ----------
    kernel
        A real-valued kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, as of
        :class:`BiasedSKCE`.
    locations
        Number J of test locations, up to 10 000. Default 10. They are rows of the predictions, chosen
        by the seed whatever the order of the rows; all of them where there are fewer.
    targets
        Which residuals to use at a location. "every" (default): those of all classes. "drawn":
        those of one class, drawn by the seed from the location's own prediction, as in the source,
        which takes the mean over j instead of the sum.
    seed
        Seed of the choice of locations and targets, a whole number from 0. Default 0.

    Raises
    ------
    InputError
        If an option cannot be used.

    References
    ----------
    Widmann, Lindsten, Zachariah, "Calibration tests beyond classification", ICLR 2021;
    test locations: Chwialkowski, Ramdas, Sejdinovic, Gretton, "Fast two-sample testing with analytic
    representations of probability measures", NeurIPS 2015.

    Examples
    --------
    Both rows are locations, and one of two labels is wrong: (1 + e⁻²)/2.

    >>> import caltest
    >>> from caltest.kernels import Gaussian
    >>> from caltest.statistics import UCME
    >>> round(caltest.estimate([[1, 0], [0, 1]], [0, 0], UCME(Gaussian(1.0))), 12)
    0.567667641618
    """

    kernel: Kernel = field(default_factory=Exponential)
    locations: int = 10
    targets: Literal["every", "drawn"] = "every"
    seed: int = 0
    _points: Array | None = field(default=None, repr=False, compare=False, kw_only=True)

    name: ClassVar[str] = "ucme"
    measures: ClassVar[str] = "squared unnormalised calibration mean embedding"

    def __post_init__(self) -> None:
        choose("choice of targets", self.targets, {"every": True, "drawn": True})

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth and choose the locations."""
        probs = predictions.probs
        # An order in which neither rows nor, but for ties, classes count by where they stand.
        order = fixed_order(probs)
        order = order[fixed_order(np.sort(probs[order], axis=1))]
        count = min(self.locations, len(probs))
        chosen = order[generator(self.seed).choice(len(probs), count, replace=False)]
        kernel = fitted(self.kernel, probs, predictions.weights)
        return replace(self, kernel=kernel, _points=probs[chosen])

    def given(self, predictions: Rows) -> FeatureSquares | SquaresAtTargets:
        """Fix the predictions: sums of features, a feature a location."""
        found = self.fitted(predictions) if self._points is None else self
        return found._of_rows(predictions, predictions.total)

    def in_parts(self, whole: Extent, subsample: Callable[[], Rows]) -> Partwise:
        """Fit to a subsample of the rows, and take the locations from it."""
        found = self.fitted(subsample())
        return Partwise(found, partial(found._of_rows, whole=whole.total))

    def _of_rows(self, rows: Rows, whole: float) -> FeatureSquares | SquaresAtTargets:
        points = self._points
        if points is None:
            raise TypeError("rows need locations that were chosen")
        features, scale = rows.weighted(self.kernel(rows.probs, points)), float(whole) ** -2
        if self.targets == "every":
            return FeatureSquares(rows.probs, features, None, scale, True, whole)
        # Classes from the likeliest to the least likely, so that their order does not matter.
        classes = np.argsort(-points, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(points, classes, axis=1), axis=1)
        uniforms = generator(self.seed, 1).random((len(points), 1)) * sums[:, -1:]
        drawn = classes[np.arange(len(points)), (sums <= uniforms).sum(axis=1)]
        return SquaresAtTargets(rows.probs, features, drawn, scale, whole)

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth, and the locations."""
        return {
            "kernel": type(self.kernel).__name__,
            **self.kernel.parameters,
            "locations": self.locations if self._points is None else len(self._points),
            "targets": self.targets,
            "location_seed": self.seed,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the bandwidth heuristic has to say."""
        return self.kernel.notes


@dataclass(frozen=True, eq=False)
class SquaresAtTargets(AddsByCluster, Additive):
    """T = scale · Σ_j (Σ_i ψ_ij (1[y_i = c_j] − g_ic_j))²: of every feature one class's residuals."""

    probs: Array  #: The predictions, (n, m).
    features: Array  #: Ψ, (n, J), which depend on the predictions only.
    targets: NDArray[np.intp]  #: The class c_j of every feature, (J,).
    scale: float
    whole: float  #: Number of all rows, where these are only some of them, or their weight.

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return len(self.probs)

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """A sum for every feature."""
        return (len(self.targets),)

    @property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs, of these rows with the whole."""
        largest = float(np.einsum("ij,ij->i", self.features, self.features).max(initial=0.0))
        return ROUNDING * self.scale * self.n_samples * self.whole * largest

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Sum the residuals of the features' classes, (B, J)."""
        features = self.features[rows]
        sums = np.empty((len(labels), len(self.targets)))
        for target in np.unique(self.targets):
            own = self.targets == target
            sums[:, own] = (labels == target).astype(np.float64) @ features[:, own]
        sums -= np.einsum("ij,ij->j", features, self.probs[rows][:, self.targets])
        return sums

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        """Add up the residuals of the features' classes by cluster."""
        residuals = (labels[:, None] == self.targets) - self.probs[:, self.targets]
        return ClusterSums(clusters.sums(residuals * self.features), np.empty(0))

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> SignedSums:
        """Add up squares."""
        return SignedSums(found.turned, self.finish, even=True, rounding=self.resolution)

    def finish(self, sums: Array) -> Array:
        """Return the sum of squares."""
        return np.asarray(self.scale * np.einsum("bj,bj->b", sums, sums))
