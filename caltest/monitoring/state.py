"""The state of a monitor: results so far, rows that wait for outcomes, and its file."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from caltest._arguments import Whole, arguments
from caltest._version import __version__
from caltest._visible import attempt, quoted
from caltest.alignment import as_spelled, row_names
from caltest.auditing.groups import group_texts
from caltest.data import Rows, sample
from caltest.data.containers import NamedArray, cells_of
from caltest.exceptions import InputError
from caltest.files.paths import named, opened
from caltest.files.writing import write_whole
from caltest.laws import Survival
from caltest.laws.classes import Array
from caltest.monitoring.bettors import LATEST, Bettors, Books, limits
from caltest.results import Facts, Result
from caltest.spelling import column_of, is_missing
from caltest.story import Direction, Finding, Step, Story

Mode: TypeAlias = Literal["ever", "change"]
Named: TypeAlias = Mapping[str, Any]

_MOST = 1e300
_LEVEL = 0.05  # error level of limits
SPREAD = "the outcome is outside its predicted central half"

# ------------------------------------------------------------------ results


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evidence(Facts):
    """The evidence on all rows, or on a group.

    Attributes
    ----------
    column, value : str or None
        The group; None for all rows.
    rows : int
        Number of rows.
    clusters : int or None
        Number of their clusters; None without clusters.
    log_evalue : float
        Natural logarithm of its own e-value; in mode "change", of its detector.
    adjusted : float
        The e-value divided by k(k + 1) for the k-th group to appear, if there are groups: it is
        compared with the threshold.
    found : bool
        Whether it has reached the threshold, now or before.
    bet : str
        The kind of the leading bet: "sharper" or "flatter" predictions, a "shift" or "tilt" of the
        odds, a "local" error, a distribution that is "moved" or of another "shape", events that come
        "sooner" or "later".
    event : str
        The event on which predictions and observations differ most.
    kind : str
        The kind of event: "rate" of a class, "median", "spread" (outside the predicted central half),
        "count" of events for times, or the "mean" of point forecasts.
    since : int
        The row, counted from 0, since which some bet has won most: an estimate of when the error began.
        For a small error it may be off by hundreds of rows.
    predicted_since, observed_since : float
        Mean probability and rate of the event since then; chosen after the fact, so approximate. For
        survival times, events per row: expected given how long it was followed, and observed.
    error, low, high : float
        Predicted minus observed over all rows, with limits that hold at any time, for all groups and
        events at once.
    first, latest : array of shape (K, 3)
        Rows, predicted sum and observed sum in at most ten bins, for the first 500 rows and for the
        latest 500 to 1 000 after them (the first if there are no others). Bins divide the probability
        of the main event into about equal counts of about 20 rows or more; for numbers and times, they
        are ten bins of equal width of the predicted probability of a smaller outcome.
    """

    derived: ClassVar[tuple[str, ...]] = ("evalue",)

    column: str | None
    value: str | None
    rows: int
    clusters: int | None
    log_evalue: float
    adjusted: float
    found: bool
    bet: str
    event: str
    kind: str
    since: int
    predicted_since: float
    observed_since: float
    error: float
    low: float
    high: float
    first: Array
    latest: Array

    @property
    def evalue(self) -> float:
        """The e-value; infinite beyond what a float holds."""
        return math.exp(self.log_evalue) if self.log_evalue < 700.0 else math.inf

    @property
    def side(self) -> Direction | None:
        """The side of the error, "over" or "under", if the limits prove it and later rows agree."""
        over = self.predicted_since > self.observed_since
        proved = self.low > 0.0 if over else self.high < 0.0
        return ("over" if over else "under") if proved else None

    @property
    def proved(self) -> float:
        """Proved size of the mean error over all rows."""
        return max(self.low, -self.high, 0.0) if self.side else 0.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Period(Facts):
    """One batch's contribution to the record.

    Attributes
    ----------
    name, date : str or None
        As given; None if not given. For rows that waited, the date is that of their prediction.
    rows, end : int
        Rows of the batch, and rows in total at its end.
    log_evalue : float
        Logarithm of the evidence at its end.
    event : str
        The event, the same for all periods: class 1 of two, or that the top class is right; for
        numbers, that an outcome is above its predicted median or outside its predicted central half,
        depending on the strongest evidence.
    predicted, observed : float
        Mean probability and rate of the event; for times until an event, events per row.
    low, high : float
        Limits for predicted minus observed in this period; they hold for all periods and events at
        once.
    """

    name: str | None
    date: str | None
    rows: int
    end: int
    log_evalue: float
    event: str
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MonitorState(Result):
    """The state of a :class:`caltest.Monitor` after a batch.

    Attributes
    ----------
    mode : {"ever", "change"}
        "ever" or "change".
    alarm : bool
        Whether the evidence has ever reached the threshold.
    threshold : float
        1/alpha, or the mean run length.
    alpha, mean_run_length : float
        Options of the monitor.
    tolerance : float or dict
        Option of the monitor.
    lens, statistic : str or None
        Options of the monitor.
    log_evalue : float
        Natural logarithm of the evidence now.
    pvalue : float or None
        Anytime-valid p-value: one over the largest e-value so far. None in mode "change".
    rows : int
        Number of rows used so far.
    clusters : int or None
        Number of their clusters; None without clusters.
    waiting : int
        Number of rows that wait for their outcome, or for that of an earlier row.
    set_aside : int
        Number of rows left out because their cluster came before.
    alarm_row : int or None
        Number of rows after which the threshold was first reached; None if it was not.
    alarm_date : str or None
        The date of that batch, if given.
    evidence : tuple of Evidence
        Evidence on all rows, then on every group in order of appearance.
    periods : tuple of Period
        Contributions of the batches, in order.
    n_classes : int or None
        Number of classes through the lens; None for numbers, times, and scores of a statistic.
    functional : str or None
        For point forecasts, their functional, such as "mean"; else None. For means and expectiles, all
        sizes are in units of the outcome, and "observed" is the prediction minus the mean error.
    about : str
        The kind of predictions, such as "probabilities of classes".
    model : str or None
        Name and version of the model, if given.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.1, 0.5, 2000)
    >>> state = caltest.Monitor().update(p, rng.random(2000) < p + 0.08)
    >>> state.alarm, state.pvalue < 0.05, state.worst.bet in ("shift", "tilt")
    (True, True, True)
    """

    derived: ClassVar[tuple[str, ...]] = ("evalue",)

    mode: Mode
    alarm: bool
    threshold: float
    alpha: float
    mean_run_length: float
    tolerance: Any
    lens: str | None
    statistic: str | None
    log_evalue: float
    pvalue: float | None
    rows: int
    clusters: int | None
    waiting: int
    set_aside: int
    alarm_row: int | Any  # None without an alarm
    alarm_date: str | None
    evidence: tuple[Evidence, ...]
    periods: tuple[Period, ...]
    n_classes: int | None
    about: str
    model: str | None
    functional: str | None

    evalue = Evidence.evalue  #: In mode "change" the detector.

    @cached_property
    def story(self) -> Story:
        """The story of the monitor: the verdict, the place of a proved error, and next steps.

        The verdict is "alarm", "no alarm", or "no rows" so far. The subject is, among evidence above
        the threshold, the one with the largest proved error over all rows; if none has a proved side,
        the strongest. Its place is "later" if it began after the first rows.
        """
        if not self.rows:
            return Story("no rows", steps=(Step("feed"),))
        if not self.alarm:
            return Story("no alarm", steps=tuple(map(Step, ("use", "feed", "audit"))))
        found = sorted((x for x in self.evidence if x.found), key=lambda x: (-x.proved, -x.adjusted))
        subject, *others = (
            Finding(x.kind, x, side=x.side, place="later" if x.since >= LATEST else "")
            for x in found or [self.worst]
        )
        sided = [each for each in others if each.side]
        since = {"row": subject.of.since, "date": self.date_of(subject.of.since)}
        return Story(
            "alarm",
            found=True,
            subject=subject,
            whole=next((each for each in sided if each.of.column is None), None),
            opposite=next((each for each in sided if each.side != subject.side), None),
            others=tuple(others),
            steps=(Step("avoid"), Step("look", since), Step("correct"), Step("begin")),
        )

    @property
    def pictures(self) -> Any:
        """Titles and pictures: the evidence, the error in every batch, and then and now."""
        return self._written("monitor_pictures")

    @property
    def worst(self) -> Evidence:
        """The strongest evidence now: on all rows, or on a group."""
        return max(self.evidence, key=lambda each: each.adjusted)

    @arguments(row=Whole(0))
    def date_of(self, row: int) -> str | None:
        """Return the date of the batch of a row, counted from 0; None if it was not given."""
        return next((each.date for each in self.periods if each.end > row), None)


# ------------------------------------------------------------------ from the books
#
# ``shape`` holds the properties of batches, ``options`` those of the monitor.


def bettors_of(shape: Named, options: Named) -> Bettors:
    """Return the bettors for batches with these properties."""
    is_change, times = options["mode"] == "change", shape["about"] == Survival.about
    goal = math.log(options["mean_run_length"]) if is_change else -math.log(options["alpha"])
    own = shape["n_classes"], options["tolerance"], tuple(shape["levels"])
    return Bettors(*own, times, goal, shape["scale"])


def shares_of(shape: Named, count: int) -> Array:
    """Return divisors k(k + 1) for the evidence of all rows and of groups; 1 without groups."""
    numbers = np.arange(1.0, count + 1)
    return numbers * (numbers + 1.0) if shape["groups"] else np.ones(count)


def evidence_of(
    books: Books, shape: Named, options: Named, processes: Sequence[Sequence[str]]
) -> Iterator[Evidence]:
    """Yield the evidence on all rows and on each group; ``processes`` are columns and values."""
    bettors = bettors_of(shape, options)
    unit = bettors.scale or 1.0
    shares = shares_of(shape, len(books["logs"]))
    spent = _LEVEL * bettors.ways / (2.0 * shares * bettors.channels)
    counts, parts = books["counts"][:, None], (len(shares), bettors.ways, -1)
    lows, highs = limits(books["totals"], counts, spent[:, None], bettors.times)
    lows, highs = lows.reshape(parts)[:, -1], highs.reshape(parts)[:, 0]
    won = books["detect" if options["mode"] == "change" else "logs"]
    for p, (column, value) in enumerate([(None, None), *processes]):
        lowest = np.maximum(books["low"][p], -_MOST)  # a bet may have lost everything
        begun = int((np.maximum(books["logs"][p], -_MOST) - lowest).argmax())
        units, best, share = int(books["counts"][p]), float(books["best"][p]), math.log(shares[p])
        totals = books["totals"][p].reshape(bettors.ways, -1, 3).mean(axis=0)
        start, count = books["since"][p, begun].tolist()
        start, count = (start, count) if count < units else (0, 0)
        marks = books["marks"][p, begun].reshape(bettors.ways, -1, 2).mean(axis=0)
        since = totals[:, :2] - (marks if count else 0.0)
        chosen = int((np.abs(since @ [1.0, -1.0]) / np.sqrt(totals[:, 2] + 1e-12)).argmax())
        first, *later = books["bins"][p]
        latest = np.sum(later, axis=0) if later[0].any() or later[1].any() else first
        yield Evidence(
            column=column,
            value=value,
            rows=int(books["seen"][p]),
            clusters=units if shape["clusters"] == "given" else None,
            log_evalue=best,
            adjusted=math.exp(min(best - share, 700.0)),
            found=bool(books["peak"][p] - share >= bettors.goal),
            bet=bettors.kind(int((won[p] + bettors.weights).argmax())),
            event=_event(shape, chosen, options["statistic"]),
            kind=_kind(shape, chosen),
            since=start,
            predicted_since=unit * float(since[chosen, 0]) / (units - count),
            observed_since=unit * float(since[chosen, 1]) / (units - count),
            error=unit * float(totals[chosen, 0] - totals[chosen, 1]) / units,
            low=unit * float(lows[p, chosen]),
            high=unit * float(highs[p, chosen]),
            first=bettors.in_bins(first) * [1.0, unit, unit],
            latest=bettors.in_bins(latest) * [1.0, unit, unit],
        )


def _kind(shape: Named, channel: int) -> str:
    """Return the kind of an event, as in :class:`Evidence`."""
    if shape["about"] == Survival.about:
        return "count"
    if shape["scale"]:
        return "mean"
    return "rate" if shape["n_classes"] else ("median", "spread")[channel]


def _event(shape: Named, channel: int, statistic: str | None) -> str:
    """Return an event as a clause."""
    m, names = shape["n_classes"], shape["names"]
    if shape["about"] == Survival.about:
        return "the event comes"
    if m is None:
        level = f"{100.0 * shape['levels'][0]:g}% quantile" if len(shape["levels"]) == 1 else "median"
        name = SPREAD if channel else f"the outcome is above its predicted {level}"
        return name if statistic is None else name.replace("outcome", f"score of a row ({statistic})")
    if m == 2:
        return str(shape["event"])
    if channel == m:
        return "the top class is right"
    return f"the label is {quoted(names[channel]) if names else f'class {channel}'}"


def periods_of(
    kept: Sequence[Named], shape: Named, options: Named, evidence: Sequence[Evidence]
) -> tuple[Period, ...]:
    """Return the record of batches for the strongest event, if kept; limits hold for all batches."""
    if not kept:
        return ()
    ways, table = bettors_of(shape, options).ways, np.array([each["sums"] for each in kept], float)
    units, totals = table[:, :1], table[:, 1:].reshape(len(kept), ways, -1, 3)
    which = range(totals.shape[2]) if shape["n_classes"] is None else [shape["n_classes"]]
    events = [_event(shape, channel, options["statistic"]) for channel in which]
    event = max(evidence, key=lambda each: each.adjusted).event
    chosen = events.index(event) if event in events else 0
    numbers = np.arange(1.0, len(kept) + 1)[:, None]
    spent = _LEVEL / (2.0 * numbers * (numbers + 1.0) * len(events))
    lows, highs = limits(totals[:, :, chosen], units, spent, shape["about"] == Survival.about)
    means = totals[:, :, chosen].mean(axis=1) / units
    sizes = (shape["scale"] or 1.0) * np.stack([*means.T[:2], lows[:, -1], highs[:, 0]], axis=1)
    found = []
    for each, own in zip(kept, sizes.tolist(), strict=True):
        told = {name: value for name, value in each.items() if name != "sums"}
        told |= zip(("predicted", "observed", "low", "high"), own, strict=True)
        found.append(Period(**told, event=events[chosen]))
    return tuple(found)


# ------------------------------------------------------------------ batches, and waiting rows


class Batch(NamedTuple):
    """Rows with outcomes, texts of groups by column, and clusters."""

    rows: Rows
    labels: Any
    texts: Mapping[str, Sequence[str]]
    clusters: list[str] | None


def batch_of(rows: Rows, labels: Any, *, groups: object, clusters: object) -> Batch:
    """Return a batch, with groups and clusters read as text."""
    names = None if clusters is None else names_of(clusters, rows.n_samples, "clusters")
    return Batch(rows, labels, group_texts(groups, rows.n_samples), names)


def names_of(column: object, n: int, what: str) -> list[str]:
    """Return the entries of a column as text."""
    if (cells := cells_of(column, what)) is None or len(cells) != n:
        found = quoted(column) if cells is None else f"of {len(cells)} entries"
        raise InputError(f"{what} is {found}; give one for every row, {n} in all.")
    named = column_of(cells, what, "row", "give every row one")
    return [str(named.texts[code]) for code in named.codes]


def dates_of(date: object, n: int) -> list[str | None]:
    """Return the date of each row, from one text or a column; raise if dates are out of order."""
    if date is None or isinstance(date, str):
        return [date] * n
    dates = names_of(date, n, "date")
    runs = [each for each, _ in groupby(dates)]
    if twice := [each for each, count in Counter(runs).items() if count > 1]:
        found = f"date has rows of {quoted(twice[0])} before and after those of other dates"
        raise InputError(f"{found}; give rows in the order in which they were predicted.")
    return [*dates]


def check_ids(ids: object, *beside: object) -> None:
    """Raise if another argument has the same row names as ids in a different order."""
    names = [] if ids is None else [as_spelled(cell) for cell in cells_of(ids, "ids") or []]
    for own in (own for each in beside for own in row_names(each, "rows")) if names else ():
        known = [] if own.index is None else [as_spelled(name) for name in own.index.tolist()]
        if names != known and set(names) == set(known) and len(known) == len(names):
            found = "ids holds the names that another argument has for its rows, in another order"
            raise InputError(f"{found}; align them, or leave the index out.")


class Waiting(NamedTuple):
    """A waiting row, as kept in the state."""

    name: str
    probs: list[float]
    label: int  #: −1 if not known.
    texts: Sequence[str]  #: The groups of the row, in the order of their columns.
    unit: str  #: The cluster; without clusters, the name.
    date: str | None  #: When it was predicted.
    aside: bool = False  #: Whether its cluster was waiting already: then the row is not used.


def informed(queue: list[Waiting], names: Sequence[str], cells: Sequence[Any], columns: Any) -> None:
    """Enter outcomes that are now known into the queue; ``columns`` are the names of the classes."""
    places = {each.name: k for k, each in enumerate(queue)}
    if unknown := [name for name in names if name not in places]:
        raise InputError(f"no row waits that is called {quoted(unknown[0])}; give ids of rows that do.")
    pairs = zip(map(places.__getitem__, names), cells, strict=True)
    known = {k: x for k, x in pairs if not is_missing(x) or x in (columns or ())}
    if done := [queue[k].name for k in known if queue[k].label >= 0]:
        raise InputError(f"the outcome of row {quoted(done[0])} is known already; give each once.")
    if known:
        law = NamedArray(np.array([queue[k].probs for k in known]), tuple(columns) if columns else None)
        for k, label in zip(known, sample(law, [*known.values()], part=True).labels, strict=True):
            queue[k] = queue[k]._replace(label=int(label))


def parted(queue: Sequence[Waiting]) -> tuple[list[Waiting], list[Waiting]]:
    """Return rows that are ready, and rows that still wait; clusters are not split.

    No row enters before rows predicted earlier, and rows set aside never do.
    """
    aside = [each for each in queue if each.aside and each.label < 0]
    queue = [each for each in queue if not each.aside]
    late = {each.unit for each in queue if each.label < 0}
    first = next((k for k, each in enumerate(queue) if each.unit in late), len(queue))
    late = {each.unit for each in queue[first:]}
    ready = [each for each in queue if each.unit not in late]
    return ready, [*(each for each in queue if each.unit in late), *aside]


# ------------------------------------------------------------------ the JSON file
#
# Written completely or not at all.

_SCHEMA = 8
_PARTS = ("schema", "options", "state")


def brief(text: str) -> str:
    """Return a 64-bit key for a batch or cluster."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def save(path: Path, options: Named, state: Named, known: str | None) -> str:
    """Write a state and return its fingerprint; raise if the file is not the one that is ``known``.

    ``known`` is the fingerprint of the state last loaded or saved; None for a new state.
    """
    body = {"schema": _SCHEMA, "options": options, "state": state}
    whole = {"caltest monitor": __version__, "fingerprint": _fingerprint(body), **body}
    if path.exists() and load(path)["fingerprint"] != known:
        found = "is there already, or was changed by someone else since this state was loaded or saved"
        do = "load it, and take the batch in again, or give another file"
        raise InputError(f"{path} {found}; {do}.")
    write_whole({path: json.dumps(whole, indent=1, allow_nan=False) + "\n"})
    return str(whole["fingerprint"])


def _fingerprint(body: Named) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def load(path: Path) -> Any:
    """Read a file written by `save`, and check that it was not changed."""
    with named(str(path)), opened(path, "JSON") as file:
        content = file.read()
    found: Any = attempt(lambda: json.loads(content))
    intact = attempt(lambda: _fingerprint({x: found[x] for x in _PARTS}) == found["fingerprint"])
    intact = intact and "caltest monitor" in found
    if intact and found["schema"] != _SCHEMA:
        this = f"a state of version {found['schema']}, and this caltest reads {_SCHEMA}"
        do = f"begin a new state, or go on with caltest {found['caltest monitor']}, which wrote it"
        raise InputError(f"{path} is {this}; {do}.")
    if not intact:
        do = "restore a copy of it, or begin a new state"
        raise InputError(f"{path} is no state of a monitor, or was cut or changed; {do}.")
    return found
