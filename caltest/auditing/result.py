"""The audit: frozen, inert."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from caltest import _printers
from caltest._arguments import arguments, choose, flag
from caltest._version import __version__
from caltest._visible import visible
from caltest.auditing.limits import Limit, Place
from caltest.auditing.views import Check, Curves, Group, Part, Rest, Sensitivity, Sized, Skipped, View
from caltest.exceptions import Argument, InputError, Premise
from caltest.forms import Side
from caltest.results import Result, plain

if TYPE_CHECKING:
    import pandas as pd

    from caltest.auditing.estimates import InUnits, Remedy, UsualNumbers
    from caltest.cox import Recalibration

FailOn: TypeAlias = Literal["material", "undecided", "found", "never"]
#: When a gate fails, by name.
FAIL_ON: Mapping[str, bool] = dict.fromkeys(get_args(FailOn), True)
Verdict: TypeAlias = Literal["material", "undecided", "within", "found", "not found"]
POSTERIOR = "posterior draws"  #: What :func:`caltest.sbc` is about.


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """The result of an audit: the verdict, every check, and the size of every error.

    Frozen. ``print`` it, or write it as a report (:mod:`caltest.report`).

    Attributes
    ----------
    pvalue
        P-value of the whole audit: the smallest adjusted p-value, or 1/(B + 1) if a label with
        predicted probability 0 was observed. If the model is calibrated, it is at most alpha with
        probability at most alpha.
    alpha
        Overall level.
    materiality, materiality_ratio
        The size of error that matters, in units of probability, or as a ratio of predicted to true
        rate in either direction; None if not given. Of both, the wider one counts, view by view.
    checks
        One per hypothesis, the strongest evidence first.
    views
        What was checked: all rows first, then groups.
    rests
        For every view of a group: the remaining rows of the group with one condition fewer. They
        are among the checks that p-values are adjusted for.
    skipped
        What was not checked, and why.
    unseen
        Of group columns most of whose rows are in groups with too few rows to be checked: how many
        rows are, by column.
    tolerance
        The error that is allowed, in units of probability; None if not given.
    rounding
        The step to which probabilities were rounded; None if they were not.
    correction
        How p-values are adjusted: "westfall_young", or a name of statsmodels' ("holm", "fdr_bh").
    confidence
        Confidence with which all intervals of errors are correct together, and all bounds: 1 − alpha.
    n_samples, n_classes, classes
        Rows, classes and their names; 0 classes where outcomes are numbers.
    event
        What class 1 of two classes is called; None for more classes.
    about
        What was predicted: "probabilities of classes", "quantile forecasts", "posterior draws", ….
    lenses, groups
        Labels of the lenses and names of the group columns asked for.
    n_resamples, seed
        Number of simulated label sets, and the integer that, given as ``rng``, reproduces the
        numbers.
    statistic
        The strongest evidence of any check, −log of its tail probability.
    null_distribution
        The strongest evidence of every simulated label set, (B,); None where p-values are not
        computed jointly.
    call
        The Python call that repeats the audit.
    warnings
        Sentences a reader should know.
    premises
        What the verdict supposes and the data contradict or put in doubt
        (:class:`caltest.exceptions.Premise`).
    impossible
        Number of rows whose label had predicted probability 0, which rejects calibration whatever
        the checks found. 0 with a tolerance above 0, which allows for small probabilities.
    zeros
        Why probabilities are 0, if such a label was observed and the reason is clear; else "".
    recalibration
        For two classes, if calibration is rejected: the line that would recalibrate all rows, on
        which the summary's advice is based (:func:`caltest.recalibration`). Else None.
    sensitivity
        If nothing is found: the smallest error of one view that would have been. Else None.
    clusters
        Number of clusters of rows that may depend on each other; None if rows are independent.
    effective_n
        Effective number of rows, (Σ w)²/Σ w², if rows have weights; else None.
    remedies
        Where an error was found: what the usual recalibrations would gain, by cross-fitting inside
        these rows (:class:`caltest.auditing.estimates.Remedy`). Estimates, which prove nothing.
    usual
        The usual numbers of all rows (:class:`caltest.auditing.estimates.UsualNumbers`): they describe.
    units
        Of predicted distributions of numbers: errors in units of the outcome, of the rows that the
        headline is about (:class:`caltest.auditing.estimates.InUnits`). Estimates. Else None.
    times
        Of censored times: predicted and observed curves of all rows
        (:class:`caltest.auditing.views.Curves`), which describe. Else None.
    guaranteed
        Whether only exact bounds were used: see :func:`caltest.audit`.
    sampled
        Whether rows were sampled by their label; for two classes, sizes of errors then refer to
        the population.

    Notes
    -----
    *Intervals.* Errors are predicted minus observed, so a negative error means too low. Those of
    all views and all their parts form one family, which is determined by predictions and groups
    before any label is used. The V views share four fifths of alpha and the parts one fifth, half
    of each on either side. Each interval is Clopper and Pearson's for the observed rate, valid
    whatever the true probabilities of the rows (Hoeffding 1956). Where rows have weights, were
    sampled by their label or come in clusters, it is Chernoff's for the worst true probabilities,
    exact as well, and longer: by a third for a single view, by a seventh at the small levels of
    many, if weights are nearly equal. In clusters, rows may depend on each other in any way; only a
    view with a level of at least 1% a side that at least 20 clusters carry has an interval of t,
    which is approximate (``View.exact``). Because all are correct together, you may freely choose
    which to show.

    *Within a limit.* To show that *every* mean is within the limit takes no correction: each view, and
    what each group leaves, has to pass its own two one-sided tests at level alpha. If one of them is
    beyond in truth, the claim has to pass the test of that one, with a probability of alpha at most
    (intersection–union test; Berger 1982). It holds wherever intervals are exact. Where they are of t,
    it supposes that no effect is confined to a share of the clusters below ``could_miss``: what
    occurred in no cluster cannot be seen. Parts are not in it:
    a fifth of the predictions may be further off than the mean of all.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> audit = caltest.audit(sure.probs, sure.labels, lenses="top_label", n_resamples=99, rng=0)
    >>> audit.verdict, audit.headline
    ('found', "The model's confidence in its top class is about 14 percentage points too high.")
    >>> view = audit.worst
    >>> view.lens, round(view.predicted, 2), round(view.observed, 2), view.direction
    ('top_label', 0.85, 0.71, 'over')
    """

    pvalue: float
    alpha: float
    materiality: float | None
    materiality_ratio: float | None
    checks: tuple[Check, ...]
    views: tuple[View, ...]
    rests: tuple[Rest, ...]
    skipped: tuple[Skipped, ...]
    tolerance: float | None
    rounding: float | None
    correction: str
    confidence: float
    n_samples: int
    n_classes: int
    classes: tuple[str, ...]
    event: str | None
    lenses: tuple[str, ...]
    groups: tuple[str, ...]
    n_resamples: int
    seed: int
    statistic: float
    null_distribution: NDArray[np.float64] | Any
    call: str
    warnings: tuple[str, ...] = ()
    premises: tuple[Premise, ...] = ()
    impossible: int = 0
    zeros: str = ""
    recalibration: Recalibration | None = None
    sensitivity: Sensitivity | None = None
    clusters: int | None = None
    effective_n: float | None = None
    sampled: bool = False
    remedies: tuple[Remedy, ...] = ()
    usual: UsualNumbers | None = None
    units: InUnits | None = None
    times: Curves | None = None
    unseen: Mapping[str, int] = field(default_factory=dict)
    about: str = "probabilities of classes"
    guaranteed: bool = False
    rows_in_all: int | None = field(default=None, repr=False)  #: For all views; see ``rows_needed``.

    @property
    def exact_intervals(self) -> bool:
        """Whether all intervals of mean errors are exact; else some are right for many clusters."""
        return all(view.exact for view in self.views)

    @property
    def could_miss(self) -> float | None:
        """Largest ``could_miss`` of views and rests: the share of clusters that "within" leaves out.

        An effect confined to fewer of the clusters may have occurred in none of them. None if all
        intervals are exact.
        """
        return max((each.could_miss for each in self.wholes if each.could_miss), default=None)

    @property
    def is_censored(self) -> bool:
        """Whether it is about censored times whose follow-up is not known."""
        return any(view.events is not None for view in self.views)

    @property
    def by_intervals(self) -> bool:
        """Whether p-values are read off intervals of the observed risk, with no draws at all."""
        counts = [view.events for view in self.views]
        return bool(counts) and all(each is not None and each.expected is None for each in counts)

    @property
    def rejected(self) -> bool:
        """Whether calibration (within the tolerance) is rejected at level alpha."""
        return self.pvalue <= self.alpha

    @property
    def found(self) -> tuple[Check, ...]:
        """The checks whose adjusted p-value is at most alpha, the strongest evidence first."""
        return tuple(check for check in self.checks if check.found)

    @property
    def n_checks(self) -> int:
        """How many checks p-values are adjusted for: those of views and those of rests."""
        return len(self.checks) + len(self.rests)

    @property
    def verdict(self) -> Verdict:
        """The answer in a word.

        Without a limit "found" or "not found", which does not prove that there is no error. With one:
        "material": an error was found, and a simultaneous interval lies beyond the limit; "within":
        every view, and what every group leaves, is shown to be within the limit by its own tests at
        level alpha, nothing lies beyond, what was not checked is within by its own limits too, and no
        premise withholds it (``withheld``); "undecided": neither. If the mean error of any view is
        beyond the limit, the probability of "within" is at most alpha (see Notes).
        """
        if not self.limit:
            return "found" if self.rejected else "not found"
        if self.beyond:
            return "material" if self.rejected else "undecided"
        wholes = self.wholes
        shown = bool(wholes) and all(each.inside for each in wholes)
        return "within" if shown and not self.withheld and not self.unvouched else "undecided"

    @property
    def withheld(self) -> tuple[Premise, ...]:
        """The premises because of which "within" is not said, whatever intervals show."""
        return tuple(each for each in self.premises if each.withholds)

    @property
    def unvouched(self) -> tuple[Skipped, ...]:
        """What was not checked, and is not shown to be within the limit by its own limits either."""
        return tuple(each for each in self.skipped if each.inside is False)

    @property
    def limit(self) -> Limit:
        """The mean error that matters; it is false where none was given."""
        return Limit(self.materiality, self.materiality_ratio)

    @property
    def wholes(self) -> tuple[View | Rest, ...]:
        """All that has to be within a limit: views of an event, and what groups leave."""
        return tuple(whole for whole, part in intervals(self) if part is None)

    @property
    def beyond(self) -> tuple[tuple[View | Rest, Part | None], ...]:
        """The views, their parts, and rests whose simultaneous interval lies beyond the limit."""
        return tuple(
            (whole, part)
            for whole, part in intervals(self)
            if against_limit(self, part or whole) == "beyond"
        )

    @property
    def unsettled(self) -> tuple[View | Rest, ...]:
        """What is neither shown to be within the limit nor to lie beyond it; ``rows_needed`` of each.

        Views first, then what groups leave; empty without a limit.
        """
        return tuple(
            each
            for each in self.wholes
            if each.inside is False and against_limit(self, each) != "beyond"
        )

    @property
    def rows_needed(self) -> int | None:
        """How many rows in all would settle everything, if groups keep their shares of the rows.

        All are shown to be within with a probability of 80%, were the model calibrated. None where
        nothing is unsettled for want of rows, or no number of them would do.
        """
        wanted = [(each.rows_needed, each.rows) for each in self.unsettled]
        if any(needed is None for needed, _ in wanted):
            return None
        most = max(((needed or 0) / rows for needed, rows in wanted), default=0.0)
        return max(math.ceil(most * self.n_samples), self.rows_in_all or 0) if most > 1.0 else None

    @arguments()
    def fails(self, fail_on: FailOn | None = None) -> bool:
        """Whether a gate fails.

        Parameters
        ----------
        fail_on
            "material": only if an error is shown to be larger than the limit; "undecided": if it is
            not shown to be within either; "found": if any error is found, whatever its size; "never".
            Default: "material" with a limit, "found" without.

        Raises
        ------
        InputError
            If "material" or "undecided" is asked for without a limit.
        """
        on = gate_of(fail_on, bool(self.limit))
        failed = {"material": ("material",), "undecided": ("material", "undecided")}
        return self.rejected if on == "found" else self.verdict in failed.get(on, ())

    @property
    def at_most(self) -> float | None:
        """How large the mean error of any view or part is at most; None without an event."""
        return max(((part or whole).most for whole, part in intervals(self)), default=None)

    @cached_property
    def worst(self) -> View | Any:  # so that what is known to be there need not be checked for types
        """The view that explains the finding; None if nothing is found, or it has no direction.

        Its mean is found to be wrong, with a proved direction; its rest in every parent has neither a
        finding nor a larger error; and no view of a part of its rows through the same lens is such. Of
        these it is that with the largest proved error. Where none is, it is the largest one that is
        found. A group explains nothing if labels of probability 0 are a larger share of all other rows
        than its proved error.
        """
        if not self.rejected:
            return None
        wrong, best = self._wrong_means, self.explanations
        if not best:
            return max(wrong, key=lambda each: (each.rows, each.proved), default=None)
        return max(best, key=lambda each: each.proved)

    @property
    def _wrong_means(self) -> list[View]:
        """Views whose mean is found to be wrong, with a proved direction."""
        # Where the mean itself was checked, that is the check which has to find the error.
        means = {check.view.key: check.found for check in self.checks if check.statistic == "citl"}
        found = {check.view.key for check in self.found if means.get(check.view.key, True)}
        wrong = [view for view in self.views if view.key in found and shows(self, view)]
        return [view for view in wrong if explains_zeros(self, view)]

    @cached_property
    def explanations(self) -> list[View]:
        """The smallest views that explain an error, as ``worst`` says; none is a part of another."""
        rests: dict[tuple[str, Group | None], list[Rest]] = {}
        for rest in self.rests:
            rests.setdefault((rest.lens, rest.group), []).append(rest)

        def explains(view: View) -> bool:
            size, others = abs(view.error or 0.0), rests.get(view.key, [])
            known = view.group is None or bool(others)  # without them nothing tells it from its parents
            return known and not any(rest.found or abs(rest.error) >= size for rest in others)

        best = [view for view in self._wrong_means if explains(view)]
        return [view for view in best if not any(view.holds(each) for each in best)]

    @property
    def told(self) -> View | None:
        """The view that the answer is about.

        That furthest beyond the limit, if the worst is not beyond; else the worst. Without these one
        whose mean is found to be wrong, of two classes; else one with a shape; else that of the most
        events too many or too few; else the strongest.
        """
        worst, views = self.worst, [check.view for check in self.found]
        views = [view for view in views if explains_zeros(self, view)]
        views.sort(key=lambda view: view.lens.startswith("ranks:"))  # what names entries comes first
        if self.verdict == "material" and (worst is None or against_limit(self, worst) != "beyond"):
            far = [(part or whole, whole) for whole, part in self.beyond if isinstance(whole, View)]
            if far:
                return max(far, key=lambda each: each[0].proved)[1]
        if self.tolerance is not None and views:  # rests are not looked at: the largest error
            return max(views, key=lambda view: abs(view.error or 0.0))
        means = [view for view in views if finds_mean(self, view)] if self.n_classes == 2 else []
        shaped = [view for view in views if view.shape]
        counts = [view for view in views if view.events is not None]
        counts.sort(key=lambda view: -view.events.proved)
        return worst or next(iter(means or shaped or counts or views), None)

    @property
    def headline(self) -> str:
        """The answer in one sentence: event, group, direction and size, where they are proved."""
        return self._written("headline")

    def _repr_html_(self) -> str:
        """Return the first screen of its report, as notebooks show it."""
        return _printers.to_fragment(self)

    @arguments()
    def to_frame(self) -> pd.DataFrame:
        """Return one row a hypothesis, in the order of ``checks``.

        Returns
        -------
        pandas.DataFrame
            Columns ``lens``, ``event``, ``column`` and ``group`` (None for all rows), ``rows``,
            ``statistic``, ``value``, ``expected_low`` and ``expected_high`` (where 95% of the draws
            lie), ``pvalue``, ``pvalue_low`` and ``pvalue_high``, ``adjusted``, ``found``,
            ``predicted``, ``observed``, ``error``, ``low``, ``high``, ``direction``, ``shape``,
            ``at_least_over``, ``at_least_under``, ``own_low`` and ``own_high``, as in :class:`Check`
            and ``View``.

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
                "adjusted": check.adjusted,
                "found": check.found,
            }
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

        versions = {"python": platform.python_version()}
        versions |= {"numpy": np.__version__, "scipy": scipy.__version__}
        data: dict[str, Any] = {"caltest": __version__, "versions": versions}
        data |= {name: getattr(self, name) for name in _PLAIN}
        if draws:
            data["null_distribution"] = self.null_distribution
        place = {view.key: number for number, view in enumerate(self.views)}
        for check in self.checks:
            if check.view.key not in place:
                where = f" in {check.view.group.label!r}" if check.view.group else ""
                raise InputError(
                    f"a check by {check.statistic!r} looks at {check.view.lens!r}{where}, which is not "
                    "among the audit's views; put its view there too."
                )

        def sized(of: Sized) -> dict[str, Any]:
            return {**plain(of), "error": of.error}

        data |= {
            "worst": None if self.worst is None else place[self.worst.key],
            "views": [sized(view) | {"parts": list(map(sized, view.parts))} for view in self.views],
            "checks": [vars(check) | {"view": place[check.view.key]} for check in self.checks],
            "rests": list(map(sized, self.rests)),
            "skipped": self.skipped,
            "sensitivity": self.sensitivity,
            "remedies": self.remedies,
            "usual": self.usual,
            "units": self.units,
            "times": self.times,
        }
        found: dict[str, Any] = plain(data)
        return found


