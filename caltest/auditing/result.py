"""The result of an audit: frozen, inert."""

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
from caltest.auditing.limits import BOTH, Limit
from caltest.auditing.story import rows_needed, tell
from caltest.auditing.views import Check, Rest, Sized, Skipped, Slice, View
from caltest.exceptions import Argument, InputError, Premise
from caltest.forms import Side
from caltest.results import Result, plain
from caltest.story import Finding, Step, Story, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from caltest.auditing.estimates import InUnits, Remedy, UsualNumbers
    from caltest.auditing.views import ByFeature, Curves, Sensitivity
    from caltest.cox import Recalibration
    from caltest.laws.sets import SetSizes

FailOn: TypeAlias = Literal["material", "likely", "undecided", "found", "never"]
#: Conditions under which a gate fails, by name; those that need a limit come first, strictest last.
FAIL_ON: Mapping[str, bool] = dict.fromkeys(get_args(FailOn), True)
OF_LIMITS = tuple(FAIL_ON)[:3]


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """The result of an audit: the verdict, every check, and the size of every error.

    Frozen. ``print`` it, or write it as a report (:mod:`caltest.report`).

    Attributes
    ----------
    pvalue : float
        P-value of the whole audit: the smallest adjusted p-value, or 1/(B + 1) if a label with
        predicted probability 0 was observed. If the model is calibrated, it is at most alpha with
        probability at most alpha.
    alpha : float
        Overall level.
    materiality : float, dict or None
        The size of error that matters, in units of probability (or by side, "too_low" and "too_high");
        None if not given.
    materiality_ratio : float or None
        The same as a ratio of predicted to true rate, in either direction; None if not given. If
        both are given, the wider one counts, view by view.
    checks : tuple of Check
        One per hypothesis, the strongest evidence first.
    views : tuple of View
        What was checked: all rows first, then groups.
    rests : tuple of Rest
        For every view of a group: the remaining rows of the group with one condition fewer. They
        are among the checks that p-values are adjusted for.
    skipped : tuple of Skipped
        What was not checked, and why.
    unseen : dict of str to int
        By group column: how many rows are in groups with too few rows to be checked, where these are
        most of its rows.
    tolerance : float or None
        The error that is allowed, in units of probability; None if not given.
    rounding : float or None
        The step to which probabilities were rounded; None if they were not.
    correction : str
        How p-values are adjusted: "westfall_young", or a name of statsmodels' ("holm", "fdr_bh").
    confidence : float
        Confidence with which all intervals of errors are correct together, and all bounds: 1 − alpha.
    n_samples : int
        Number of rows.
    n_classes : int
        Number of classes; 0 where outcomes are numbers.
    classes : tuple of str
        Names of the classes.
    event, time_unit : str or None
        Name of class 1 of two classes, or of the event whose time was predicted, and the unit of such
        times; None if there is none.
    about : str
        What was predicted: "probabilities of classes", "quantile forecasts", "posterior draws", ….
    functional : str or None
        What point forecasts state, "mean" or "expectile:0.7". Then ``predicted`` is the mean forecast
        and ``observed`` the mean outcome (for expectiles, ``predicted`` less the mean of 2 |1{y ≤ x} −
        τ| (x − y), which is the error), and these, errors, intervals (infinite where an end is not
        known) and limits are in units of the outcome. None otherwise: they are probabilities.
    unit : str
        What a unit of the outcome of point forecasts is called; "" if not named.
    ends : tuple of two bools
        For point forecasts, whether the smallest and the largest possible outcome are given.
    lenses, groups : tuple of str
        Labels of the lenses, and names of the group columns.
    n_resamples, seed : int
        Number of simulated label sets, and the integer that, given as ``rng``, reproduces the
        numbers.
    statistic : float
        The strongest evidence of any check, −log of its tail probability.
    null_distribution : array of shape (B,), or None
        The strongest evidence of every simulated label set; None where p-values are not computed
        jointly.
    call : str
        The Python call that repeats the audit.
    warnings : tuple of str
        Sentences a reader should know.
    premises : tuple of Premise
        What the verdict supposes and the data contradict or put in doubt
        (:class:`caltest.exceptions.Premise`).
    impossible : int
        Number of rows whose label had predicted probability 0, which rejects calibration whatever
        the checks found. 0 with a tolerance above 0, which allows for small probabilities.
    zeros : str
        Why probabilities are 0, if such a label was observed and the reason is clear; else "".
    recalibration : Recalibration or None
        For two classes, if calibration is rejected: the line that would recalibrate all rows, on
        which the summary's advice is based (:func:`caltest.recalibration`). Else None.
    sensitivity : Sensitivity or None
        If nothing is found: the smallest error of one view that would have been. Else None.
    clusters : int or None
        Number of clusters of rows that may depend on each other; None if rows are independent.
    effective_n : float or None
        Effective number of rows, (Σ w)²/Σ w², if rows have weights; else None.
    remedies : tuple of Remedy
        Where an error was found: what the usual recalibrations would gain, by cross-fitting inside
        these rows (:class:`caltest.auditing.estimates.Remedy`). Estimates, which prove nothing.
    usual : UsualNumbers or None
        The usual numbers of all rows, which only describe
        (:class:`caltest.auditing.estimates.UsualNumbers`).
    posterior : tuple
        For :func:`caltest.sbc`: how wrong every parameter is, and two together
        (``caltest.auditing.posteriors.PosteriorSize``).
    units : InUnits or None
        For predicted distributions of numbers: errors in units of the outcome, for the rows that the
        headline is about (:class:`caltest.auditing.estimates.InUnits`). Estimates. Else None.
    times : Curves or None
        For censored times: predicted and observed curves of all rows
        (:class:`caltest.auditing.views.Curves`), which describe. Else None.
    features : tuple of str
        Names of the columns that were searched for slices of rows that are wrong; none without
        ``features``.
    n_slices : int
        Number of slices; 0 without ``features``.
    slices : tuple of Slice
        Groups that nobody had named and that the search found to be wrong, those that are shown first
        (:class:`caltest.auditing.views.Slice`). They are not among the views.
    by_feature : tuple of ByFeature
        Predicted and observed along the most telling features
        (:class:`caltest.auditing.views.ByFeature`).
    described : tuple of View
        For sets: coverage in groups for which it is not claimed, with intervals that are correct
        together. They enter neither the p-value nor the verdict.
    set_sizes : SetSizes or None
        For sets, how large they are (:class:`caltest.laws.sets.SetSizes`); else None.
    at_least_by_features : float or None
        Given the features, predictions are off by at least this much on average over the half of the
        rows that was not used to learn where (confidence 1 − alpha, alone); 0 proves nothing. None
        without features, or where no bound was sought.
    sides : tuple of str
        Which errors are looked for: "under" (predicted too low) and "over". If a limit or a claim has
        one side, intervals have no end on the other, and all of alpha goes to that side.
    guaranteed : bool
        Whether only exact bounds were used: see :func:`caltest.audit`.
    sampled : bool
        Whether rows were sampled by their label; for two classes, sizes of errors then refer to
        the population.

    Notes
    -----
    *Intervals.* Errors are predicted minus observed, so a negative error means too low. Those of all
    views and all their parts form one family, which is determined by predictions and groups before any
    label is used. The V views share four fifths of alpha and the parts one fifth, half of each on
    either side. Each interval is Clopper and Pearson's for the observed rate, valid whatever the true
    probabilities of the rows (Hoeffding 1956). Where rows have weights, were sampled by their label or
    come in clusters, it is Chernoff's for the worst true probabilities, exact as well, and longer: by a
    third for a single view, by a seventh at the small levels of many, if weights are nearly equal. In
    clusters, rows may depend on each other in any way; only a view with a level of at least 1% per
    side, carried by at least 20 clusters, has a t interval, which is approximate (``View.exact``).
    Because all are correct together, you may freely choose which to show.

    *Within a limit.* To show that *every* mean is within the limit takes no correction: each view, and
    all other rows of each larger group, must pass its own two one-sided tests at level alpha. If one of
    them is truly beyond the limit, its own test passes with probability at most alpha
    (intersection–union test; Berger 1982). This holds wherever intervals are exact. For t intervals it
    supposes that no effect is confined to a share of the clusters below ``could_miss``: what occurred
    in no cluster cannot be seen. The claim is not about parts: a fifth of the predictions may be
    further off than the mean of all.

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

    derived = (
        "verdict", "headline", "rejected", "at_most", "n_checks", "rows_needed", "could_miss",
    )  # fmt: skip

    pvalue: float
    alpha: float
    materiality: Any
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
    posterior: tuple[Any, ...] = ()
    times: Curves | None = None
    unseen: Mapping[str, int] = field(default_factory=dict)
    about: str = "probabilities of classes"
    guaranteed: bool = False
    sides: tuple[Side, ...] = BOTH
    time_unit: str | None = None
    functional: str | None = None
    unit: str = ""
    ends: tuple[bool, bool] = (False, False)
    features: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()
    by_feature: tuple[ByFeature, ...] = ()
    n_slices: int = 0
    at_least_by_features: float | None = None
    described: tuple[View, ...] = ()
    set_sizes: SetSizes | None = None
    rows_in_all: int | None = field(default=None, repr=False)  #: For all views; see ``rows_needed``.

    @property
    def exact_intervals(self) -> bool:
        """Whether all intervals of mean errors are exact; if not, some hold approximately."""
        return all(view.exact for view in self.views)

    @property
    def could_miss(self) -> float | None:
        """Largest ``could_miss`` of views and rests: the share of clusters that "within" leaves out.

        An effect confined to a smaller share of clusters may not have occurred in any of them. None if
        all intervals are exact.
        """
        return max((each.could_miss for each in self._wholes if each.could_miss), default=None)

    @property
    def _wholes(self) -> tuple[Any, ...]:
        return *self.views, *self.rests

    @property
    def is_censored(self) -> bool:
        """Whether outcomes are censored times with unknown follow-up."""
        return any(view.events is not None for view in self.views)

    @property
    def by_intervals(self) -> bool:
        """Whether p-values come from intervals of the observed risk, without any draws."""
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

    @cached_property
    def wrong_views(self) -> frozenset[Any]:
        """Keys of the views in which a check found an error, and of the slices that were found."""
        return frozenset([*(check.view.key for check in self.found), *(of.key for of in self.slices)])

    @property
    def n_checks(self) -> int:
        """Number of checks for which p-values are adjusted: those of views and of rests."""
        return len(self.checks) + len(self.rests)

    @cached_property
    def story(self) -> Story:
        """The story of the audit: main finding, findings beyond the limit, and next steps."""
        return tell(self)

    @property
    def verdict(self) -> Verdict:
        """The answer in a word.

        Without a limit "found" or "not found", which does not prove that there is no error. With one:
        "material": an error was found, and a joint interval lies beyond the limit; "likely": an error
        was found, the direction of a mean is proved and its estimate lies beyond the limit, though its
        interval reaches inside; "within": every view, and all other rows of every larger group, is
        shown to be within the limit by its own tests at level alpha, nothing lies beyond, what was not
        checked is within by its own limits too, and no premise withholds it (``withheld``);
        "undecided": none of these. If the mean error of any view is beyond the limit, "within" has
        probability alpha at most (see Notes); so have "material" or "likely" for a calibrated model.
        """
        verdict: Verdict = self.story.verdict
        return verdict

    @property
    def withheld(self) -> tuple[Premise, ...]:
        """Premises in doubt that rule out the verdict "within", whatever the intervals show."""
        return tuple(each for each in self.premises if each.withholds)

    @cached_property
    def limit(self) -> Limit:
        """The mean error that matters; falsy if there is none."""
        return Limit.of(self.materiality, self.materiality_ratio, self.sides)

    @property
    def unsettled(self) -> tuple[View | Rest, ...]:
        """Views and rests proved neither within nor beyond the limit, with their ``rows_needed``.

        Ordered by how many times as many rows they need, the largest first, with rests last; empty
        without a limit.
        """
        return tuple(each.of for each in self.story.unsettled)

    @property
    def rows_needed(self) -> int | None:
        """Rows in total that would settle everything, if groups keep their shares.

        With so many rows all would be proved within with probability 80% if the model is calibrated.
        None if more rows would settle nothing, or no number of rows is enough.
        """
        return rows_needed(self, self.story.unsettled)

    @arguments()
    def fails(self, fail_on: FailOn | None = None) -> bool:
        """Whether a gate fails.

        Parameters
        ----------
        fail_on : {"material", "likely", "undecided", "found", "never"}, optional
            "material": only if an error is shown to be larger than the limit; "likely": if it is that,
            or likely to be; "undecided": if it is not shown to be within either; "found": if any error
            is found, whatever its size; "never". Default: "likely" with a limit, "found" if none.

        Raises
        ------
        InputError
            If "material", "likely" or "undecided" is given without a limit.
        """
        if (on := gate_of(fail_on, bool(self.limit))) not in OF_LIMITS:
            return on == "found" and self.rejected
        return self.verdict in OF_LIMITS[: 1 + OF_LIMITS.index(on)]

    @property
    def at_most(self) -> float | None:
        """Upper bound for the mean error of any view or part; None if it cannot be bounded."""
        if self.limit.only:
            return None
        sized = [*self._wholes, *(part for view in self.views for part in view.parts)]
        most = max((each.most for each in sized if each.low is not None), default=math.inf)
        return most if most < math.inf else None

    @property
    def most_of_views(self) -> float:
        """Upper bound for the mean error of any view; parts of views may be further off."""
        return max((view.most for view in self.views if view.low is not None), default=0.0)

    @property
    def worst(self) -> View | Any:  # Any: its numbers are known not to be None
        """The view with the largest proved mean error; None if none has a proved direction.

        With a limit, errors beyond it come first, then likely ones. A group is left out if labels of
        probability 0 are a larger share of all other rows than its proved error.
        """
        if self.tolerance is not None:  # in these audits no mean leads
            wrong = (view for view in self.views if view.side and view.key in self.wrong_views)
            return max(wrong, key=lambda view: view.proved, default=None)
        return next((each.of for each in self.story.named if each.kind == "mean"), None)

    @property
    def headline(self) -> str:
        """The answer in one sentence: event, group, direction and size, where they are proved."""
        return self._written("headline")

    def _repr_html_(self) -> str:
        """Return the first screen of the report, for notebooks."""
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

        def cells(check: Check) -> tuple[Any, ...]:
            view, group = check.view, check.view.group
            where = (group.column, group.value) if group else (None, None)
            shown = [name and visible(name) for name in (view.lens, view.event, *where)]
            ends = check.expected or (float("nan"), float("nan"))
            own = check.pvalue, *check.pvalue_interval, check.adjusted, check.found
            of_view = [getattr(view, name) for name in _OF_VIEWS]
            return *shown, view.rows, visible(check.statistic), check.value, *ends, *own, *of_view

        rows = [dict(zip((*_OF_CHECKS, *_OF_VIEWS), cells(each), strict=True)) for each in self.checks]
        return pd.DataFrame(rows)

    @arguments(draws=flag)
    def to_dict(self, *, draws: bool = False) -> dict[str, Any]:
        """Return plain data, ready for strict JSON, as the published schema describes it.

        An end of an interval that is not known is None there, and infinite elsewhere.

        Parameters
        ----------
        draws : bool, default False
            Whether ``null_distribution`` is there too. Default False: it is long.
        """
        import scipy

        versions = {"python": platform.python_version()}
        versions |= {"numpy": np.__version__, "scipy": scipy.__version__}
        data: dict[str, Any] = {"caltest": __version__, "versions": versions}
        data |= dict.fromkeys(self.derived)
        data |= self._plain(*_APART, *(() if draws else ("null_distribution",)))
        listed: tuple[tuple[Any, ...], ...] = (self.views, self.rests, self.slices)
        place = {of.id: k for every in listed for k, of in enumerate(every)}
        slices = {each.id for each in self.slices}

        def sized(of: Sized) -> dict[str, Any]:
            return {**of.to_dict(), "error": of.error}

        def left_by(remedy: Remedy) -> list[dict[str, Any]]:
            return [
                {"slice" if key in slices else "view": place[key], "predicted": stated, "error": error}
                for key, stated, error in remedy.left
            ]

        def found_of(each: Any) -> Any:
            """Return findings and steps as plain data that point to views and rests."""
            if isinstance(each, Finding):
                part, kind = each.part, type(each.of)
                at = place[each.of.id] if issubclass(kind, Sized) else None
                kinds: dict[str, type] = {"view": View, "rest": Rest, "slice": Slice}
                places = {key: at if kind is of else None for key, of in kinds.items()}
                own = {"part": part and [part.of, part.place], "side": each.side, "place": each.place}
                return {"kind": each.kind, **places, **own}
            if isinstance(each, Step):
                return {"code": each.code, "facts": found_of(dict(each.facts))}
            if isinstance(each, dict):
                return {name: found_of(value) for name, value in each.items()}
            return [found_of(one) for one in each] if isinstance(each, list | tuple) else each

        told = ("found", "subject", "whole", "opposite", "others", "unsettled", "steps")
        data |= plain(
            {
                "story": {name: found_of(getattr(self.story, name)) for name in told},
                "worst": place[self.worst.key] if type(self.worst) is View else None,
                "views": [sized(view) | {"parts": list(map(sized, view.parts))} for view in self.views],
                "checks": [vars(check) | {"view": place[check.view.key]} for check in self.checks],
                "rests": list(map(sized, self.rests)),
                "described": list(map(sized, self.described)),
                "slices": [
                    {"rule": each.rule} | {k: v for k, v in sized(each).items() if k in _OF_SLICES}
                    for each in self.slices
                ],
                "remedies": [vars(each) | {"left": left_by(each)} for each in self.remedies],
            }
        )
        return data


def gate_of(fail_on: str | None, limited: bool) -> FailOn:
    """Return when a gate fails, by default depending on the limit; raise if it lacks a limit."""
    on: Any = fail_on if fail_on is not None else "likely" if limited else "found"
    choose("gate", on, FAIL_ON)
    if on in OF_LIMITS and not limited:
        raise InputError(
            "{asked} needs a limit; give {limit}, say, or {found}.",
            asked=Argument("fail_on", on),
            limit=Argument("materiality", 0.02),
            found=Argument("fail_on", "found"),
        )
    return on  # type: ignore[no-any-return]


#: Fields that plain data hold in another form, or not at all.
_APART = (
    "views", "checks", "rests", "slices", "described", "remedies", "recalibration", "zeros",
    "rows_in_all",
)  # fmt: skip
_OF_SLICES = (
    "rule", "lens", "group", "rows", "predicted", "observed", "error", "low", "high", "own_low",
    "own_high", "inside", "rows_needed", "adjusted_pvalue", "shown",
)  # fmt: skip
_OF_CHECKS = (
    "lens", "event", "column", "group", "rows", "statistic", "value", "expected_low", "expected_high",
    "pvalue", "pvalue_low", "pvalue_high", "adjusted", "found",
)  # fmt: skip
_OF_VIEWS = (
    "predicted", "observed", "error", "low", "high", "direction", "shape", "at_least_over",
    "at_least_under", "own_low", "own_high",
)  # fmt: skip
