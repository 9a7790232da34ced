"""Plan an audit: the rows needed to prove that all mean errors are within a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import Number, arguments
from caltest._numbers import counted
from caltest.auditing.draws import subtractions
from caltest.auditing.groups import read_groups
from caltest.auditing.limits import Goal, Limit, Wanted, joint_chance, quickest, rows_in_all
from caltest.auditing.limits import rows_needed as rows_of
from caltest.auditing.options import ALPHA, INTERSECTIONS, LENSES, MIN_ROWS, Options
from caltest.auditing.plan import make_plan
from caltest.auditing.sizes import Design, few_carry
from caltest.auditing.views import Group, Skipped
from caltest.bounds.intervals import LARGEST_LEVEL
from caltest.data import Sample, predictions
from caltest.exceptions import Argument, InputError
from caltest.laws import Sets
from caltest.planning.simulate import check_rows
from caltest.results import Facts, Result
from caltest.story import Finding, Step, Story

if TYPE_CHECKING:
    import pandas as pd

    from caltest.auditing.options import Lenses, Materiality


@dataclass(frozen=True, kw_only=True, repr=False)
class PlannedView(Facts):
    """A planned view: one probability on all rows, on a group, or on the rows outside a group.

    Attributes
    ----------
    lens : str
        As in :class:`caltest.auditing.views.View`.
    event : str or None
        As there.
    group : Group or None
        As there.
    without : Group or None
        The group whose rows are left out of ``group``; else None.
    share : float
        Share of all rows, in (0, 1].
    predicted : float
        Mean probability of the event.
    rows : int or None
        Rows of the view that prove it within the limit by itself; None if no number suffices.
    """

    lens: str
    event: str | None
    group: Group | None
    without: Group | None
    share: float
    predicted: float
    rows: int | None

    @property
    def n(self) -> int | None:
        """Rows needed in total, if groups keep their shares."""
        return None if self.rows is None else math.ceil(self.rows / self.share)


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditPlan(Result):
    """The number of rows needed to prove that all mean errors are within a limit.

    Attributes
    ----------
    n : int or None
        Rows in total; None if no number suffices.
    power : float
        Probability that ``n`` rows prove all views within the limit.
    views : tuple of PlannedView
        Planned views, the one that needs most rows first.
    materiality : float, dict or None
        The limit, as in :func:`caltest.audit`.
    materiality_ratio : float or None
        The limit as a ratio.
    alpha : float
        The level of the audit.
    error : float
        Assumed error of the mean of every view, in the direction that is harder to settle.
    wanted : float
        The probability requested; with ``n`` given, that of each view by itself in ``views``.
    n_samples : int
        Number of rows of the pilot.
    clustered : bool
        Whether its rows are in clusters; rows of a cluster are assumed to be fully dependent.
    skipped : tuple of Skipped
        Views that the audit would leave out, and why.
    warnings : tuple of str
        Advice if few clusters carry the errors.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> planned = caltest.plan(digits.probs, lenses="top_label", materiality=0.02, n=500)
    >>> round(planned.power, 2), planned.to_frame()["rows"].tolist()
    (0.45, [823])
    """

    n: int | None
    power: float
    views: tuple[PlannedView, ...]
    materiality: Any
    materiality_ratio: float | None
    alpha: float
    error: float
    wanted: float
    n_samples: int
    clustered: bool = False
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def limit(self) -> Limit:
        """The mean error that matters."""
        return Limit.of(self.materiality, self.materiality_ratio)

    @property
    def story(self) -> Story:
        """The story of the plan: the view that needs most rows, and next steps."""
        steps = [Step("wider")] if self.n is None else []
        least = min(filter(None, (*self.limit[:2], 0.02))) / 4
        steps += [] if self.error else [Step("error", {"error": least})]
        return Story("", subject=Finding("mean", self.views[0]), steps=(*steps, Step("rows")))

    @arguments()
    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each view.

        Returns
        -------
        pandas.DataFrame
            Columns ``lens``, ``event``, ``group``, ``without``, ``share``, ``predicted``, ``rows`` and
            ``n``, as in :class:`PlannedView`; groups as text.
        """
        import pandas as pd

        made = []
        for view in self.views:
            row = {**vars(view), "n": view.n}
            made.append({name: str(of) if isinstance(of, Group) else of for name, of in row.items()})
        return pd.DataFrame(made).astype({"rows": "Int64", "n": "Int64"})