def gate_of(fail_on: str | None, limited: bool) -> FailOn:
    """Return when a gate fails, by the default if need be; raise if that takes a limit."""
    usual = "material" if limited else "found"
    on: Any = usual if fail_on is None else fail_on
    choose("gate", on, FAIL_ON)
    if on in ("material", "undecided") and not limited:
        raise InputError(
            "{asked} needs a limit; give {limit}, say, or {found}.",
            asked=Argument("fail_on", on),
            limit=Argument("materiality", 0.02),
            found=Argument("fail_on", "found"),
        )
    return on  # type: ignore[no-any-return]


# ------------------------------------------------------------------ where intervals lie
#
# Whatever an audit says of sizes is decided here, interval by interval: on which side of 0 it lies
# (`Sized.side`), whether a check has shown that (`shows`), and where it lies against the limit
# (`against_limit`). `Audit.verdict` is the sum of these.


def intervals(audit: Audit) -> list[tuple[View | Rest, Part | None]]:
    """List all that has an interval: views, their parts, and what groups leave."""
    views = [view for view in audit.views if view.low is not None]
    found = [(view, part) for view in views for part in (None, *view.parts)]
    return [*found, *((rest, None) for rest in audit.rests)]


def shows(audit: Audit, of: View | Part | Rest) -> Side | None:
    """Return which way an error is shown: checks found it, and its interval lies on one side of 0.

    A part has no check of its own: there it is the audit that has to find an error.
    """
    pvalue = audit.pvalue if isinstance(of, Part) else max(audit.pvalue, of.adjusted_pvalue)
    return of.side if pvalue <= audit.alpha else None


