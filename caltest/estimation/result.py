"""The result of an estimation of squared calibration errors: frozen, inert."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest._visible import visible
from caltest.estimation.base import Array
from caltest.results import CalibrationResult, Result, freeze_arrays, plain

if TYPE_CHECKING:
    import pandas as pd

_OF_RISK = ("tuned", "value", "risk", "risk_error", "root_risk", "root_risk_error")
_OF_ESTIMATE = ("estimate", "standard_error", "estimate_error", "sampling_error")


@dataclass(frozen=True, eq=False)
class FunctionRisk:
    """One estimator: its held-out risk for every value of its tuned option, and its estimate.

    Arrays are read-only.

    Attributes
    ----------
    label
        Name, with the option where it was given instead of tuned.
    name, is_a
        Registered name of the function, and what it is.
    tuned
        The tuned option.
    values
        Its values, (G,).
    risks
        Validation risk, (G, F): a row a value, a column a fold.
    estimates
        Mean of h(g, g) over the test part, by the model of each fold, (G, F).
    spreads
        Standard deviation of h(g, g) over rows of the test part, 500 at most, (G, F).
    parameters
        Options in force, at the best value.
    n_test
        Rows of the test part.
    """

    label: str
    name: str
    is_a: str
    tuned: str
    values: Array
    risks: Array = field(repr=False)
    estimates: Array = field(repr=False)
    spreads: Array = field(repr=False)
    parameters: dict[str, Any] = field(repr=False)
    n_test: int

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def best(self) -> int:
        """Place of the value with the least mean validation risk."""
        return int(self.risks.mean(axis=1).argmin())

    @property
    def value(self) -> float:
        """The best value of the tuned option."""
        return float(self.values[self.best])

    @property
    def risk(self) -> float:
        """Mean validation risk of the best value."""
        return float(self.risks[self.best].mean())

    @property
    def risk_error(self) -> float:
        """Its standard error over the folds."""
        return _error(self.risks[self.best])

    @property
    def root_risk(self) -> float:
        """Mean over the folds of the root of the risk; times 100, what is published."""
        return float(np.sqrt(self.risks[self.best]).mean())

    @property
    def root_risk_error(self) -> float:
        """Its standard error over the folds."""
        return _error(np.sqrt(self.risks[self.best]))

    @property
    def estimate(self) -> float:
        """The squared calibration error, by the ensemble of the fold models."""
        return float(self.estimates[self.best].mean())

    @property
    def estimate_error(self) -> float:
        """Its standard error over the folds, as published: how far the models of the folds differ.

        They share most of their training rows: chance in these moves all of them alike, so this is
        much too small a standard error; see :attr:`standard_error`.
        """
        return _error(self.estimates[self.best])

    @property
    def standard_error(self) -> float:
        """Its standard error, of the tuning rows and of the test rows together.

        The fold models are those that a delete-a-group jackknife takes: (F − 1) times their standard
        error over the folds is the jackknife's, for all tuning rows. What the choice of the option
        adds is not in it, so it may be too small still.
        """
        tuning = (self.estimates.shape[1] - 1) * self.estimate_error
        return float(np.hypot(tuning, self.sampling_error))

    @property
    def sampling_error(self) -> float:
        """Its standard error over the rows of the test part, h held fixed; at most this.

        From the mean of the spreads of the fold models, which is at least that of their ensemble.
        """
        return float(self.spreads[self.best].mean() / np.sqrt(self.n_test))

    @property
    def on_edge(self) -> bool:
        """Whether the best value is the first or the last of several."""
        return len(self.values) > 1 and self.best in (0, len(self.values) - 1)

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON, what is derived too."""
        names = [*(each.name for each in fields(self)), *_OF_RISK[1:], *_OF_ESTIMATE]
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, eq=False, repr=False)
class SquaredErrorEstimate(Result):
    """Estimates of the squared calibration error, and the held-out risk that decides between them.

    Attributes
    ----------
    functions
        The functions, lowest risk first.
    zero_risks
        Validation risk of h = 0, which calls the model calibrated, (F,).
    test
        The p-value, or None if none was asked for.
    n_samples, n_classes, lens, seed, warnings
        As in :class:`caltest.CalibrationResult`.
    n_tuning, n_test, n_folds
        Rows of the two parts, and the folds of the first.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.estimate_squared_error(
    ...     sure.probs, sure.labels, functions="binning", lens="top_label", rng=0
    ... )
    >>> found.recommended.label, round(found.root, 2), found.pvalue
    ('binning', 0.13, 0.001)
    """

    functions: tuple[FunctionRisk, ...]
    zero_risks: Array
    test: CalibrationResult | None
    lens: str | None
    n_samples: int
    n_classes: int
    n_tuning: int
    n_test: int
    n_folds: int
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def recommended(self) -> FunctionRisk:
        """The function with the least validation risk."""
        return self.functions[0]

    @property
    def estimate(self) -> float:
        """Its estimate of the squared calibration error; of two classes, of P(class 1) alone."""
        return self.recommended.estimate

    @property
    def root(self) -> float:
        """Root of the estimate, in units of probability; 0 where the estimate is negative."""
        return float(np.sqrt(max(0.0, self.estimate)))

    @property
    def pvalue(self) -> float | None:
        """The p-value of :attr:`test`."""
        return self.test.pvalue if self.test else None

    @arguments(other=OneOf("caltest.estimation:FunctionRisk", "give one of .functions"))
    def gap(self, other: FunctionRisk | None = None) -> tuple[float, float]:
        """Return how far another function's risk lies above that of the recommended one.

        Parameters
        ----------
        other
            The other function. Default None: h = 0, calling the model calibrated.

        Returns
        -------
        tuple of float
            Mean over the folds of the difference, fold by fold, and its standard error: folds share
            most of their training rows, so it is somewhat too small.
        """
        theirs = self.zero_risks if other is None else other.risks[other.best]
        differences = theirs - self.recommended.risks[self.recommended.best]
        return float(differences.mean()), _error(differences)

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a row for each function, lowest risk first.

        Returns
        -------
        pandas.DataFrame
            Index ``function``; columns ``tuned`` and ``value`` (the best one); ``risk`` and
            ``risk_error`` (validation risk, standard error over folds); ``root_risk`` and
            ``root_risk_error`` (the same of its root); ``gap`` and ``gap_error`` (risk above the
            first row's, fold by fold); ``estimate`` and its ``standard_error``; ``estimate_error``
            (over folds, as published) and ``sampling_error`` (over test rows). All are plain numbers,
            none times 100.
        """
        import pandas as pd

        rows = [
            [*attrgetter(*_OF_RISK)(each), *self.gap(each), *attrgetter(*_OF_ESTIMATE)(each)]
            for each in self.functions
        ]
        index = pd.Index([visible(each.label) for each in self.functions], name="function")
        return pd.DataFrame(rows, index=index, columns=[*_OF_RISK, "gap", "gap_error", *_OF_ESTIMATE])

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string."""
        told = {"recommended": self.recommended.label, "estimate": self.estimate, "root": self.root}
        return {**plain(told), **super().to_dict()}


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