@arguments(
    error=Number(0.0, 1.0, "[)", "give a difference of probabilities, 0.005 for half a point"),
    power=Number(0.0, 1.0, advice="give a probability between 0 and 1, such as 0.8"),
)
def plan(
    probs: object,
    *,
    materiality: Materiality = None,
    materiality_ratio: float | None = None,
    groups: object = None,
    intersections: int = INTERSECTIONS,
    n: int | None = None,
    error: float = 0.0,
    power: float = 0.8,
    alpha: float = ALPHA,
    weights: object = None,
    clusters: object = None,
    logits: bool = False,
    lenses: Lenses = LENSES,
    min_rows: int = MIN_ROWS,
) -> AuditPlan:
    """Find how many rows an audit needs to show that all mean errors are within a limit.

    The predictions and groups of a pilot determine the views of the audit; its labels are not needed.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), or data frame
        Predicted probabilities of a pilot, as in :func:`caltest.test`; future rows are assumed to have
        predictions and groups in the same shares. If the model will be recalibrated, give the
        recalibrated ones. Labels of a :class:`caltest.data.Sample` are not looked at.
    materiality : float, or dict by side, optional
        The limit, as in :func:`caltest.audit`. Give this one, the next, or both.
    materiality_ratio : float, optional
        The limit as a ratio, as in :func:`caltest.audit`.
    groups : data frame, dict of columns, or one column, optional
        As in :func:`caltest.audit`. Every group makes the answer larger: the smallest decides it.
    intersections : int, default 2
        As in :func:`caltest.audit`.
    lenses : str, Lens, or sequence of them
        As in :func:`caltest.audit`, with the same default.
    min_rows : int, default 50
        Smallest group that the audit looks at, as in :func:`caltest.audit`, in future rows, not in the
        pilot.
    n : int, optional
        Number of rows of the audit. Default None: find how many have the ``power``. If it is given,
        the power is found instead.
    error : float, default 0
        True error of the mean of every view, in units of probability. Default 0: the model is
        calibrated. No model quite is, so plan with a quarter of the limit too.
    power : float, default 0.8
        Wanted probability that all views are proved to be within the limit.
    alpha : float, default 0.05
        Level of the audit.
    weights : array of shape (n,), optional
        As in :func:`caltest.audit`.
    clusters : array of shape (n,), optional
        As in :func:`caltest.audit`. The plan takes the rows of a cluster to share everything; an audit,
        which sees how much they share, will need fewer.
    logits : bool, default False
        As in :func:`caltest.audit`.

    Returns
    -------
    AuditPlan
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If there is no limit, or the pilot cannot be audited.

    Notes
    -----
    Every view is proved to be within the limit by its own exact interval at level ``alpha``, without a
    correction (an intersection–union test; Berger 1982). The power is the product of the views'
    probabilities; views that share rows help each other, so it may be a little more. Nothing is
    simulated.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> caltest.plan(digits.probs, lenses="top_label", materiality=0.02).n
    823
    """
    if isinstance(probs, Sets):
        do = f"give the level of every row as probs, and {Argument('materiality', _SHORTFALL)}"
        raise InputError(f"how many rows sets take depends on no set; {do}.")
    given = probs.rows if isinstance(probs, Sample) else probs
    rows = predictions(given, weights, clusters, logits=logits)
    limits: Any = {"materiality": materiality, "materiality_ratio": materiality_ratio, "alpha": alpha}
    options = Options.of(lenses=lenses, intersections=intersections, min_rows=_FEWEST, **limits)
    goal = Goal(options.limit, min(alpha, LARGEST_LEVEL), power, error)
    if not goal.limit:
        raise InputError(f"there is no limit; give {Argument('materiality', 0.02)}.")
    groupings = read_groups(groups, rows.n_samples, probs=probs, weights=weights, clusters=clusters)
    made = make_plan(rows, groupings, options)
    whose = [look for look in made.looks if look.event]
    whose += [each.remaining for each in subtractions(made.hypotheses, _FEWEST)]
    if not whose:
        raise InputError("no mean error can be looked at in so few rows; give a larger pilot.")
    found, reached, ways, carrying = n, power, list[list[Wanted]](), list[float]()
    design = Design.of(rows, None)
    for look in whose:
        own, scores, none = design.of_look(look), look.scores(), np.zeros(look.n_rows, dtype=np.intp)
        ways.append(own.ways(scores, none, look.n_rows / rows.n_samples, goal.level))
        carrying += [own.effective(scores)] if own.several is not None else []
    wanted, _ = quickest(ways, goal)
    if n is not None:
        found = check_rows("n", n)
        wanted = [max(each, key=lambda way: (way.least <= n * way.part) * way.least) for each in ways]
        seen = _seen(wanted, found, min_rows)
        reached = joint_chance(found, [wanted[k] for k in seen], goal)
    else:
        seen = _seen(wanted, rows.n_samples, min_rows)
        while True:  # more rows make smaller groups large enough to examine, and these need more rows
            found = rows_in_all([wanted[k] for k in seen], goal)
            more = seen if found is None else _seen(wanted, found, min_rows)
            if set(more) <= set(seen):
                break
            seen = more
    views = [
        PlannedView(
            lens=whose[k].scope.label,
            event=whose[k].event,
            group=whose[k].group,
            without=whose[k].less,
            share=wanted[k].part,
            predicted=wanted[k].predicted,
            rows=own_rows,
        )
        for k, own_rows in zip(seen, rows_of([wanted[k] for k in seen], goal), strict=True)
    ]
    skipped = list(made.skipped)
    if small := len(wanted) - len(seen):
        reason = f"fewer than {min_rows} of {found or rows.n_samples:,} rows"
        skipped.append(Skipped(f"{counted(small, 'view')} of small groups", None, reason))
    return AuditPlan(
        n=found,
        power=reached,
        views=tuple(sorted(views, key=lambda view: -math.inf if view.n is None else -view.n)),
        error=error,
        wanted=power,
        n_samples=rows.n_samples,
        clustered=rows.clusters is not None,
        skipped=tuple(skipped),
        warnings=few_carry(carrying, goal.level),
        **limits,
    )


_SHORTFALL = {"too_high": 0.02, "too_low": None}  # for coverage, with levels passed as probabilities
_FEWEST = 2  # rows of a pilot group that are enough to estimate its mean prediction


def _seen(wanted: Sequence[Wanted], n: int, min_rows: int) -> list[int]:
    """Return the views that an audit of so many rows examines."""
    return [k for k, each in enumerate(wanted) if each.part == 1.0 or each.part * n >= min_rows]