def finds_mean(audit: Audit, view: View) -> bool:
    """Say whether the check of a view's mean found an error, though its interval may hold 0."""
    return any(check.statistic == "citl" and check.view.key == view.key for check in audit.found)


def explains_zeros(audit: Audit, view: View) -> bool:
    """Say whether labels of probability 0 are no larger a share outside a group than its error is."""
    if view.group is None or view.impossible is None:
        return True
    return audit.impossible - view.impossible <= view.proved * (audit.n_samples - view.rows)


def against_limit(audit: Audit, of: Sized) -> Place:
    """Say where an error's interval lies: "beyond" the limit, "inside" it, or "across"."""
    if of.predicted is None or of.low is None or of.high is None or not audit.limit:
        return "across"
    return audit.limit.place(of.predicted, of.low, of.high)


_PLAIN = (
    "verdict", "headline", "pvalue", "alpha", "rejected", "materiality", "materiality_ratio", "at_most",
    "tolerance", "rounding", "correction", "confidence", "n_samples", "n_classes", "classes", "event",
    "about", "lenses", "groups", "n_checks", "n_resamples", "seed", "statistic", "call", "warnings",
    "premises", "impossible", "clusters", "effective_n", "sampled", "unseen", "rows_needed",
    "guaranteed", "could_miss",
)  # fmt: skip
_OF_VIEWS = (
    "predicted", "observed", "error", "low", "high", "direction", "shape", "at_least_over",
    "at_least_under", "own_low", "own_high",
)  # fmt: skip
