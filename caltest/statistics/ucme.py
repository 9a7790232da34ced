"""The unnormalised calibration mean embedding: residuals added up around a few test locations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from caltest._arguments import Whole, arguments, choose, real_kernel
from caltest.data import Rows
from caltest.forms import FeatureSquares
from caltest.forms.base import Array
from caltest.kernels import Exponential, Kernel, fitted
from caltest.kernels.bandwidth import fixed_order
from caltest.sampling import generator
from caltest.statistics.base import Statistic


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

    name = "ucme"
    measures = "squared unnormalised calibration mean embedding"
    of_parts = True
    reported = ("kernel", "locations", "targets")

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

    def given(self, predictions: Rows) -> FeatureSquares:
        """Fix the predictions: sums of features, a feature a location."""
        found = self.fitted(predictions) if self._points is None else self
        points: Any = found._points
        features = predictions.weighted(found.kernel(predictions.probs, points))
        whole, targets = predictions.whole.total, None
        if self.targets == "drawn":
            # Classes from the likeliest to the least likely, so that their order does not matter.
            classes = np.argsort(-points, axis=1, kind="stable")
            sums = np.cumsum(np.take_along_axis(points, classes, axis=1), axis=1)
            uniforms = generator(self.seed, 1).random((len(points), 1)) * sums[:, -1:]
            targets = classes[np.arange(len(points)), (sums <= uniforms).sum(axis=1)]
        return FeatureSquares(predictions.probs, features, None, whole**-2, True, whole, targets)

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth, and the locations."""
        count = self.locations if self._points is None else len(self._points)
        return {**super().parameters, "locations": count, "location_seed": self.seed}
