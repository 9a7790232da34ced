"""The audit: frozen, inert."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, flag
from caltest._version import __version__
from caltest._visible import visible
from caltest.exceptions import InputError
from caltest.forms import Side
from caltest.results import Result, plain

if TYPE_CHECKING:
    import pandas as pd

    from caltest.cox import Recalibration


@dataclass(frozen=True)
class Group:
    """Rows that share a value of one column.

    Attributes
    ----------
    column, value
        Name of the column and the value, as text: that of the data, whatever is hidden in it.
    """

    column: str
    value: str

    @property
    def label(self) -> str:
        """Column and value."""
        return f"{self.column} = {self.value}"


@dataclass(frozen=True)
class Reliability:
    """What one probability says and what came true, in bins that hold equally many rows.

    Attributes
    ----------
    says, share, rows
        Mean probability, share of rows in which the event came true, and number of rows, of each bin.
    low, high
        Where the share lies if the model is calibrated: all bins of all diagrams of the audit at once
        with probability 1 − alpha, whichever are shown.
    """

    says: tuple[float, ...]
    share: tuple[float, ...]
    rows: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class View:
    """What is looked at: a lens, on all rows or on a group.

    Attributes
    ----------
    lens
        "canonical" for the full probability vector, or the lens's label ("top_label", "class:3").
    event
        What the one probability is of, as a clause; None where there is more than one.
    group
        Which rows; None for all.
    rows
        Number of rows.
    says, share
        Mean probability of the event, and share of rows in which it came true; None without an event.
    direction
        Which way the data err on average: "over" (claims too much), "under" (claims too little), by
        ``says`` and ``share``, or the sign of the ECD without an event; None if they do not err. It is
        a sign, and may be noise: the summary names a direction only where it is shown.
    over, under
        The model claims at least this much too much, or too little, somewhere in these rows; all
        bounds of the audit hold together with its confidence. 0 (nothing is proved) where no check of
        the view has found an error, so that bounds and checks agree. None where no bound was sought.
    reliability
        The reliability diagram; None without an event.
    """

    lens: str
    event: str | None
    group: Group | None
    rows: int
    says: float | None = None
    share: float | None = None
    direction: Side | None = None
    over: float | None = None
    under: float | None = None
    reliability: Reliability | None = field(default=None, repr=False)

    @property
    def key(self) -> tuple[str, Group | None]:
        """Lens and group: what tells it from all other views of an audit."""
        return self.lens, self.group


@dataclass(frozen=True)
class Check:
    """One hypothesis: that a view is calibrated, by one statistic.

    Attributes
    ----------
    view
        What was looked at.
    statistic, measures
        Registered name, and what it measures.
    value
        Of the observed labels.
    expected
        Where 95% of the draws lie; None with a tolerance.
    pvalue, pvalue_interval
        Of this hypothesis alone, and its 95% Monte-Carlo interval.
    adjusted
        The p-value adjusted for all hypotheses of the audit; never below the p-value alone.
    found
        Whether ``adjusted`` is at most alpha.
    """

    view: View
    statistic: str
    measures: str
    value: float
    expected: tuple[float, float] | None
    pvalue: float
    pvalue_interval: tuple[float, float]
    adjusted: float
    found: bool


@dataclass(frozen=True)
class Skipped:
    """What was not looked at, and why.

    Attributes
    ----------
    what
        A group, a class, or how many of them, as text.
    rows
        Number of rows, where that is the reason.
    reason
        As a clause.
    """

    what: str
    rows: int | None
    reason: str


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """One answer from many looks at a model: frozen; ``print`` it, or see :mod:`caltest.report`.

    Attributes
    ----------
    pvalue
        Of the whole: the smallest adjusted p-value; 1/(B + 1) if a label came true that has
        probability 0. If all hypotheses are true, it is at most alpha with probability at most alpha.
    alpha
        Level of the whole.
    checks
        One a hypothesis, the strongest evidence first.
    views
        What was looked at: all rows first, then groups.
    skipped
        What was not.
    tolerance
        The error that is allowed, in units of probability; None if none is.
    correction
        How p-values are adjusted: "westfall_young", or a name of statsmodels' ("holm", "fdr_bh").
    confidence
        With which all bounds hold together: 1 − alpha.
    n_samples, n_classes, classes
        Rows, classes and their names.
    lenses, groups
        Labels of the lenses and names of the group columns asked for.
    n_resamples, seed
        Label draws, and the integer that, given as ``rng``, repeats the numbers.
    statistic
        The largest evidence of any check, −log of its tail.
    null_distribution
        (B,) the largest evidence of every draw; None where p-values are not jointly drawn.
    call
        The Python call that repeats the audit.
    warnings
        Sentences a reader should know.
    impossible
        Rows whose label has probability 0, which rejects calibration whatever the checks found; 0
        with a tolerance above 0, within which a small probability may be meant.
    recalibration
        Of two classes, where calibration is rejected: the line that would recalibrate all rows, by
        which the summary advises (:func:`caltest.recalibration`). None else.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> audit = caltest.audit(sure.probs, sure.labels, lenses="top_label", n_resamples=99, rng=0)
    >>> audit.verdict
    'The model is not calibrated: 2 of 2 checks found an error (p = 0.01).'
    >>> view = audit.found[0].view
    >>> view.lens, round(view.says, 2), round(view.share, 2), view.direction
    ('top_label', 0.85, 0.71, 'over')
    """

    pvalue: float
    alpha: float
    checks: tuple[Check, ...]
    views: tuple[View, ...]
    skipped: tuple[Skipped, ...]
    tolerance: float | None
    correction: str
    confidence: float
    n_samples: int
    n_classes: int
    classes: tuple[str, ...]
    lenses: tuple[str, ...]
    groups: tuple[str, ...]
    n_resamples: int
    seed: int
    statistic: float
    null_distribution: NDArray[np.float64] | None = field(repr=False)
    call: str
    warnings: tuple[str, ...] = ()
    impossible: int = 0
    recalibration: Recalibration | None = None

    @property
    def rejected(self) -> bool:
        """Whether calibration (within the tolerance) is rejected at level alpha."""
        return self.pvalue <= self.alpha

    @property
    def found(self) -> tuple[Check, ...]:
        """The checks whose adjusted p-value is at most alpha, the strongest evidence first."""
        return tuple(check for check in self.checks if check.found)

    @arguments()
    def to_frame(self) -> pd.DataFrame:
        """Return one row a hypothesis, in the order of ``checks``.

        Returns
        -------
        pandas.DataFrame
            Columns ``lens``, ``event``, ``column`` and ``group`` (of the group; None for all rows),
            ``rows``, ``statistic``, ``value``, ``expected_low`` and ``expected_high`` (where 95% of
            the draws lie), ``pvalue``, ``pvalue_low`` and ``pvalue_high``, ``adjusted``, ``found``,
            ``direction``, ``says``, ``share``, ``over`` and ``under``, as in :class:`Check` and
            :class:`View`.

        Notes
        -----
        Names are as the data have them, but for characters that hide (line breaks, escape sequences),
        which are written out. One that begins with ``=``, ``+``, ``-`` or ``@`` stays as it is: to a
        spreadsheet that opens a CSV file of the table it is a formula. Put an apostrophe before it
        where the file is meant for one.
        """
        import pandas as pd

        rows = []
        for check in self.checks:
            view, group = check.view, check.view.group
            low, high = check.expected or (float("nan"), float("nan"))
            cells = {
                "lens": visible(view.lens),
                "event": None if view.event is None else visible(view.event),
                "column": visible(group.column) if group else None,
                "group": visible(group.value) if group else None,
                "rows": view.rows,
                "statistic": visible(check.statistic),
                "value": check.value,
                "expected_low": low,
                "expected_high": high,
                "pvalue": check.pvalue,
                "pvalue_low": check.pvalue_interval[0],
                "pvalue_high": check.pvalue_interval[1],
            }
            cells |= {"adjusted": check.adjusted, "found": check.found}
            rows.append(cells | {name: getattr(view, name) for name in _OF_VIEWS})
        return pd.DataFrame(rows)

    @arguments(draws=flag)
    def to_dict(self, *, draws: bool = False) -> dict[str, Any]:
        """Return plain data, ready for strict JSON, as the published schema describes it.

        Parameters
        ----------
        draws
            Whether ``null_distribution`` is there too. Default False: it is long.

        Raises
        ------
        InputError
            If a check is of a view that is not among ``views``.
        """
        import scipy

        versions = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        }
        data: dict[str, Any] = {"caltest": __version__, "versions": versions}
        data |= {name: getattr(self, name) for name in (*_PLAIN, "verdict")}
        if draws:
            data["null_distribution"] = self.null_distribution
        place = {view.key: number for number, view in enumerate(self.views)}
        checks = []
        for check in self.checks:
            view = check.view
            if view.key not in place:
                where = f" in {view.group.label!r}" if view.group else ""
                raise InputError(
                    f"a check by {check.statistic!r} looks at {view.lens!r}{where}, which is not among "
                    "the audit's views; put its view there too."
                )
            others = {each.name: getattr(check, each.name) for each in fields(check)}
            checks.append(others | {"view": place[view.key]})
        data |= {"views": self.views, "checks": checks, "skipped": self.skipped}
        found: dict[str, Any] = plain(data)
        return found

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        return self._written("verdict")


_PLAIN = (
    "pvalue", "alpha", "rejected", "tolerance", "correction", "confidence", "n_samples", "n_classes",
    "classes", "lenses", "groups", "n_resamples", "seed", "statistic", "call", "warnings", "impossible",
)  # fmt: skip
_OF_VIEWS = ("direction", "says", "share", "over", "under")
