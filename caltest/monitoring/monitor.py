"""`Monitor`: takes batches, returns evidence, and keeps its state in one file."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from caltest._arguments import OneOf, anything, arguments, choose, difference, limit
from caltest._visible import quoted
from caltest.alignment import check_rows
from caltest.data import Rows, predictions, sample
from caltest.data.containers import cells_of, listed
from caltest.data.rows import Clustering
from caltest.data.sample import sample_of_law
from caltest.exceptions import Argument, InputError
from caltest.laws import Classes, Point, Quantiles
from caltest.laws.sets import refuse_sets
from caltest.lenses import Lens, event, find_lens, show
from caltest.monitoring import state
from caltest.monitoring.bettors import SCORED, Books
from caltest.monitoring.state import Mode, MonitorState, Waiting
from caltest.statistics import find_statistic

_BLOCK = 50_000  # rows entered at a time; more if a cluster is larger
_MOST_GROUPS = 10_000
_LEAST, _HUGE = 1e-300, 1e300
#: Properties that must not differ between batches, with their names in messages.
_ALIKE = {
    "about": "predictions",
    "width": "the number of classes",
    "columns": "classes",
    "groups": "columns of groups",
    "scale": "how far apart the ends of outcomes can be",
}


def _allowed(name: str, value: object) -> Any:
    """Return the tolerance: a number, or one by side."""
    return (limit if isinstance(value, Mapping) else difference)(name, value)


@arguments(model=OneOf("builtins:str", "give a text"), tolerance=_allowed)
class Monitor:
    """Watch a deployed model: evidence that may be looked at after every batch, at any time.

    A test that is repeated every week raises a false alarm in most half-years. This does not, however
    often one looks: if the model is calibrated, the evidence *ever* reaches 1/alpha with probability at
    most alpha, in every finite sample (Ville's inequality for products of bets). It learns what is
    wrong from the rows that it has seen.

    Parameters
    ----------
    alpha : float, default 0.05
        Probability of a false alarm, ever.
    mode : {"ever", "change"}, default "ever"
        "ever" (default), or "change": for a model that may be good for years. Then there are at least
        ``mean_run_length`` rows, on average, from the start to a false alarm, and a late change is
        found as fast as an early one (Shin, Ramdas and Rinaldo 2023).
    mean_run_length : float, default 10 000
        For mode "change": mean number of rows, or clusters, between false alarms.
    tolerance : float, or dict by side, default 0
        "Is it worse than 2 points?": 0.02 allows the probability of every row to be off by as much,
        which is less than an audit's limit, that of a mean. For one probability: two classes, or a
        lens. By side, ``{"too_low": None, "too_high": 0.02}``, only errors of sides that have a number
        are bet on: whatever the true rates on the other side, a false alarm is no likelier.
    lens : str, optional
        What is looked at, as in :func:`caltest.test`: "top_label", "class:3", "interval:0.9" and
        others. Default None: all that is predicted.
    statistic : str, optional
        Bets on the scores of rows of one statistic alone: do they come out larger or smaller than the
        model itself predicts? "brier", "log_score", "spiegelhalter", "ecd"; for one probability "citl".
        Only the rank of a score among the labels of its row counts, so for two classes the first four
        are the same bet. Default None: bets on all that can be learned from predictions.
    model : str, optional
        Name and version of the model, kept in the state: a state belongs to one model.

    Attributes
    ----------
    options : dict
        The arguments, by name.

    Raises
    ------
    InputError
        If an argument is not what it should be.

    Notes
    -----
    The bettors, with equal weights: temperatures (for two classes slopes and shifts of the log-odds); q
    ∝ g·exp(θᵀφ(g)) with θ learned by AdaGrad from past labels, φ being 1, or 1 and 32 random Fourier
    features of one of two bandwidths (for two classes the log-odds too); for numbers the same for the
    rank F(y), with Legendre polynomials, and the mean over (F(y−), F(y)) where outcomes have atoms;
    with a statistic, for the rank of a row's score among those of all labels. For times until an event
    the hazard is a multiple of the predicted one, or learned in the same way; a row that is censored at
    c contributes the mean over (F(c), 1), the likelihood ratio of what was observed. With groups,
    evidence on all rows has weight 1/2, and the k-th to appear, groups included, 1/(k(k + 1)).

    *Point forecasts* (:class:`caltest.predictive.Point`). For a median or a quantile, bets are on how
    often outcomes lie above it. A mean x of outcomes between ``low`` and ``high`` is the probability
    (x - low)/(high - low) of an event that comes by a share, (y - low)/(high - low): the same bets,
    linear in this share, are fair if E[y] = x given the past. That is the null, row by row: errors that
    cancel over time are errors. Expectiles are watched in the same way. Without both ends no bet is
    fair, and means are refused. Sizes are in units of the outcome, with limits that hold at any time.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> monitor = caltest.Monitor(alpha=0.05)
    >>> for week in range(8):
    ...     p = rng.uniform(0.1, 0.9, 500)
    ...     state = monitor.update(p, rng.random(500) < p, batch=f"week {week}")
    >>> state.alarm, state.rows, len(state.periods)
    (False, 4000, 8)
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        mode: Mode = "ever",
        mean_run_length: float = 10_000.0,
        tolerance: float | Mapping[str, float | None] = 0.0,
        lens: str | None = None,
        statistic: str | None = None,
        model: str | None = None,
    ) -> None:
        choose("mode", mode, {"ever": None, "change": None})
        lens = lens.label if isinstance(lens, Lens) else lens
        find_lens(lens)
        if statistic is not None:
            choose("statistic", statistic, dict.fromkeys(SCORED))
        numbers = {"alpha": alpha, "mean_run_length": mean_run_length}
        self.options: dict[str, Any] = {name: float(value) for name, value in numbers.items()}
        self.options["tolerance"] = tolerance
        self.options |= {"mode": mode, "lens": lens, "statistic": statistic, "model": model}
        self._shape: dict[str, Any] = {}  # properties of the first batch
        self._books: Books = {}
        self._processes: list[list[str]] = []  # column and value, for all but the first
        self._periods: list[dict[str, Any]] = []
        self._batches: list[str] = []
        self._clusters: list[str] = []
        self._ids: list[str] = []
        self._queue: list[Waiting] = []
        self._column: str | None = None
        self._alarm_date: str | None = None
        self._set_aside = 0
        self._revision: str | None = None

    def __repr__(self) -> str:
        return f"Monitor({self.options['mode']}, {self.state._page().brief})"

    # -------------------------------------------------------------- batches

    @arguments(date=anything)
    def update(
        self,
        predicted: object,
        outcomes: object,
        *,
        groups: object = None,
        clusters: object = None,
        ids: object = None,
        batch: str | None = None,
        date: object = None,
        logits: bool = False,
    ) -> MonitorState:
        """Add a batch, and return the new state.

        Rows are used in their order; where batches begin does not change any number.

        Parameters
        ----------
        predicted : array of shape (n,) or (n, m), data frame, or predictive distribution
            Probabilities, (n,) or (n, m), in any container; or an object of :mod:`caltest.predictive`.
            None if outcomes of rows that wait come alone.
        outcomes : array of shape (n,), or (time, event)
            What was observed. With ``ids`` an entry may be missing: the row waits for it. For times
            until an event, rows must come in the order in which they began, those still at risk too:
            all at one age, or all with what has been observed by one date; never as they end.
        groups : data frame, dict of columns, or one column, optional
            Columns that group the rows, as in :func:`caltest.audit`, known before the outcome. A group
            is followed from its first row on. Values stay as they are: cut numbers at fixed places.
        clusters : array of shape (n,), optional
            Which rows may depend on each other in any way. Their bets are averaged, not multiplied. All
            rows of a cluster must come in one batch; if it comes again, its new rows do not count
            (``set_aside``).
        ids : array of shape (n,), optional
            A name for every row, if outcomes come late (for classes only). Needed while rows wait.
        batch : str, optional
            A name that tells whether the batch was seen before. Default None: its content tells.
        date : str, or array of shape (n,), optional
            When its rows were predicted, to tell since when the model is wrong: a text, or a column of
            them, with rows in the order of their dates. Every date is then a period of its own, so days
            that come late or together keep theirs; with clusters a batch is one period, with its last
            date. Default None: no date is shown.
        logits : bool, default False
            As in :func:`caltest.test`.

        Returns
        -------
        MonitorState

        Raises
        ------
        InputError
            If the batch was seen before, has other classes, columns or groups, or the input is wrong.
            Nothing is changed then.

        Examples
        --------
        >>> import caltest
        >>> monitor = caltest.Monitor()
        >>> monitor.update([0.2, 0.7, 0.4], [0, None, 1], ids=["a", "b", "c"]).waiting
        2
        >>> monitor.update(None, [1], ids=["b"]).rows
        3
        """
        if predicted is None and ids is None and not self._queue:
            raise InputError("predicted is None, and no row waits for its outcome; give predictions.")
        beside = {"groups": groups, "clusters": clusters}
        if predicted is None and (groups is not None or clusters is not None):
            raise InputError("rows that wait have groups and clusters already; leave these out.")
        check_rows({"predicted": predicted, "outcomes": outcomes, **beside, "ids": ids})
        state.check_ids(ids, predicted, outcomes, groups, clusters)
        if ids is not None or self._queue:
            self._late(predicted, outcomes, ids, beside, batch, date, logits)
            return self.state
        found = sample_of_law(predicted, outcomes, logits=logits)
        whole = found or sample(predicted, outcomes, part=True, logits=logits)
        dates = state.dates_of(date, whole.rows.n_samples)
        self._enter(state.batch_of(whole.rows, whole.labels, **beside), batch, dates)
        return self.state

    def _enter(
        self, given: state.Batch, batch: str | None, dates: list[str | None], *, counted: bool = False
    ) -> None:
        """Bet on rows with known outcomes; all checks come first."""
        given, shape = self._checked(given)
        bettors, statistic = state.bettors_of(shape, self.options), self.options["statistic"]
        chosen = None if statistic is None else find_statistic(statistic)
        values, codes = bettors.read(given.rows, given.labels, chosen)
        keys = []
        if not counted:
            content = hashlib.sha256(values.tobytes() + codes.tobytes())
            content.update(repr((dict(given.texts), given.clusters)).encode("utf-8", "surrogatepass"))
            keys = [self._new_batch(batch, content.hexdigest())]
        kept, order, ends, fresh = self._units(given.clusters, len(values))
        n = len(kept)
        member, processes = self._members(given.texts, kept)
        self._set_aside += len(values) - n
        if not n:
            self._batches += keys
            return
        values, codes, member = values[kept][order], codes[kept][order], member[order]
        dated = [dates[row] for row in kept[order]]
        later = [k for k in range(1, n) if dated[k] != dated[k - 1]]  # if no cluster has two days
        days = [0, *(later if (ends[np.searchsorted(ends, later)] == later).all() else ()), n]

        if not self._books:
            self._shape, self._books = shape, bettors.blank(0, self._is_change)
            self._books["whole"] = np.array(self._nothing)
        books = self._books
        fresh_books = bettors.blank(len(processes) + 1 - len(books["logs"]), self._is_change)
        for name, array in fresh_books.items():
            books[name] = np.concatenate([books[name], array])
        self._processes = processes
        shares = -np.log(state.shares_of(shape, len(books["logs"])))
        for begin, end in pairwise(days):
            before, count = books["totals"][0].copy(), int(books["counts"][0])
            starts = [begin]
            while starts[-1] < end:  # whole units
                starts.append(int(ends[np.searchsorted(ends, min(starts[-1] + _BLOCK, end))]))
            for start, stop in pairwise(starts):
                own, part = ends[(ends > start) & (ends <= stop)] - start, slice(start, stop)
                bettors.bet(values[part], codes[part], own, member[part], shares, books)
            log_evalue, _, rows, _, _, alarm = books["whole"].tolist()
            if alarm > rows - (end - begin):
                self._alarm_date = dated[int(end + alarm - rows) - 1]
            sums = (books["totals"][0] - before)[bettors.main].ravel().tolist()
            period = {"name": batch, "date": dated[end - 1], "rows": end - begin, "end": int(rows)}
            period["log_evalue"] = max(min(log_evalue, _HUGE), -_HUGE)
            self._periods.append(period | {"sums": [int(books["counts"][0]) - count, *sums]})
        bettors.remember(values, codes, member, books)
        self._batches += keys
        self._clusters += fresh

    def _new_batch(self, batch: str | None, content: str) -> str:
        """Return the key of a batch; raise if it was seen before."""
        if (key := state.brief(content if batch is None else f"name: {batch}")) in self._batches:
            known = "with this content" if batch is None else f"called {quoted(batch)}"
            do = "leave it out, or if its rows are new give it a name (batch) of its own"
            raise InputError(f"a batch {known} was taken in before; {do}.")
        return key

    def _units(self, clusters: list[str] | None, n: int) -> tuple[Any, Any, Any, list[str]]:
        """Return the rows to use, their order by cluster, the clusters' ends, and keys of new clusters.

        Rows of earlier clusters are not used: what they depend on has been used already.
        """
        if clusters is None:
            return np.arange(n), np.arange(n), np.arange(1, n + 1), []
        found, before = Clustering(), set(self._clusters)
        units = found.codes(clusters)
        keys = [state.brief(str(name)) for name in found.known]
        is_new = np.array([key not in before for key in keys])
        kept = np.flatnonzero(is_new[units])
        units = (np.cumsum(is_new) - 1)[units[kept]]
        fresh = [key for key in keys if key not in before]
        return kept, np.argsort(units, kind="stable"), np.cumsum(np.bincount(units)), fresh

    def _checked(self, given: state.Batch) -> tuple[state.Batch, dict[str, Any]]:
        """Return the batch as seen through the lens, and its properties.

        Raise if the properties differ from earlier batches, or the batch cannot be monitored.
        """
        lens, scored, tolerance = (self.options[x] for x in ("lens", "statistic", "tolerance"))
        whole, unnamed = given.rows, given.clusters is None
        full: Any = whole.law
        refuse_sets(full, "a monitor bets on errors of both sides")
        censored = getattr(full, "seen", None)
        if lens is not None:
            seen = show(whole, lens).sample(given.labels)
            given = given._replace(rows=seen.rows, labels=seen.labels)
        law: Any = given.rows.law
        m, names, columns = law.n_classes, *(getattr(each, "names", None) for each in (law, full))
        one = "'top_label'" if m else "'interval:0.9'"
        do = "leave statistic out" if scored else f"give a lens, such as {one}"
        do, points = ("leave it out", True) if isinstance(full, Point) else (do, False)
        wrong = {
            "these rows have weights: evidence multiplies one bet for every row, and no bet counts "
            "twice or by half; leave the weights out, or give rows that weigh more as a "
            "group.": not whole.are_alike,
            "these rows are in clusters, whose names are not known; give clusters.": unnamed
            and whole.clusters is not None,
            "of quantile forecasts a lens states an inequality, on which no bet is fair; leave the "
            "lens out.": lens is not None and isinstance(full, Quantiles),
            "a lens of times needs to know until when every row was followed; give follow_up, or leave "
            "the lens out.": lens is not None and censored is not None and np.signbit(censored).any(),
            "a mean, or an expectile, is watched where both ends of outcomes are known; give "
            f"{Argument('low')} and {Argument('high')}.": points and not full.bounded,
            f"tolerance is about one probability, and these are {law.about}; {do}.": tolerance
            and (m != 2 or scored),
            "the outcomes are vectors; monitor one entry at a time.": m is None
            and law.dimension is not None,
            f"the statistic {scored!r} looks at scores of classes, and these are {law.about}; "
            "leave statistic out, or give a lens too.": m is None and scored is not None,
        }
        for message, holds in wrong.items():
            if holds:
                raise InputError(message)
        shape = {
            "about": law.about,
            "width": full.n_classes,
            "n_classes": 2 if points else None if scored else m,  # an event with a share
            "columns": None if columns is None else list(columns),
            "names": None if names is None else list(names),
            "event": event(full.functional if points else lens, whole) if m == 2 or points else None,
            "functional": full.functional,
            "scale": full.scale if points else 0.0,
            "levels": [] if m or law.levels is None else law.levels.tolist(),
            "groups": sorted(given.texts),
            "clusters": "not given" if unnamed else "given",
        }
        for what, was in self._shape.items():
            if (own := shape[what]) != was:
                now, then = (listed(x) if isinstance(x, list) else quoted(str(x)) for x in (own, was))
                found = f"this batch has {now}, and earlier ones had {then}"
                do = "give the same, in the same order, or begin a new state"
                raise InputError(f"{_ALIKE.get(what, what)}: {found}; {do}.")
        return given, shape

    def _members(self, texts: Mapping[str, Sequence[str]], kept: Any) -> tuple[Any, list[list[str]]]:
        """Return the processes of the rows used, (n, 1 + columns), and all processes with new ones."""
        member, columns = np.zeros((len(kept), 1 + len(texts)), np.int64), sorted(texts)
        known = {tuple(each): k for k, each in enumerate(self._processes, 1)}
        for row, which in enumerate(kept.tolist() if columns else ()):
            for place, column in enumerate(columns, 1):
                member[row, place] = known.setdefault((column, texts[column][which]), len(known) + 1)
        if len(known) > _MOST_GROUPS:
            do = "give columns of fewer values, and cut numbers at fixed places"
            raise InputError(f"there are more than {_MOST_GROUPS:,} groups; {do}.")
        return member, [[*each] for each in known]

    def _late(self, predicted: object, outcomes: object, ids: object, beside: Any, *how: Any) -> None:
        """Queue rows until all rows up to them have outcomes; enter those that are ready."""
        batch, date, logits = how
        if ids is None:
            waits = f"{len(self._queue):,} rows wait for their outcomes, by the names of rows"
            raise InputError(f"{waits}; give ids.")
        if (cells := cells_of(outcomes, "outcomes")) is None:
            raise InputError(argument="outcomes", found=quoted(outcomes), do="give one for every row")
        names, dates = state.names_of(ids, len(cells), "ids"), state.dates_of(date, len(cells))
        shape, queue, keys = self._shape, list(self._queue), list[str]()
        fresh = [*map(state.brief, names)]
        count = Counter([*fresh, *(() if predicted is None else self._ids)])
        if again := [name for name, key in zip(names, fresh, strict=True) if count[key] > 1]:
            found = f"ids holds {quoted(again[0])} twice, or a row that came before is called so"
            raise InputError(f"{found}; give each its own.")
        repeated = 0
        if predicted is None:
            fresh = []
        else:
            labels = np.zeros(len(cells), np.intp)
            if sample_of_law(predicted, labels):
                do = "give others when outcomes are known"
                raise InputError(f"only probabilities of classes wait; {do}.")
            if (rows := predictions(predicted, logits=logits, part=True)).n_samples != len(cells):
                found = f"predicted has {rows.n_samples:,} rows and outcomes {len(cells):,}"
                raise InputError(f"{found}; give one for every row, None where it is not known.")
            # Rows that could not be entered later, as far as is known, must not wait.
            new = state.batch_of(rows, labels, **beside)
            _, shape = self._checked(new)
            keys = [self._new_batch(batch, repr(names))]
            texts = [[new.texts[column][k] for column in shape["groups"]] for k in range(len(names))]
            # Which rows of a cluster are used is fixed when its first rows are predicted, before any
            # outcome.
            waiting = {each.unit for each in queue} if new.clusters else set[str]()
            aside = [unit in waiting for unit in new.clusters or names]
            each = names, rows.probs.tolist(), repeat(-1), texts, new.clusters or names, dates, aside
            queue += map(Waiting, *each)
            repeated = sum(aside)
        state.informed(queue, names, cells, shape.get("columns"))
        ready, left = state.parted(queue)
        if ready:
            _, probs, known, groups, units, days, _ = zip(*ready, strict=True)
            columns, clusters = shape["columns"], [*units] if shape["clusters"] == "given" else None
            law = Classes(np.array(probs), columns and tuple(columns))
            own = dict(zip(shape["groups"], zip(*groups, strict=True), strict=True))
            given = state.Batch(Rows(law), np.array(known), own, clusters)
            self._enter(given, batch, [*days], counted=True)
        self._shape, self._queue, self._set_aside = shape, left, self._set_aside + repeated
        self._batches, self._ids = [*self._batches, *keys], [*self._ids, *fresh]

    # -------------------------------------------------------------- results

    @property
    def _is_change(self) -> bool:
        return bool(self.options["mode"] == "change")

    @property
    def _nothing(self) -> list[float]:
        """The books' entries for all rows before the first row."""
        start = -math.inf if self._is_change else 0.0
        return [start, start, 0.0, 0.0, 0.0, -1.0]

    @property
    def state(self) -> MonitorState:
        """The current state."""
        options = self.options
        nothing: dict[str, Any] = dict.fromkeys(("n_classes", "functional", "scale"))
        nothing |= {"clusters": "not given", "about": ""}
        shape, books = self._shape if self._books else nothing, self._books
        log_evalue, best, rows, clusters, _, alarm = books["whole"].tolist() if books else self._nothing
        evidence = tuple(state.evidence_of(books, shape, options, self._processes)) if books else ()
        return MonitorState(
            **options,
            threshold=options["mean_run_length"] if self._is_change else 1.0 / options["alpha"],
            alarm=alarm >= 0,
            log_evalue=log_evalue,
            pvalue=None if self._is_change else max(math.exp(-max(best, 0.0)), _LEAST),
            rows=int(rows),
            clusters=int(clusters) if shape["clusters"] == "given" else None,
            waiting=len(self._queue),
            set_aside=self._set_aside,
            alarm_row=int(alarm) if alarm >= 0 else None,
            alarm_date=self._alarm_date,
            evidence=evidence,
            periods=state.periods_of(self._periods, shape, options, evidence),
            n_classes=None if shape["scale"] else shape["n_classes"],
            about=shape["about"],
            functional=shape["functional"],
        )

    # -------------------------------------------------------------- the file

    @property
    def columns(self) -> list[str] | None:
        """The column names of the predictions so far, if known."""
        return [self._column] if self._column else self._shape.get("columns")

    @arguments(name=OneOf("builtins:str", "give the name of a column"))
    def keep_column(self, name: str) -> None:
        """Note from which column of a file the one probability is.

        Parameters
        ----------
        name : str
            The column.

        Raises
        ------
        InputError
            If it was another before.
        """
        if self._column not in (None, name):
            earlier = f"earlier ones from {quoted(self._column)}; give the same, or begin a new state"
            raise InputError(f"predictions are from column {quoted(name)}, and {earlier}.")
        self._column = name

    @arguments()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            The file: new, or the one that this state was loaded from or saved to.

        Raises
        ------
        InputError
            If it is another file, was changed since it was loaded, or cannot be written.

        Examples
        --------
        >>> import tempfile, caltest
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     monitor = caltest.Monitor(alpha=0.01)
        ...     monitor.save(f"{folder}/state.json")
        ...     caltest.Monitor.load(f"{folder}/state.json").options["alpha"]
        0.01
        """
        apart, file = ("options", "_books", "_revision"), io.BytesIO()
        kept = {name: value for name, value in vars(self).items() if name not in apart}
        np.savez(file, **self._books)  # type: ignore[arg-type]
        kept["_books"] = base64.b64encode(file.getvalue()).decode()  # without rounding
        self._revision = state.save(Path(path), self.options, kept, self._revision)

    @classmethod
    @arguments()
    def load(cls, path: str | os.PathLike[str]) -> Monitor:
        """Read a state that was saved, to go on with it.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        InputError
            If it cannot be read, is no state of a monitor, or was changed otherwise than by ``save``.

        Examples
        --------
        >>> import caltest
        >>> try:
        ...     caltest.Monitor.load("nowhere.json")
        ... except caltest.InputError as error:
        ...     print(error)
        nowhere.json: there is no such file; check the path.
        """
        whole = state.load(Path(path))
        made, kept = cls(**whole["options"]), whole["state"]
        vars(made).update(kept)
        made._queue = [Waiting(*each) for each in kept["_queue"]]
        with np.load(io.BytesIO(base64.b64decode(kept["_books"]))) as books:
            made._books, made._revision = dict(books), whole["fingerprint"]
        return made
