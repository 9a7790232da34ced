"""The result of a test: frozen, inert, with the one printer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, flag
from caltest._prose import page, paragraph, plain, short, table
from caltest._tail import Alternative
from caltest._visible import shown
from caltest.forms import Side
from caltest.nulls import GUARANTEES, Guarantee, Part

_UNRESOLVED = 1e-9  # an approximate tail is not printed beyond this

_COUNTS_AGAINST: dict[Alternative, str] = {
    "greater": "at least this large",
    "less": "at most this large",
    "two-sided": "at least this extreme, on either side,",
}


@dataclass(frozen=True, eq=False)
class CalibrationResult:
    """What a calibration test found.

    Attributes
    ----------
    statistic
        Value of the statistic.
    pvalue
        In (0, 1]: probability of a value at least as extreme if the model is calibrated.
    name
        Registered name of the statistic.
    null
        Registered name of the null.
    guarantee
        "exact", "bound", "asymptotic" or "approximate".
    alternative
        "greater", "less" or "two-sided"; of a test with a tolerance, "over", "under" or "two-sided".
    n_samples, n_classes
        Rows, and classes as the lens shows them; no classes (None) if distributions of numbers were
        predicted.
    lens
        Label of the lens; None for the full probability vector.
    parameters
        Options in force, a fitted bandwidth for instance.
    n_resamples
        Resamples used; None where there are none.
    exceedances
        Resamples at least as extreme as observed, of two sides the fewer; None where there are none.
    pvalue_interval
        95% Clopper–Pearson interval of the p-value that infinitely many resamples would give;
        Monte Carlo only.
    null_distribution
        Statistics of the resamples, or None.
    warnings
        Sentences a reader should know.
    seed
        Integer that, given as ``rng``, repeats the numbers; None where none were drawn.
    measures
        What the statistic measures, in words.
    claim
        The hypothesis of a test with a tolerance, in words; None for calibration itself.
    parts
        Of a combined statistic ("omnibus") with the exact null, each part's name, value, own p-value
        and p-value adjusted for their number; else empty.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.test(sure.probs, sure.labels, "ecd", rng=0)
    >>> round(found.statistic, 2), found.pvalue, found.guarantee, found.rejects(0.05)
    (0.69, 0.002, 'exact', True)
    >>> found.null_distribution.shape, found.seed
    ((999,), 0)
    """

    statistic: float
    pvalue: float
    name: str
    null: str
    guarantee: Guarantee
    alternative: Alternative | Side
    n_samples: int
    n_classes: int | None
    lens: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    n_resamples: int | None = None
    exceedances: int | None = None
    pvalue_interval: tuple[float, float] | None = None
    null_distribution: NDArray[np.float64] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    measures: str = field(default="", repr=False)
    claim: str | None = field(default=None, repr=False)
    parts: tuple[Part, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.null_distribution is not None:
            self.null_distribution.flags.writeable = False

    @arguments()
    def rejects(self, alpha: float) -> bool:
        """Say whether calibration is rejected at level ``alpha``, which is in (0, 1)."""
        return self.pvalue <= alpha

    @arguments(draws=flag)
    def to_dict(self, *, draws: bool = False) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string.

        Parameters
        ----------
        draws
            Include the null distribution. Default False: it is long.
        """
        skipped = set() if draws else {"null_distribution"}
        found = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name not in skipped}
        return {**found, "parts": [plain(asdict(part)) for part in self.parts]}

    @arguments()
    def summary(self) -> str:
        """Return the result in plain language: what was tested, found, and may be concluded."""
        view = f", seen through the lens {shown(self.lens)}" if self.lens else ""
        tested = f"{self.n_samples} predictions of {self.n_classes} classes{view}"
        if self.n_classes is None:
            tested = f"{self.n_samples} predicted distributions of numbers"
        rows = [
            ("tested", tested),
            ("statistic", f"{shown(self.name)} = {self.statistic:.6g}  ({self.measures})"),
        ]
        if self.parameters:
            rows.append(("with", ", ".join(f"{k} {short(v)}" for k, v in self.parameters.items())))
        rows.append(("null", f"{self.null}, {self.guarantee}: {GUARANTEES[self.guarantee]}"))
        rows.append(("p-value", _pvalue_text(self)))
        rows += [
            ("" if number else "parts", _part_text(part)) for number, part in enumerate(self.parts)
        ]
        lines = ["Calibration test", *table(rows), ""]
        lines += paragraph(self._reading())
        for warning in self.warnings:
            lines += ["", *paragraph(f"Note: {warning}")]
        return page(lines)

    def _reading(self) -> str:
        if self.claim is not None:
            return self._reading_of_claim(self.claim)
        claim, truth = "the probabilities mean what they say", "labels"
        if self.n_classes is None:
            claim, truth = "outcomes are draws from the predicted distributions", "outcomes"
        return (
            f"The claim tested (H0): {claim}. If that were so, a value "
            f"{_COUNTS_AGAINST[cast('Alternative', self.alternative)]} would occur with probability "
            f"{self._probability()} (rows independent, {truth} not used "
            "to fit the model). If p is at or below the level chosen beforehand, the model is "
            "miscalibrated, at that risk of a false alarm; p does not say by how much. "
            "If p is above, the data do not show it, which is no proof of calibration: "
            "an error may be too small for this many rows, or of a kind this statistic does not see."
        )

    def _reading_of_claim(self, claim: str) -> str:
        more = "by more than that" if self.parameters.get("tolerance") else "that way"
        if self.alternative == "two-sided" and not self.parameters.get("tolerance"):
            more = "somewhere"
        return (
            f"The claim tested (H0): {claim}. If that were so, evidence against it as strong as here "
            f"would occur with probability {self._probability()} at most (rows "
            "independent, labels not used to fit the model). If p is at or below the level chosen "
            f"beforehand, the model is wrong {more}, at that risk of a false alarm. If p is above, the "
            "data do not show it, which is no proof of the claim."
        )

    def _probability(self) -> str:
        if self.guarantee == "approximate" and self.pvalue < _UNRESOLVED:
            return f"below {_UNRESOLVED:g}"
        return f"at most {self.pvalue:.3g}" if self.guarantee == "bound" else f"{self.pvalue:.3g}"

    def __str__(self) -> str:
        return self.summary()


def _part_text(part: Part) -> str:
    name = shown(part.name)
    return f"{name} = {part.value:.4g}: p {part.pvalue:.4g} alone, {part.adjusted:.4g} adjusted"


def _pvalue_text(result: CalibrationResult) -> str:
    if result.guarantee == "approximate" and result.pvalue < _UNRESOLVED:
        return f"below {_UNRESOLVED:g}"
    if result.pvalue_interval is None or result.n_resamples is None:
        return f"{result.pvalue:.4g}"
    low, high = result.pvalue_interval
    return (
        f"{result.pvalue:.4g}  ({result.n_resamples} resamples; with more of them "
        f"between {low:.2g} and {high:.2g}, 95% interval)"
    )
