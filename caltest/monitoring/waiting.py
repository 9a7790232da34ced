"""Rows as they come: batches, and rows that wait for their outcomes.

Who waits, what becomes known, and whose turn it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from caltest._visible import quoted
from caltest.auditing.groups import group_texts
from caltest.data import Rows, predictions, sample
from caltest.data.containers import as_entry, cells_of, check_index, is_missing
from caltest.data.sample import sample_of_law
from caltest.exceptions import InputError
from caltest.laws import Classes


class Batch(NamedTuple):
    """Rows with outcomes, texts of groups by column, and clusters."""

    rows: Rows
    labels: Any
    texts: Mapping[str, Sequence[str]]
    clusters: list[str] | None


def batch_of(
    rows: Rows, labels: Any, *, groups: object, clusters: object, predicted: object, outcomes: object
) -> Batch:
    """Put a batch together: what belongs to rows besides is read as text."""
    n, beside = rows.n_samples, {"predicted": predicted, "outcomes": outcomes}
    names = None
    if clusters is not None:
        for name, other in beside.items():
            check_index(other, clusters, name, "clusters")
        names = names_of(clusters, n, "clusters")
    return Batch(rows, labels, group_texts(groups, n, **beside), names)


def names_of(column: object, n: int, what: str) -> list[str]:
    """Return the entries of a column as text."""
    cells = cells_of(column, what)
    if cells is None or len(cells) != n:
        found = quoted(column) if cells is None else f"of {len(cells)} entries"
        raise InputError(f"{what} is {found}; give one for every row, {n} in all.")
    for row, cell in enumerate(cells):
        if is_missing(cell):
            raise InputError("{argument} has no entry in {row}; give one.", argument=what, row=row)
    return [str(as_entry(cell)) for cell in cells]


# ------------------------------------------------------------------ rows that wait


class Waiting(NamedTuple):
    """A row that waits, as the state keeps it."""

    name: str
    probs: list[float]
    label: int  #: −1: not known.
    texts: list[str]  #: The groups of the row, in the order of their columns.
    unit: str  #: The cluster; without clusters, the name.
    date: str | None  #: When it was predicted.


def rows_to_wait(predicted: Any, n: int, logits: bool) -> Rows:
    """Read predictions of n rows whose outcomes need not be known."""
    rows: Rows = predicted
    if not (isinstance(predicted, Rows) and isinstance(predicted.law, Classes)):
        if sample_of_law(predicted, np.zeros(n)):
            raise InputError("only probabilities of classes wait; give others when outcomes are known.")
        rows = predictions(predicted, logits=logits, part=True)
    if rows.n_samples != n:
        raise InputError(
            f"predicted has {rows.n_samples:,} rows and outcomes {n:,}; give one for every row, None "
            "where it is not known."
        )
    return rows


def day(text: object) -> date:
    """Read a date, which a maturity needs."""
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        raise InputError(
            f"date is {quoted(text)}, and maturity counts days; give a date such as '2026-05-11'."
        ) from None


def _law_of(rows: Sequence[Waiting], columns: list[str] | None) -> Classes:
    """Return what was predicted of rows; ``columns`` are the names of the classes."""
    return Classes(np.array([each.probs for each in rows]), tuple(columns) if columns else None)


def informed(
    queue: Sequence[Waiting], names: Sequence[str], cells: Sequence[Any], columns: list[str] | None
) -> list[Waiting]:
    """Return the queue with outcomes that are known now."""
    places = {each.name: k for k, each in enumerate(queue)}
    for each in ([row.name for row in queue], names):
        if twice := [name for name, count in Counter(each).items() if count > 1]:
            raise InputError(
                f"ids holds {quoted(twice[0])} twice, or a row that waits is called so; give each its "
                "own."
            )
    if unknown := [name for name in names if name not in places]:
        raise InputError(f"no row waits that is called {quoted(unknown[0])}; give ids of rows that do.")
    pairs = zip(names, cells, strict=True)
    known = [(places[name], cell) for name, cell in pairs if not is_missing(cell)]
    found = list(queue)
    if known:
        if done := [queue[k].name for k, _ in known if queue[k].label >= 0]:
            raise InputError(f"the outcome of row {quoted(done[0])} is known already; give each once.")
        law = _law_of([queue[k] for k, _ in known], columns)
        labels = sample(Rows(law), [cell for _, cell in known], part=True).labels.tolist()
        for (k, _), label in zip(known, labels, strict=True):
            found[k] = found[k]._replace(label=label)
    return found


def parted(
    queue: Sequence[Waiting], order: str, maturity: int | None, now: str | None
) -> tuple[list[Waiting], list[Waiting]]:
    """Return rows whose turn it is, and those that wait on; no cluster is parted.

    By order of prediction nobody enters before those who were predicted earlier. With a maturity rows
    enter when they are so old, and not before, though their outcomes may be known.
    """
    late = {each.unit for each in queue if each.label < 0}
    if maturity is not None:
        today = day(now)
        due = [each for each in queue if (today - day(each.date)).days >= maturity]
        if missing := [each for each in due if each.label < 0]:
            raise InputError(
                f"the row {quoted(missing[0].name)} was predicted on {missing[0].date} and has no "
                f"outcome {maturity} days later ({len(missing):,} such rows); give outcomes of all "
                "rows that are so old first: where no event was seen by then, that it did not come."
            )
        late |= {each.unit for each in queue if (today - day(each.date)).days < maturity}
    if order == "prediction":
        first = next((k for k, each in enumerate(queue) if each.unit in late), len(queue))
        late |= {each.unit for each in queue[first:]}
    ready = [each for each in queue if each.unit not in late]
    return ready, [each for each in queue if each.unit in late]


def batch_of_known(ready: Sequence[Waiting], shape: Mapping[str, Any]) -> Batch:
    """Return rows whose turn it is as a batch; ``shape`` is what batches are like."""
    return Batch(
        Rows(_law_of(ready, shape["columns"])),
        np.array([each.label for each in ready]),
        {name: [each.texts[k] for each in ready] for k, name in enumerate(shape["groups"])},
        [each.unit for each in ready] if shape["clusters"] == "given" else None,
    )
