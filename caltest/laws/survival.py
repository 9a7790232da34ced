"""Times until an event, some of them censored: a survival curve for every row, or any law of a time.

We observe min(T, C) of a time T, and whether the event occurred. If the end of follow-up C is known for
every row, outcomes are min(T, C), with an atom beyond C, and so are draws: nothing is assumed. If it is
unknown for rows with an event, a censored time is imputed: drawn from its predicted distribution, given
that it is later than C. If predictions are right, and C is independent of T given the prediction,
imputed times are draws from the predicted distributions, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property
from hashlib import sha256
from typing import Any

import narwhals as nw
import numpy as np

from caltest._arguments import arguments, choose, has
from caltest._sums import Mask
from caltest._visible import quoted
from caltest.alignment import as_spelled, check_rows, column_names, rows_first, stated_numbers
from caltest.exceptions import Argument, InputError
from caltest.laws.base import Predictive, Shaped, as_stated, finite_table, in_columns
from caltest.laws.classes import Array, Law
from caltest.laws.objects import Distribution
from caltest.sampling import child_seed, generator
from caltest.spelling import spelled

_ROUNDED = 1e-6  # tolerance for a curve that rises, or leaves [0, 1]
_BETWEEN: Any = {"low": -_ROUNDED, "high": 1.0 + _ROUNDED}
_CHANCES = "chances between 0 and 1, 0.05 for 5%"
_SAME = 1e-9  # relative tolerance of times
_LEAST = 1e-300  # smallest probability of surviving past an observed time
# Rise of the probability between two times above which its shape between may matter, and does.
_WIDE, _COARSE = 0.1, 0.2
_COMPLETED = 7  # key of the seeds of imputations
_ENOUGH = 10  # events, all at times of their curves, that do not fall there by chance
_CODES = 0xFF  # the last bits of a time encode its cause: 2⁻⁴⁴ of the time


@arguments()
class Survival(Shaped):
    """Predicted times until an event; outcomes are ``(time, event)``, some of them censored.

    Parameters
    ----------
    survival : array of shape (n, T), data frame, or list of curves, optional
        Predicted chances of no event until each time, (n, T), that do not increase, with ``times``; or
        a data frame with times as its index and rows as its columns, as lifelines predicts it; or step
        functions of scikit-survival; or any object with ``cdf`` and ``ppf``, such as those of
        ``scipy.stats``. Give this, ``hazard`` or ``risk``.
    times : array of shape (T,) or (n, T), or float, optional
        The times of the columns, increasing and above 0 (0 itself with chance 1): (T,) for all rows, or
        (n, T) for each row. Their unit is that of the outcomes.
    hazard : array of shape (n, T), optional
        Chances of the event at, or until, each time if it did not come before.
    risk : array of shape (n,), optional
        The chance of the event until one time, with ``times`` a single number, if nothing else is
        predicted; a curve of one time is read in this way unless ``interpolation`` is "linear". Rows
        that are censored before then tell less: only an audit looks at them.
    incidence : dict of cause to array of shape (n, T), optional
        If several kinds of event compete, the predicted cumulative incidence of each: by the name of
        the cause, the chances that an event of this cause comes until each of the ``times``. Outcomes
        are then ``(time, cause)``: a cause as named here, or 0 for a censored row. Give all causes.
        Some causes alone need ``follow_up``: a row with another event then counts as followed without
        an event until its end of follow-up.
    follow_up : float, or array of shape (n,), optional
        Until when every row was, or would have been, followed, whether or not its event came: a time
        for every row, or one number, such as the end of the study. All p-values are then exact, and
        nothing is assumed of censoring. Default None: it is known for censored rows only.
    interpolation : {"linear", "step"}, optional
        The curve between two times. "linear": the chance of no event falls evenly. "step": events come
        at these times only, and all observed ones are among them. Default None: linear, unless all
        observed events, at least ten, came at these times, most of them together with others, as where
        events are noticed at the next visit.

    Raises
    ------
    InputError
        If a curve rises or leaves [0, 1], times do not increase, or shapes do not fit.

    Notes
    -----
    A curve that does not reach 0 states nothing beyond its last time, which is then a known end of
    follow-up.

    Imputed times depend only on the data, not on ``rng``, so they are the same in every test and audit;
    ``rng`` seeds the simulations.

    Outcomes are a pair of columns, times and events (1 or True where the event came, 0 where the row
    was censored), a table of these two, or a structured array of scikit-survival.

    With competing risks give ``incidence``, or, if only the hazard of the cause of interest is
    predicted, that as ``hazard``, with other events as censored. A cumulative incidence given as
    ``survival`` or ``risk``, with other events as censored, makes a calibrated model look wrong.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> rate, times = rng.uniform(0.5, 2.0, 300), np.linspace(0.1, 3.0, 30)
    >>> predicted = caltest.predictive.Survival(np.exp(-np.outer(rate, times)), times)
    >>> time, end = rng.exponential(1.0 / (1.5 * rate)), rng.uniform(0.0, 3.0, 300)
    >>> outcomes = np.minimum(time, end), time <= end
    >>> caltest.test(predicted, outcomes, rng=0).pvalue < 0.01
    True
    """

    about = "predicted times until an event"
    instead = "use 'pit_ad' or another statistic of the PIT"
    level_name = "predicted survival"  # the probability of no event, averaged over time
    completions = 20  #: Number of imputations of censored times, if follow-up is unknown.
    _by_row = ("_law", "_times", "_chances", "last", "ends", "seen", "follow_up", "_incidence", "_all")
    _law: Predictive | None = None
    _times: Any = None
    _chances: Any = None
    ends: Array  #: Ends of the curves, (n,).
    last: Array  #: Last times that rows are used until, (n,).
    follow_up: Any = None  #: Ends of follow-up, (n,), if known.
    seen: Any = None  #: Times (n,), negative if censored, if follow-up is unknown.
    event: str | None = None  #: Name of the event.
    time_unit: str | None = None  #: Unit of times, such as "days".
    causes: tuple[str, ...] = ()  #: Competing causes, whose codes are the last bits of outcomes.
    code: int = 0  #: Code of the cause that this law predicts; other events then end a row without it.
    others = 0  #: Number of events of causes that are not predicted.
    _incidence: Any = None  # by cause, (n, K, T + 1)
    _all: Any = None  # the law of all causes, if this is the law of one

    def __init__(
        self,
        survival: Any = None,
        times: object = None,
        *,
        hazard: object = None,
        risk: object = None,
        incidence: Mapping[Any, Any] | None = None,
        follow_up: object = None,
        interpolation: str | None = None,
    ) -> None:
        given = [each for each in (survival, hazard, risk, incidence) if each is not None]
        if len(given) != 1:
            raise InputError(f"give one of survival, hazard, risk and incidence, not {len(given)}.")
        if interpolation not in (None, "linear", "step"):
            raise InputError(f"interpolation is {quoted(interpolation)}; give 'linear' or 'step'.")
        self.interpolation = interpolation
        self.steps, self.horizon, curves = interpolation == "step", None, given[0]
        if has(survival, "cdf") or (survival is not None and _functions(survival, "cdf")):
            self._law = law = Distribution(survival)
            curves = law.given
            if law.dimension is not None:
                raise InputError("survival is about vectors; give distributions of a time, a number.")
            if interpolation is not None or times is not None:
                raise InputError("times and interpolation are for tables of chances; leave them out.")
            self._shape = (law.n_samples,)
            end: Any = np.full(law.n_samples, np.inf)
        else:
            if times is None and survival is None:
                raise InputError(
                    "times is missing; give the time of the risk, as in Survival(risk=risk, "
                    "times=365), or those of the columns of hazard."
                )
            if risk is not None:
                chances = finite_table("risk", risk, f"(n,) {_CHANCES}", ndim=(1,), **_BETWEEN)
                at = np.atleast_1d(finite_table("times", as_stated(times)))
                if at.shape != (1,):
                    raise InputError(f"times has shape {at.shape}; give the one time of the risk.")
                self.horizon, self.steps, table = float(at[0]), True, 1.0 - chances[:, None]
            elif hazard is not None:
                at, chances = _at_times("hazard", hazard, times, _CHANCES, **_BETWEEN)
                table = np.asarray(np.cumprod(1.0 - chances, axis=-1), dtype=np.float64)
            elif incidence is not None:
                self._incidence, at = _by_cause(incidence, times, follow_up is None)
                self.causes, curves = tuple(map(as_spelled, incidence)), next(iter(incidence.values()))
                at, table = self.marked(at), 1.0 - self._incidence.sum(axis=1)
            else:
                at, table = _curves(survival, times)
                if times is None and has(survival, "T"):  # lifelines' layout, one column for every row
                    curves = survival.T
            self._times, self._chances = _checked(at, table)
            if self._times.shape == (1, 2) and interpolation is None:
                self.horizon, self.steps = float(self._times[0, 1]), True  # one risk, not a curve
            self._shape, last = (len(table),), self._times[:, -1]
            end = np.where(self._chances[:, -1] < 1.0, last, np.inf)
        self.ends, self.given = end, {"curves": curves, "follow_up": follow_up}
        check_rows(self.given)
        if follow_up is not None:
            until = np.asarray(follow_up)
            if until.dtype.kind in "fiu" and np.isinf(until).any():
                raise InputError(
                    "follow_up holds inf; give the times until which rows were followed, or leave "
                    "follow_up out where they are not known."
                )
            until = finite_table("follow_up", follow_up)
            if until.shape not in ((), self._shape) or (until <= 0.0).any():
                found = f"follow_up has shape {until.shape} and the smallest is {until.min():g}"
                raise InputError(f"{found}; give {self._shape} times above 0, or one for all rows.")
            self.follow_up = np.broadcast_to(until, self._shape)
            end = np.minimum(end, self.follow_up)
        self.last = end

    # -------------------------------------------------------------- the law of a time

    def _at(self, outcomes: Array) -> tuple[Array, Array]:
        """Return P(T < t) and P(T ≤ t) at (…, n), ignoring follow-up."""
        if self._law is not None:
            return self._law.cdf(outcomes)
        return self._looked_up(self._chances, outcomes)

    def _looked_up(self, values: Array, outcomes: Array, by: Any = None) -> tuple[Array, Array]:
        """Look up values (n, T + 1) that rise with time before and at times (…, n), or along ``by``."""
        from caltest.loops import rows as _loops

        flat = np.ascontiguousarray(outcomes.reshape(-1, self.n_samples), dtype=np.float64)
        below, at = np.empty_like(flat), np.empty_like(flat)
        _loops.curve_at(self._times if by is None else by, values, flat, self.steps, below, at)
        return below.reshape(outcomes.shape), at.reshape(outcomes.shape)

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return P(X < x) and P(X ≤ x) of times X: T up to the last, and an atom beyond it."""
        self._check_whole()
        outcomes = self.marked(outcomes)
        below, at = self._at(np.minimum(outcomes, self.last))
        beyond = outcomes > self.last
        return np.where(beyond, at, below), np.where(beyond, 1.0, at)

    def quantile(self, levels: Array) -> Array:
        """Return quantiles of the times in ``cdf``; those beyond the last are ``beyond``."""
        if self._law is not None:
            found = self._law.quantile(levels)
        else:
            from caltest.loops import rows as _loops

            flat = np.ascontiguousarray(levels.reshape(-1, self.n_samples), dtype=np.float64)
            found = np.empty_like(flat)
            _loops.curve_inverse(self._times, self._chances, flat, self.steps, found)
            found = found.reshape(levels.shape)
        return np.where(found > self.last, self.beyond, found)

    @property
    def beyond(self) -> Array:
        """The time that stands for any beyond the last one, (n,)."""
        after = self.last * (1.0 + _SAME) if self.causes else np.nextafter(self.last, np.inf)
        return self.marked(after)

    def marked(self, times: Array, codes: Any = 0) -> Array:
        """Return times (…, n) with cause codes in the last bits, 1 for the first cause, 0 for none."""
        return (times.view(np.int64) & ~_CODES | codes).view(np.float64) if self.causes else times

    def of_cause(self, cause: str | None) -> Survival:
        """Return the law of the events of one cause; this law if it is None."""
        if cause is None:
            return self
        choose("cause", cause := as_spelled(cause), dict.fromkeys(self.causes))
        found = self.take(slice(None))
        found._all, found.code = self._all or self, self.causes.index(cause) + 1
        found._chances = np.ascontiguousarray(self._incidence[:, found.code - 1])
        return found

    def _with_causes(self, times: Array, rng: np.random.Generator) -> Array:
        """Return drawn times (…, n), with causes drawn as predicted at those times."""
        if not self.causes:
            return times
        place = np.searchsorted(self._times[0], times).clip(1, self._times.shape[1] - 1) - 1
        risen = np.diff(np.cumsum(self._incidence, axis=1), axis=2)  # of the first k causes together
        shares = risen[:, :-1] / np.maximum(risen[:, -1:], _LEAST)
        passed = rng.random(times.shape)[..., None] > shares[np.arange(self.n_samples), :, place]
        return self.marked(times, 1 + passed.sum(axis=-1))

    def risk(self, horizon: float) -> Array:
        """Return the probability of the event until a time, or the end of the curve, (n,)."""
        return self._at(np.full(self.n_samples, self.stated_time(horizon)))[1]

    def stated_time(self, time: float) -> float:
        """Return the time of all curves that equals this one up to rounding; else the time itself."""
        if self._times is None or len(self._times) > 1 or np.isinf(time):
            return time
        near = float(self._as_stated(np.array([time]))[0])
        return time if np.isnan(near) else near

    def states(self, time: float) -> bool:
        """Whether the time is one of all curves."""
        common = self._times is not None and len(self._times) == 1
        return common and self.stated_time(time) in self._times

    def level(self) -> Array:
        """Return probabilities of no event, averaged over the time until the last end, (n,)."""
        times = [self.horizon] if self.horizon is not None else self._evenly(20)
        return np.asarray(1.0 - np.mean([self.risk(t) for t in times], axis=0))

    def _evenly(self, count: int) -> Array:
        """Return evenly spaced times up to the last that all curves and any known follow-up reach."""
        end = min(float(self.last.max()), float(self.ends.min()))
        if np.isinf(end):
            end = float(self.quantile(np.full(self.n_samples, 0.95)).max())
        return end * np.arange(1, count + 1) / count

    def marks(self, count: int) -> tuple[Array, bool]:
        """Return at most ``count`` times to evaluate, and whether they are the curves' own."""
        if self.horizon is not None:
            return np.array([self.horizon]), True
        times = self._evenly(count)
        if self._times is None or len(self._times) > 1 or self._times.shape[1] > count + 1:
            return times, False
        stated = self._times[0, 1:]
        own = stated[stated <= times[-1] * (1.0 + _SAME)]
        return (own, True) if len(own) else (times, False)

    @property
    def coarse(self) -> bool:
        """Whether the shape of curves between their times matters and was not specified."""
        return self.interpolation is None and not self.steps and self._rise > _COARSE

    @cached_property
    def _rise(self) -> float:
        """Largest rise of the mean probability between two times of the curves."""
        if self._chances is None:
            return 0.0
        return float(np.diff(self._chances.mean(axis=0)).max(initial=0.0))

    def check_horizon(self, horizon: float) -> None:
        """Raise if a curve, or all known follow-up, ends before a time."""
        horizon = self.stated_time(horizon)
        if horizon <= 0.0:
            raise InputError(f"the horizon is {horizon:g}; give a time above 0, as in 'until:365'.")
        if self.horizon not in (None, horizon):
            alone = f"the risk until {self.horizon:g} alone is predicted"
            do = f"give {self.horizon:g}, or whole curves"
            raise InputError(f"the horizon is {horizon:g}, and {alone}; {do}.")
        row = int(self.ends.argmin())
        ends = [(self.ends[row], "where the curve of {row} ends")]
        ends.append((self.last.max(), "the end of all follow-up"))
        if self.seen is not None:
            ended = np.abs(self.marked(self.seen))
            if np.signbit(self.seen[ended == ended.max()]).any():  # else all events occurred before
                ends.append((ended.max(), "until when the last row was followed"))
        for end, why in ends:
            if horizon > end:
                text = f"the horizon {{horizon}} is later than {{end}}, {why}; give an earlier one."
                raise InputError(text, horizon=f"{horizon:g}", end=f"{end:g}", row=row)

    def spread(self) -> Array:
        """Return zeros: rows are sorted by their level alone."""
        return np.zeros(self.n_samples)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return drawn times."""
        return self._with_causes(self.quantile(rng.random((size, self.n_samples))), rng)

    def impossible(self, outcomes: Array) -> Mask:
        """Return a mask of events observed at times that the curve rules out."""
        below, at = self.cdf(outcomes)
        if self.interpolation == "step" or self.horizon is not None:
            found = at <= below
        else:  # an empirical curve is flat before its first event, which is weak evidence
            found = (below == 1.0) | ((at == 0.0) & (self._law is not None))
        if self._chances is not None:  # unless the curve is 0 to its end
            cause = np.maximum((outcomes.view(np.int64) & _CODES) - 1, 0) if self.causes else 0
            every = self._incidence if self.causes else self._chances[:, None]
            never = every[np.arange(self.n_samples), cause, -1] == 0.0
            found |= never & (self.marked(outcomes) <= self.last)
        return np.asarray(found)

    # -------------------------------------------------------------- events, and events expected

    @cached_property
    def _hazards(self) -> Array:
        """Σ ΔF / S(s−) at the times of the curves; ∫ dF / S for linear curves."""
        every = self._chances if self._all is None else self._all._chances
        left = np.maximum(1.0 - every, _LEAST)
        jumps = np.diff(every) / left[:, :-1] if self.steps else -np.diff(np.log(left))
        jumps *= np.diff(self._chances) / np.maximum(np.diff(every), _LEAST)  # the cause's share
        return np.concatenate([np.zeros((len(jumps), 1)), np.cumsum(jumps, axis=1)], axis=1)

    def cumulative_hazard(self, times: Array) -> Array:
        """Return Λ at times (…, n): Σ ΔF / S(s−) for step functions, −log S otherwise."""
        if self.steps:
            return self._looked_up(self._hazards, times)[1]
        if self._all is not None:
            ends = -np.log(np.maximum(1.0 - self._all._chances, _LEAST))
            return self._looked_up(self._hazards, self._all.cumulative_hazard(times), ends)[1]
        below, at = self._at(times)
        if (at - below > _ROUNDED).any():
            do = f"give their curves with {Argument('interpolation', 'step')}"
            raise InputError(f"the distributions have atoms, times of positive probability; {do}.")
        return np.asarray(-np.log(np.maximum(1.0 - at, _LEAST)))

    def until(self, outcomes: Array, horizon: float = np.inf) -> tuple[Array, Mask]:
        """Return when rows ended, (…, n), at the horizon at the latest, and whether by an event.

        Outcomes are times, as drawn or imputed, or as ``seen``. For one cause, 2 marks another event.
        """
        end, times = np.minimum(self.last, self.stated_time(horizon)), self.marked(outcomes)
        came = ~np.signbit(outcomes) & (times <= end)
        if self.code:
            came = came * np.where(outcomes.view(np.int64) & _CODES == self.code, 1, 2)
        return np.minimum(np.abs(times), end), came

    def events(self, outcomes: Array, horizon: float = np.inf) -> tuple[Array, Array]:
        """Return events observed until a time, and the number expected over the same follow-up.

        The differences are martingale residuals, 0 on average whenever follow-up ends.
        """
        self._check_whole()
        ended, came = self.until(outcomes, horizon)
        return (came == 1).astype(np.float64), self.cumulative_hazard(ended)

    def as_seen(self, outcomes: Array) -> Array:
        """Return times as observed, negative for censored rows; unchanged if follow-up is known."""
        if self.seen is None:
            return outcomes
        ended = np.abs(self.marked(self.seen))
        return np.where(np.signbit(self.seen), -ended, self._on_curve(ended))

    def ranks(self, outcomes: Array) -> tuple[Array, Array, Mask, Array]:
        """Return P(T < t), P(T ≤ t), whether the event was seen, and the expected number, (n,) each.

        If a row ended without an event, its time is later: its rank lies between P(T ≤ c) and 1.
        Nothing is imputed.
        """
        outcomes = self.as_seen(outcomes)
        low, high = self.cdf(np.abs(outcomes))
        came, expected = self.events(outcomes)
        open_end = np.signbit(outcomes) & (np.abs(outcomes) <= self.last)
        return np.where(open_end, high, low), np.where(open_end, 1.0, high), came > 0.0, expected

    def _check_whole(self) -> None:
        if self.horizon is None or self.seen is None:
            return
        if few := int(np.sum(np.signbit(self.seen) & (-self.seen < self.horizon))):
            raise InputError(
                f"the risk at {self.horizon:g} alone is predicted, and {few:,} rows are censored "
                "before; give whole curves, with which they count too, or audit the model."
            )

    # -------------------------------------------------------------- what was seen

    def met(self, values: Any, weights: Array | None = None) -> tuple[Law, Array]:
        """Return the law with the observed data, and outcomes, imputed if follow-up is unknown."""
        time, codes, name = read_times(values, self.n_samples, self.causes)
        event = codes > 0
        if (last := self.follow_up) is not None:
            much = _SAME * last
            early = ~event & (time < last - much)
            for row in np.flatnonzero(early | (time > last + much))[:1]:
                what = "had its event" if event[row] else "was censored"
                do = f"times until which rows were followed, or leave {Argument('follow_up')} out"
                text = f"{{row}} {what} at {{found}}, and its follow_up is {{last}}; give the {do}."
                raise InputError(text, row=int(row), found=float(time[row]), last=float(last[row]))
        others = codes > max(len(self.causes), 1)
        for row in np.flatnonzero(others)[: last is None]:
            text = "the cause in {row} is none of {known}; give that of all causes, 0 where censored,"
            raise InputError(f"{text} or follow_up=.", row=int(row), known=", ".join(self.causes))
        found, event = copy(self), event & ~others
        found.others = int(others.sum())
        found.event = self.event or ("any event" if self.causes else name)
        if self._chances is not None and self.horizon is None and self.interpolation != "linear":
            stated, early = self._as_stated(time), event & (time <= self.last)
            if weights is not None:
                early &= weights > 0.0
            off = early & np.isnan(stated)
            several = 2 * len(np.unique(stated[early])) <= early.sum() >= _ENOUGH
            found.steps = self.steps or (several and not off.any())
            if found.steps:
                for row in np.flatnonzero(off)[:1]:
                    text = "the event of {row} came at {found}, which is none of the times of its curve"
                    do = f"give {Argument('interpolation', 'linear')}, or times as in the curves"
                    raise InputError(f"{text}; {do}.", row=int(row), found=float(time[row]))
                time = np.where(np.isnan(stated), time, stated)
        if found.follow_up is not None:
            whole = found._on_curve(np.where(event, time, found.beyond))
            return found, found.marked(whole, codes * event)
        found.seen = np.where(event, found.marked(time, codes), -time)
        return found, found.completed(0)

    def _as_stated(self, times: Array) -> Array:
        """Return times as they stand in the curves of their rows, (n,); NaN for others, and for 0."""
        late = times * (1.0 + _SAME)
        if len(self._times) == 1:
            near = self._times[0, np.searchsorted(self._times[0], late, "right") - 1]
        else:
            near = self._times[np.arange(len(late)), (self._times <= late[:, None]).sum(axis=1) - 1]
        return np.where((near > 0.0) & (times - near <= _SAME * times), near, np.nan)

    def _on_curve(self, times: Array) -> Array:
        """Return times as outcomes: the time of a stated risk, or ``beyond`` after the last time."""
        if self.horizon is not None:
            times = np.where(times <= self.horizon, self.horizon, times)
        return np.where(times <= self.last, times, self.beyond)

    def outcomes(self, values: object) -> Array:
        """Check outcomes, and return them as times."""
        return self.met(values)[1]

    def completed(self, number: int) -> Array:
        """Return times, (n,), with those of censored rows drawn from their predicted remainder.

        Imputations, by ``number``, are exchangeable, and the same in every call. Their seed derives
        from the observed data: if all data sets shared one seed, they would share the same luck.
        """
        digest = sha256(self.seen.tobytes()).digest()
        seed = child_seed(int.from_bytes(digest[:16], "little"), _COMPLETED, number)
        ended, censored, rng = np.abs(self.marked(self.seen)), np.signbit(self.seen), generator(seed)
        passed = self._at(np.minimum(ended, self.last))[1]
        drawn = self.quantile(passed + (1.0 - passed) * rng.random(self.n_samples))
        whole = self.marked(self._on_curve(ended), self.seen.view(np.int64) & _CODES)
        return np.where(censored, self._with_causes(drawn, rng), whole)

    def completed_anew(self) -> Iterator[Array]:
        """Yield all imputations but the first; for a risk at one time, there are none."""
        count = 0 if self.seen is None or self.horizon is not None else self.completions
        return map(self.completed, range(1, count))

    @property
    def between_times(self) -> str:
        """Remark on times far apart, as sentences; "" if there are none."""
        if self.steps or self._rise <= _WIDE:
            return ""
        return (
            "Between two times of the curves the predicted chance of the event rises by up to "
            f"{100.0 * self._rise:.0f} points on average, and is taken to rise evenly there: an error "
            "that is found may be this assumption's. Give curves at more times."
        )

    def remarks(self, outcomes: Array) -> tuple[str, ...]:
        """Return remarks on times far apart, the number of censored rows, and the assumptions made."""
        found = [self.between_times] if self.between_times else []
        if self.steps and self.interpolation is None and self.horizon is None:
            came = "All events came at times of the curves, and are taken to come at no others"
            found.append(f"{came}, as at the next visit ({Argument('interpolation', 'step')}).")
        if self.others:
            found.append(f"{self.others:,} events are of other causes: their rows are followed on.")
        if self.follow_up is not None:
            return tuple(found)
        assumed = "this assumes that they were so independently of the time, given the prediction"
        found.append(f"{np.mean(np.signbit(self.seen)):.0%} of rows are censored: {assumed}.")
        if late := int(np.sum(~np.signbit(self.seen) & (self.marked(self.seen) > self.last))):
            beyond = f"{late:,} events came after the last time of their curves"
            found.append(f"{beyond}, beyond which nothing is predicted.")
        return tuple(found)


# ------------------------------------------------------------------ reading


def _functions(values: Any, *names: str) -> bool:
    """Return whether it is a list or an array of objects with these attributes."""
    objects = has(values, "dtype") and str(values.dtype) == "object"
    return (isinstance(values, list | tuple) or objects) and len(values) > 0 and has(values[0], *names)


def _curves(survival: Any, times: object) -> tuple[Array, Array]:
    """Return times and curves, (n, T), from the predictions of a model."""
    if _functions(survival, "x", "y"):  # scikit-survival
        parts = list(survival)
        if len({len(each.x) for each in parts}) > 1:
            raise InputError("survival has functions with different numbers of steps; give one table.")
        at, table = (np.stack([np.asarray(getattr(p, k), float) for p in parts]) for k in "xy")
        return finite_table("times", at), finite_table("survival", table)
    if times is None:
        if (index := getattr(survival, "index", None)) is None or callable(index):
            raise InputError("times is None; give the times of the columns of survival.")
        return finite_table("the index of survival", index), finite_table("survival", survival).T
    return _at_times("survival", survival, times)


def _at_times(what: str, given: Any, times: object, *do: str, **between: float) -> tuple[Array, Array]:
    """Return times, and a table with a column for each, ordered by column names that state times."""
    given = rows_first(given, what)
    at, table = finite_table("times", as_stated(times)), finite_table(what, given, *do, **between)  # type: ignore[arg-type]
    called = stated_numbers(column_names(given), counted=False)
    stated = at.shape == (len(called),) == table.shape[1:]
    return in_columns("times", at, table, called) if stated else (at, table)


def _by_cause(incidence: Any, times: object, whole: bool) -> tuple[Array, Array]:
    """Return incidences by cause, (n, K, T + 1), and the times (T + 1,) of all rows."""
    names = [*map(as_spelled, incidence)] if isinstance(incidence, Mapping) else []
    do = "give that of each cause once, {'relapse': …, 'death': …}, or follow_up= too; 0 is censored"
    if not whole < len({*names} - {"0", ""}) == len(names) < _CODES:
        raise InputError(f"incidence is of {', '.join(names) or quoted(incidence)}; {do}.")
    parts = list[Array]()
    for cause, table in incidence.items():
        what = f"the incidence of {quoted(cause)}"
        at, own = _at_times(what, table, times, _CHANCES, **_BETWEEN)
        at, own = _checked(at, 1.0 - own, what)
        parts.append(own)
        if len(at) > 1 or own.shape != parts[0].shape:
            raise InputError(f"{what} has other rows or times; give the same for every cause and row.")
    every = np.stack(parts, axis=1)
    finite_table("all incidence", every.sum(axis=1), "chances that sum to 1 at most", **_BETWEEN)
    return every, at[0]


def _checked(times: Array, table: Array, what: str = "survival") -> tuple[Array, Array]:
    """Return times (1 or n, T + 1) from 0 on, and probabilities of the event until then (n, T + 1)."""
    if table.ndim != 2 or table.size == 0 or times.shape not in (table.shape, table.shape[1:]):
        do = "survival.T" if table.ndim == 2 and times.shape == table.shape[:1] else "(n, T) and (T,)"
        raise InputError(f"survival has shape {table.shape} and times {times.shape}; give {do}.")
    if not (table.min() >= _BETWEEN["low"] and table.max() <= _BETWEEN["high"]):
        finite_table(what, table, _CHANCES, **_BETWEEN)
    at, rises = np.atleast_2d(times), bool((table[:, 1:] > table[:, :-1]).any())
    at = at[:1] if (at == at[:1]).all() else at  # shared by all rows
    for row, k in np.argwhere(np.diff(at, axis=1) <= 0.0)[:1]:
        do = "give increasing times"
        raise InputError(f"times holds {at[row, k]:g} before {at[row, k + 1]:g}; {do}.")
    if at.min() < 0.0:
        raise InputError(f"times holds {at.min():g}; give times from 0 on.")
    for row, k in np.argwhere(np.diff(table, axis=1) > _ROUNDED)[:1] if rises else ():
        first, then = table[row, k : k + 2]
        found = f"{what} rises in {{row}}, from {first:g} to {then:g}"
        do = "give chances of no event until each time, which do not increase"
        if what != "survival":  # 1 less an incidence
            found = f"{what} falls in {{row}}, from {1.0 - first:g} to {1.0 - then:g}"
            do = "give chances of the event until each time, which do not decrease"
        raise InputError(f"{found}; {do}.", row=int(row))
    chances = np.zeros((len(table), table.shape[1] + 1))
    np.clip(np.subtract(1.0, table, out=chances[:, 1:]), 0.0, 1.0, out=chances[:, 1:])
    chances = np.maximum.accumulate(chances, axis=1) if rises else chances  # undo rounding
    if not (at[:, 0] == 0.0).any():
        return np.pad(at, ((0, 0), (1, 0))), chances
    if (at[:, 0] > 0.0).any() or (chances[:, 1] > _ROUNDED).any():
        text = "survival at time 0 is below 1 in some row; leave rows out whose event came at once"
        raise InputError(f"{text}, or give survival.T if the times are its columns.")
    chances[:, 1] = 0.0
    return at, np.ascontiguousarray(chances[:, 1:])


def read_times(values: Any, n: int, causes: tuple[str, ...] = ()) -> tuple[Array, Any, str | None]:
    """Return times and whether the event occurred, (n,) each, from the user's data, and its name.

    With several causes, the codes run from 1 on; one more than their number is another cause.
    """
    columns, names = _columns(values)
    if len(columns) != 2 or any(np.ndim(each) != 1 for each in columns):
        raise InputError(
            "the outcomes are no pair of columns; give (time, event), one time and one event a row: "
            "intervals, rows that start late and events that come several times are not supported."
        )
    if causes:
        known = {"0": 0} | {cause: k for k, cause in enumerate(causes, 1)}
        cells = map(spelled, np.asarray(columns[1], dtype=object).tolist())
        columns[1] = [np.nan if x is None else known.get(x, len(known)) for x in cells]
    if isinstance(first := next(iter(columns[1]), None), str):
        do = "give 1 where the event came, and 0 where the row was censored"
        raise InputError(f"event holds {quoted(first)}; {do}.")
    time, event = finite_table("time", as_stated(columns[0])), finite_table("event", columns[1])
    if len(time) != n or len(event) != n:
        found = f"time has {len(time):,} entries and event {len(event):,}"
        raise InputError(f"{found}, and the predictions are about {n:,} rows; give one of each a row.")
    for row in np.flatnonzero((event != 0.0) & (event != 1.0))[: not causes]:
        do = "give 1 where the event of interest came and 0 where another one did or none (competing "
        do += "risks: predictions are then of its cause-specific hazard)"
        do = "give (time, event), in this order" if np.isin(time, (0.0, 1.0)).all() else do
        text = f"event holds {{found}} in {{row}}; {do}."
        raise InputError(text, found=float(event[row]), row=int(row))
    for row in np.flatnonzero(time < 0.0)[:1]:
        text = "time is {found} in {row}; give times from 0 on."
        raise InputError(text, found=float(time[row]), row=int(row))
    name = str(names[1] or "").strip()
    codes = event.astype(np.int64) if causes else event == 1.0
    return time, codes, None if name.isdecimal() or name.lower() == "event" else name or None


def _columns(values: Any) -> tuple[list[Any], list[Any]]:
    """Return columns of times and events, or all columns, and names; boolean columns last."""
    frame: Any = nw.from_native(values, eager_only=True, pass_through=True)
    named = None
    if names := getattr(getattr(values, "dtype", None), "names", None):  # scikit-survival's
        named = {name: values[name] for name in names}
    elif isinstance(frame, nw.DataFrame):
        named = {name: frame.get_column(name).to_numpy() for name in frame.columns}
    if named is not None:
        order = "fiubSUO" if names else "b"
        names = sorted(named, key=lambda name: order.find(named[name].dtype.kind))
        return [named[name] for name in names], names
    if isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.ndim == 2):
        columns = list(values.T if isinstance(values, np.ndarray) else values)
        return columns, [getattr(each, "name", None) for each in columns]
    raise InputError("the outcomes are no pair of columns; give (time, event).")
