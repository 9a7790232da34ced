"""Long tables of forecast hubs (hubverse): a row for every quantile, draw, threshold or category.

A task is what all columns besides those of its output say. Its rows become one, and what was observed
of it is looked up in another table, by the columns that both have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from caltest._visible import quoted
from caltest.data.containers import as_entry, is_missing, is_number, listed
from caltest.exceptions import Argument, InputError
from caltest.files import places
from caltest.files.columns import Columns, Content, NumberColumns, Roles, check_there
from caltest.files.stored import as_texts

_OUTPUT = ("output_type", "output_type_id", "value")
_READ = {"quantile": "quantiles", "sample": "members", "cdf": "cdf", "pmf": ""}  # in NumberColumns
_POINTS = ("mean", "median")  # state no distribution
_OBSERVED = ("observation", "oracle_value", "target_value", "value")
_MIDNIGHT = re.compile(r"[ T]00:00:00(\.0+)?Z?$")
_WRONG = {
    "columns": "{truth} is for a hub's long table, which says itself what was predicted; leave "
    "{columns} out.",
    "no value": "column {name} holds {known}, and {found} in no row; give one of those.",
    "several": "column {name} holds {known}; choose one, {where}.",
    "type": "the output type {found} states no distribution that can be read; give quantile, sample, "
    "cdf or pmf.",
    "no tasks": "there are no columns of tasks, such as location and horizon; add them.",
    "number": "column {name} holds {found} in {row}, which is not a number; correct it.",
    "again": "output {found} of a task is stated in {row} again; keep one of each.",
    "uneven": "the task {found} has fewer rows of output than others; give every task the same.",
    "no keys": "no column of the truth ({known}) is one of the tasks' ({found}); name them alike.",
    "no label": "no column of the truth is called {found}; say which holds what was observed, with "
    "--label (label=… in Python): the columns are {known}.",
    "two": "the truth of {row} is of the same {name} as another; keep one, such as the last version.",
    "no truth": "there is no truth of any task, such as {found}; write the keys alike.",
}


def read_hub(path: str | Path, truth: str | Path, where: Mapping[str, str], roles: Roles) -> Content:
    """Read forecasts of one target and output type, and what was observed of their tasks."""
    import pyarrow as pa

    if roles.columns is not None:
        given = Argument(next(iter(roles.numbers.of)) if roles.numbers else "columns")
        raise InputError(_WRONG["columns"], truth=Argument("truth"), columns=given)
    table, observed = _texts(path), _texts(truth)
    for name in _OUTPUT:
        check_there(name, table.columns, "column", " of a hub's long table")
    untold = "target" in table and "target" not in observed and table["target"].nunique() > 1
    for name, value in where.items():
        check_there(name, {*table.columns, *observed.columns}, "column", "")
        table, observed = (_picked(each, name, value) for each in (table, observed))
    points = table["output_type"].isin(_POINTS)
    notes = [f"Output types not read: {listed(sorted(set(table['output_type'][points])))}."]
    notes, table = (notes, table[~points]) if 0 < points.sum() < len(table) else ([], table)
    for name in ("output_type", "target", "model_id"):
        if len(known := table[name].unique() if name in table else [""]) > 1:
            how = f"with --where '{name}={known[0]}' (where={{{name!r}: …}} in Python)"
            raise InputError(_WRONG["several"], name=quoted(name), known=listed(known), where=how)
    kind = str(table["output_type"].iloc[0])
    if kind not in _READ:
        raise InputError(_WRONG["type"], found=quoted(kind))
    tasks = [name for name in table if name not in (*_OUTPUT, "model_id")]
    if not tasks:
        raise InputError(_WRONG["no tasks"])
    for name in filter(None, (*roles.groups, roles.weights)):
        check_there(name, tasks, "column", "", "the columns of tasks are")
    wide = _wide(table, tasks, kind)
    found = wide.index.to_frame(index=False)
    label, keys, outcomes = _outcomes(observed, found, kind, roles.label)
    found, values = found[known := (outcomes != "").to_numpy()], wide.to_numpy()[known]
    if not known.all():
        first = ", ".join(map(" ".join, zip(tasks, np.atleast_1d(wide.index[~known][0]), strict=True)))
        if not known.any():
            raise InputError(_WRONG["no truth"], found=first).within(places.called(truth))
        notes.append(f"Left out for want of truth: {(~known).sum()} of {len(wide)} tasks ({first}, …).")
    notes.append(
        f"Truth was found by {listed(keys)}{', and is taken for that of the target' * untold}."
    )
    if kind == "cdf":
        notes.append("Outcomes count as the next threshold, as nothing is stated between these.")
    names = [str(at) if kind == "pmf" else f"{kind}_{at:g}" for at in wide.columns]
    numbers = None
    if kind != "pmf":
        of = tuple(names) if kind == "sample" else dict(zip(names, wide.columns, strict=True))
        numbers = NumberColumns({_READ[kind]: of})
    columns = {name: found[name].tolist() for name in tasks if name in (*roles.groups, roles.weights)}
    columns[label] = outcomes[known].tolist() if kind == "pmf" else _numbers(outcomes[known]).tolist()
    read = pa.table(columns | dict(zip(names, values.T, strict=True)))
    stated = replace(roles, label=label, columns=tuple(names), numbers=numbers)
    return replace(Columns.of(stated, read.column_names), notes=tuple(notes)).content(read)


def _texts(path: str | Path) -> Any:
    """Read a table as a frame of text, in which 1.0 is 1 and midnight is a date."""
    with places.named(places.called(path)):
        place = places.located(path)
        if not (places.is_folder(place) or places.is_pattern(place)):
            places.check_file(place)
        frame = as_texts(place).to_pandas().astype(object).fillna("")
    for name in frame.columns.difference(["value"]):
        known = {cell: str(as_entry(_MIDNIGHT.sub("", cell))) for cell in frame[name].unique()}
        frame[name] = frame[name].map(known)
    return frame


def _picked(frame: Any, name: str, value: str) -> Any:
    """Return rows of one value, if there is such a column."""
    chosen = frame[name] == str(as_entry(value)) if name in frame else np.ones(len(frame), np.bool_)
    if not chosen.any():
        known = listed(frame[name].unique())
        raise InputError(_WRONG["no value"], name=quoted(name), found=quoted(value), known=known)
    return frame[chosen]


def _numbers(column: Any) -> Any:
    """Return text as numbers, or raise."""
    for row, cell in column[~column.map(is_number).astype(np.bool_)].items():
        raise InputError(_WRONG["number"], name=quoted(column.name), found=quoted(cell), row=int(row))
    return column.astype(np.float64)


def _wide(table: Any, tasks: list[str], kind: str) -> Any:
    """Return a row for every task, and a column for every draw, level, threshold or category."""
    own = table["output_type_id"]
    table = table.assign(value=_numbers(table["value"]))
    if kind in ("quantile", "cdf"):
        table["output_type_id"] = _numbers(own)
    for row in table.index[table.duplicated([*tasks, "output_type_id"])][:1]:
        raise InputError(_WRONG["again"], found=quoted(own[row]), row=int(row))
    if kind == "sample":  # draws of different tasks may have different names
        table["output_type_id"] = table.groupby(tasks).cumcount()
    wide = table.pivot(index=tasks, columns="output_type_id", values="value")
    for task in wide.index[wide.isna().any(axis=1)][:1]:
        raise InputError(_WRONG["uneven"], found=listed(np.atleast_1d(task)))
    return wide[own.unique()] if kind == "pmf" else wide


def _outcomes(observed: Any, tasks: Any, kind: str, label: str | None) -> tuple[str, list[str], Any]:
    """Return the column of what was observed, the keys, and this of every task, as text; "" if none."""
    names = list(observed.columns)
    if not (keys := [name for name in tasks if name in names]):
        raise InputError(_WRONG["no keys"], known=listed(names), found=listed(tasks))
    label = label or next((name for name in _OBSERVED if name in names), None)
    if label is None:
        raise InputError(_WRONG["no label"], known=listed(names), found=" or ".join(_OBSERVED))
    check_there(label, names, "column", " of the truth")
    observed = observed[~observed[label].map(is_missing)]
    if "output_type" in names:  # a hub's own table for scoring
        observed = observed[observed["output_type"].isin((kind, ""))]
    if "output_type_id" in names and kind in ("cdf", "pmf"):  # which has a 1 where it happened
        happened, ids = _numbers(observed[label]) == 1.0, observed["output_type_id"]
        if kind == "pmf":
            observed = observed[happened].assign(**{label: ids[happened]})
        else:
            first = _numbers(ids).where(happened, np.inf)
            observed = observed.assign(**{label: first}).sort_values(label).drop_duplicates(keys)
            observed = observed.astype({label: str})
    for row in observed.index[observed.duplicated(keys)][:1]:
        raise InputError(_WRONG["two"], name=listed(keys), row=int(row))
    own = observed[[*keys, label]].reset_index(names="")
    found = tasks.merge(own, how="left", on=keys).set_index("")[label].fillna("").astype(str)
    return label, keys, found
