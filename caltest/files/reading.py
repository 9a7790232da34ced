"""`read` and `scan`: files read whole or block by block; also tables of forecast hubs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from caltest._arguments import arguments, flag, texts_by_name
from caltest._arguments import path as path_of
from caltest._arguments import paths as paths_of
from caltest._visible import attempt, quoted
from caltest.data import Rows, Sample
from caltest.data.containers import check_distinct, listed
from caltest.data.features import READ_WHOLE
from caltest.exceptions import Argument, InputError, Phrase, Row
from caltest.files import batches, paths
from caltest.files.batches import NUMPY, Stored, StoredArrays, check_array, column_of_labels
from caltest.files.columns import Columns, Content, NumberColumns, Roles, check_there, chosen_label
from caltest.files.formats import FORMATS, as_texts, stored_table
from caltest.files.logs import log_files, read_logs
from caltest.files.paths import Place
from caltest.laws import Sets
from caltest.spelling import is_missing, is_number, spelled

if TYPE_CHECKING:
    import pandas as pd

_ARRAYS = {".npz": batches.read_npz, ".npy": batches.read_npy}


@arguments(path=paths_of, where=texts_by_name, truth=path_of)
def read(
    path: str | Path | Sequence[str | Path],
    label: str | int | None = None,
    *,
    columns: Sequence[str] | Mapping[str, Any] | None = None,
    groups: Sequence[str] = (),
    features: Sequence[str] = (),
    weights: str | None = None,
    clusters: str | None = None,
    blocks: str | None = None,
    rounding: float | None = None,
    logits: bool = False,
    scale: float | Mapping[str, float] | None = None,
    skip_missing: bool = False,
    truth: str | Path | None = None,
    where: Mapping[str, str] | None = None,
) -> Sample:
    r"""Read predictions and observed labels from a file, and check them.

    Parameters
    ----------
    path : path
        A table: ``.csv`` (commas, UTF-8, a header), ``.parquet`` or ``.pq``, ``.arrow``, ``.feather``
        or ``.ipc``, ``.jsonl`` or ``.ndjson`` (an object per line), or a directory of such files of one
        kind, or a pattern of their names (``"day=*/*.parquet"``), in the order of their names. URLs
        that pyarrow knows (s3, gs, abfs, hdfs), or fsspec, are paths too. A table has one column of
        labels, and its other columns are probabilities, named after the classes; a single one is
        P(class 1). Or the log of a language model, or several in a list: ``samples_*.jsonl`` of
        lm-evaluation-harness, whose log-likelihoods of choices become probabilities, or JSON of
        inspect, with a field ``confidence`` and marks C and I. Their subject, task or model are the
        groups, and questions that come more than once the clusters, unless others are named. Or
        ``.npz``: an array ``probs`` (or ``probabilities``, ``p``, ``y_prob``), an array of labels, and
        optionally ``classes``. Or ``.npy``: one array with a column of labels.
    label : str or int, optional
        Name of the labels; for ``.npy`` the index of their column. Default None: whichever there is of
        ``label``, ``labels``, ``y``, ``y_true``, ``target`` and ``class``, in upper or lower case.
    columns : sequence of str, or dict, optional
        Names of the probability columns of a table, in class order. Default None: all but the label and
        the groups; no column is left out silently. If the outcome is a number, what the columns state
        about it: ``{"mean": "forecast", "sd": "error"}`` or ``{"mean": …, "variance": …}``, normal
        distributions; or ``{"quantiles": {"low": 0.05, "high": 0.95}}``, the level of each column, or
        ``{"quantiles": "q*"}``, columns such as "q0.05", whose names have the level for the star; or
        ``{"members": "sample_"}``, all columns whose names are this and a number: members of an
        ensemble, in any order; or ``{"point": "forecast", "low": 0}``, point forecasts of the mean, or
        of another "functional", with what :class:`caltest.predictive.Point` takes. The label is then
        the column of outcomes. Or what prediction sets have, ``{"sets": "in_", "level": 0.9}``: columns
        of 1 and 0, "in_cat" for the class cat, or one column of lists such as "cat|dog"; or ``{"lower":
        …, "upper": …, "level": …}``, ends of intervals. The level may be a column, and "claims" and
        "calibration_rows" are those of :class:`caltest.predictive.Sets`.
    groups : sequence of str, default ()
        Names of columns that group the rows, and hold no probabilities; :func:`read_with_groups`
        returns them. Default none.
    features : sequence of str, default ()
        Names of columns that describe the rows (see :func:`caltest.test`), and patterns: "x_*" for all
        columns of such names that are nothing else; "!x_1" leaves one of these out. The sample keeps
        them, so tests and audits use them. A column may be a group too. Default none.
    weights : str, optional
        Name of the column of weights, see :func:`caltest.data.sample`. Default None: all rows have
        equal weight.
    clusters : str, optional
        Name of the column of clusters, see :func:`caltest.data.sample`. Default None: rows are
        independent.
    blocks : str, optional
        If clusters are blocks of time, and their column holds dates or times (2024-01-31,
        2024-01-31T12:00): how long a block is, such as "12h", "7d", "4w" or "1mo". Weeks start on
        Mondays. Default None: every entry is a cluster.
    rounding : float, optional
        As in :func:`caltest.data.sample`.
    logits : bool, default False
        As in :func:`caltest.data.sample`. The array of logits of an ``.npz`` file has "logit" in its
        name.
    scale : float, or dict of word to float, optional
        The value that means certainty, 100 for percent; or the values of words, ``{"low": 0.3, "high":
        0.9}``, also of labels, ``{"good": 1, "bad": 0}``, with NaN for a word that is no answer. A
        percent sign needs no scale. Default None: they are fractions of 1.
    skip_missing : bool, default False
        Whether to leave out rows without a prediction or an outcome, such as refusals, and to count
        them among the premises in doubt. Default False: they are an error.
    truth : path, optional
        If the file is the long table of a forecast hub, with the columns ``output_type``,
        ``output_type_id`` and ``value`` (hubverse): the table of what was observed. A row of the sample
        is a task, identified by all other columns but ``model_id``; groups, weights and clusters are
        among these columns. Its outcome is found by the columns that both tables have, in the column
        ``label``, by default ``observation`` or ``oracle_value``. Quantiles, samples, cdf and pmf are
        read; tasks may state different quantiles, or have different numbers of samples. Default None:
        rows of the file have their own labels.
    where : dict of str to str, optional
        Which rows of such a table: ``{"output_type": "quantile", "target": "wk inc flu hosp"}``. There
        must be one output type, target and model left. Default None: all rows.

    Returns
    -------
    Sample
        As :func:`caltest.data.sample` makes it.

    Raises
    ------
    InputError
        If the file cannot be read or its content is wrong; the message starts with the file's name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from caltest.files import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("dry,rain,label\n0.25,0.75,rain\n0.5,0.5,dry\n")
    ...     read(path).labels
    array([1, 0])
    """
    with paths.named(paths.called(path)):
        roles = Roles(label, columns, groups, weights, clusters, blocks, logits, features=features)
        roles = replace(roles, scale=scale, skip_missing=skip_missing)
        return _content(path, roles, truth, where).checked(rounding=rounding)


@arguments(path=paths_of, part=flag, where=texts_by_name, truth=path_of)
def read_with_groups(
    path: str | Path | Sequence[str | Path],
    label: str | int | None = None,
    *,
    groups: Sequence[str] = (),
    needs_labels: bool = True,
    part: bool = False,
    rounding: float | None = None,
    truth: str | Path | None = None,
    where: Mapping[str, str] | None = None,
    **options: Any,
) -> tuple[Sample | Rows, pd.DataFrame]:
    r"""Read predictions, labels and grouping columns from one file.

    Parameters
    ----------
    path : path, or sequence of paths
        As in :func:`read`.
    label : str or int, optional
        As in :func:`read`.
    rounding : float, optional
        As in :func:`read`.
    truth : path, optional
        As in :func:`read`.
    where : dict of str to str, optional
        As in :func:`read`.
    **options : any
        Options of :func:`read`: ``columns``, ``features``, ``weights``, ``clusters``, ``blocks``,
        ``logits``, ``scale`` and ``skip_missing``.
    groups : sequence of str, default ()
        Names of columns (arrays of an ``.npz`` file, of shape (n,)) whose values group the rows. They
        hold no probabilities. Default none.
    needs_labels : bool, default True
        Whether the file must have labels, as it must where ``label`` is given.
    part : bool, default False
        Whether the rows are some of many, so that there may be just one.

    Returns
    -------
    sample : Sample or Rows
        As :func:`caltest.data.sample` makes it; predictions alone, if the file has no labels.
    groups : pandas.DataFrame
        (n, number of groups) the columns asked for, in that order. In a CSV file, cells are text as it
        is written ("007" is not "7"), and an empty one is missing. ``attrs["event"]`` is the name of
        the column of probabilities, if there is only one.

    Raises
    ------
    InputError
        If the file cannot be read or its content is wrong; the message starts with the file's name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from caltest.files import read_with_groups
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("dry,rain,label,station\n0.25,0.75,rain,007\n0.5,0.5,dry,012\n")
    ...     sample, groups = read_with_groups(path, groups=["station"])
    >>> sample.rows.classes, groups["station"].tolist()
    (('dry', 'rain'), ['007', '012'])
    """
    import pandas as pd

    how: Any = {"needs_labels": needs_labels, "truth": truth, "where": where, **options}
    found, columns, event = read_grouped(path, label, groups, part, rounding, **how)
    rows = found if isinstance(found, Rows) else found.rows
    columns = {name: pd.Series(cells, dtype=object) for name, cells in columns.items()}
    frame = pd.DataFrame(columns, index=pd.RangeIndex(rows.n_samples))
    frame.attrs.update({} if event is None else {"event": event})
    return found, frame


@arguments(path=paths_of)
def read_grouped(
    path: Any, label: Any = None, groups: Any = (), part: bool = False, rounding: Any = None, **how: Any
) -> tuple[Sample | Rows, dict[str, Any], str | None]:
    """Read like :func:`read_with_groups`, but with columns as lists and the event's name at the end."""
    truth, where = how.pop("truth", None), how.pop("where", None)
    with paths.named(paths.called(path)):
        content = _content(path, Roles(label, groups=groups, **how), truth, where)
        sample = None if content.labels is None else content.checked(rounding=rounding, part=part)
        found = sample or content.checked_predictions()
    asked = (groups,) if isinstance(groups, str) else groups
    shown = [name for name in content.groups if name in asked or name != content.roles.clusters]
    return found, {name: content.groups[name] for name in shown}, content.event


def read_late(
    path: str | Path, label: str, ids: str, columns: Any, groups: Sequence[str], **how: Any
) -> tuple[Rows | None, list[str], list[Any], dict[str, list[Any]], str | None]:
    """Read rows whose outcomes may be missing: predictions, names, outcomes, and group columns.

    The last item is the name of the only column of predictions, if there is one. Predictions are None
    if the file has none of their columns, only outcomes.
    """
    with paths.named(paths.called(path)):
        table = as_texts(paths.located(path)).table()
        for name, what in ((label, "labels"), (ids, "ids")):
            check_there(name, table.column_names, "column", f" of {what}")
        others = set(columns or set(table.column_names) - {label, ids, *groups})
        outcomes = [_whole(cell) for cell in table.column(label).to_pylist()]
        if not others & set(table.column_names):
            return None, table.column(ids).to_pylist(), outcomes, {}, None
        content = _content(path, Roles(label, columns, (*groups, ids), **how))
        found = {name: content.groups[name] for name in groups}
        rows = content.checked_predictions(part=True)
        return rows, table.column(ids).to_pylist(), outcomes, found, content.event


def _whole(cell: str | None) -> Any:
    """Return a label cell: whole numbers as int, None for an empty cell."""
    return int(float(cell)) if cell and re.fullmatch(r"\d{1,9}(\.0*)?", cell) else cell or None


def _content(path: Any, roles: Roles, truth: Any = None, where: Any = None) -> Content:
    """Read the content of a file or of several, by format."""
    if truth is not None:
        return _hub(path, truth, where or {}, roles)
    if where is not None:
        text = "{where} picks rows of a hub's long table; give its {truth} too."
        raise InputError(text, where=Argument("where"), truth=Argument("truth"))
    if files := log_files(path, roles):
        return read_logs(files, roles)
    if isinstance(path, list | tuple):
        do = "give a directory of them, or a pattern"
        raise InputError(f"these are several files, and no logs; {do}.")
    place = paths.located(path)
    if roles.sets is not None:
        return _of_sets(as_texts(place).table().to_pandas(), roles)
    if _is_table(place):
        return stored_table(place, roles, whole=True).content()
    with paths.opened(place, NUMPY) as file:
        if paths.size_of(file) == 0:
            raise InputError("the file is empty; write it again.")
        return _ARRAYS[place.suffix.lower()](file, roles)


#: Cells that say whether a class is in a set.
_BITS: Mapping[str | None, float] = {"1": 1.0, "true": 1.0, "0": 0.0, "false": 0.0}


def _of_sets(table: Any, roles: Roles) -> Content:
    """Read sets or intervals: columns of 1 and 0 with a prefix, one of lists, or columns of ends."""
    names, of = list(table), dict(roles.sets)
    if roles.skip_missing or roles.scale or roles.logits:
        what = "a scale, logits and missing cells"
        raise InputError(f"{what} are of probabilities; leave these options out.")

    def column(name: str) -> Any:
        check_there(name, names, "column", "")
        return table[name]

    label = roles.found(names, partial(chosen_label, label=roles.label))
    if (level := of.get("level")) is not None and not isinstance(level, float):
        of["level"] = float(level) if is_number(level) else _numbers(column(level))
    if (start := of.pop("sets", None)) is None:
        of |= {end: _numbers(column(of[end])).to_numpy() for end in ("lower", "upper") if end in of}
    else:
        given = {label, roles.weights, level, *roles.groups, *roles.features}
        own = [name for name in names if name.startswith(start) and name not in given]
        if own in ([], [start]):
            of["members"] = [*map(_listed, column(start))]
        else:
            of["members"] = table[own].map(lambda cell: _BITS.get(spelled(cell)))
            for row, k in np.argwhere(of["members"].isna().to_numpy())[:1].tolist():
                found = quoted(table[own[k]][row])
                raise InputError(_WRONG["bit"], name=quoted(own[k]), found=found, row=row)
            of["members"].columns = [name.removeprefix(start) for name in own]
    weights = None if roles.weights is None else _numbers(column(roles.weights))
    groups, beside = ({x: column(x).tolist() for x in each} for each in (roles.groups, roles.features))
    labels = column(label).to_numpy()
    return Content(roles, Sets(**of), labels, groups, weights=weights, features=beside)


def _listed(cell: Any) -> Any:
    """Return the classes of a set, "cat|dog" or a JSON list; None if it is neither."""
    if (text := cell if isinstance(cell, str) else "").startswith("["):
        return attempt(lambda: json.loads(text))
    return [name for name in text.split("|") if name.strip()]


def read_posterior(files: Sequence[Path], names: Sequence[str] | None) -> tuple[Any, Any]:
    """Read parameters and their posterior draws: from columns of a table by name, or from arrays."""
    if [path.suffix.lower() for path in files] in ([".npz"], [".npy", ".npy"]):
        arrays = list[Any]()
        for path in files:
            with paths.named(str(path)), paths.opened(path, path.suffix[1:].upper()) as file:
                arrays.append(np.load(file, allow_pickle=False))
                for name in ("parameters", "draws") if len(files) == 1 else ():
                    check_there(name, arrays[0].files, "array", "")
                    arrays.append(arrays[0][name])
        return arrays[-2], arrays[-1]
    if len(files) != 1 or not names:
        other = "one .npz file with the arrays parameters and draws, or two .npy files"
        raise InputError(f"give one table with {Argument('names')} of its parameters; or {other}.")
    own = {name: read(files[0], name, columns={"members": f"{name}_"}) for name in names}
    drawn: dict[str, Any] = {name: each.rows.law for name, each in own.items()}
    return {name: each.labels for name, each in own.items()}, {n: x.values.T for n, x in drawn.items()}


@arguments()
def scan(path: str | Path, label: str | int | None = None, **options: Any) -> Stored:
    """Open a file of predictions and labels that is too large for memory.

    These statistics need one pass over the file, and memory that does not grow with the number of rows:
    "omnibus", "ecd", "log_score", "brier", "spiegelhalter", "citl", "esce", "smooth_ece", "ks",
    "kuiper", "classwise_ece", the ECE family of one probability, "ucme", and low-rank kernel
    statistics. What a statistic fits to the predictions (bandwidths, landmarks, quantiles) is fitted to
    a random sample of 8 192 rows, for which the file is read once before. Files of up to 100 000 rows
    are read into memory; so are larger ones, if another statistic needs all rows and they fit.
    Distributions of numbers need a lens for one pass; without one, all rows are read.

    Parameters
    ----------
    path : path
        A table, or a directory of them, as in :func:`read`, or a ``.npy`` array. CSV and JSON lines
        are read once when they are opened: rows are counted, and columns take one type.
    label : str or int, optional
        As in :func:`read`.
    **options : any
        Options of :func:`read`: ``columns``, ``groups``, ``weights``, ``clusters`` and ``logits``.
        Weights and clusters are read once, when the file is opened. Rows of a cluster may be anywhere
        in it. The names of all clusters are held in memory, and during a test each sum of the statistic
        for each cluster.

    Returns
    -------
    Stored
        Give it to :func:`caltest.test` in place of ``probs`` and ``labels``; no other function takes
        it.

    Raises
    ------
    InputError
        If there is no such file, or its columns are wrong.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import caltest
    >>> from caltest.files import scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/weather.npy", [[0.25, 0.75, 1], [0.5, 0.5, 0]] * 10)
    ...     stored = scan(f"{folder}/weather.npy", label=-1)
    ...     stored.n_samples, caltest.test(stored, statistic="ecd", rng=0).pvalue
    (20, 0.12)
    """
    with paths.named(paths.called(path)):
        roles, place = Roles(label, **options), paths.located(path)
        if roles.features or roles.skip_missing:
            what = Argument("features" if roles.features else "skip_missing")
            raise InputError(f"{what} are known of all rows or none; {READ_WHOLE}.")
        if roles.numbers is not None and "point" in roles.numbers.of:
            do = "read the file whole, by caltest.files.read"
            raise InputError(f"errors of point forecasts are tested all together; {do}.")
        if _is_table(place) or place.suffix.lower() != ".npy":
            return replace(stored_table(place, roles, whole=False), logits=roles.logits)
        with paths.opened(place, NUMPY) as file:
            check_array(file, roles)
            own = (place, "r") if isinstance(place, Path) else (file,)
            table = np.load(*own)
        label = column_of_labels(table.shape, roles)
        if not len(table):
            raise InputError("there are no rows; write the file again.")
        return StoredArrays(paths.called(path), len(table), table, label, logits=roles.logits)


def _is_table(place: Place) -> bool:
    """Whether a path is a table and not an array; raise if it is no readable file."""
    if place.suffix.lower() in FORMATS or paths.is_folder(place) or paths.is_pattern(place):
        return True
    paths.check_file(place)
    if (suffix := Path(str(place)).suffix).lower() not in _ARRAYS:
        packed = suffix.lower() in (".gz", ".bz2", ".xz", ".zst", ".zip")
        do = "unpack it" if packed else f"convert the file to {', '.join((*FORMATS, *_ARRAYS))}"
        raise InputError(f"files that end in {quoted(suffix)} cannot be read; {do}.")
    return False


# ------------------------------------------------------------------ forecast hubs (hubverse)

# A long table has a row for every quantile, draw, threshold or category. Its columns that do not
# describe the output name a task. The rows of a task are combined into one, and its outcome is looked
# up in another table, by the columns that both have.

_OUTPUT = ("output_type", "output_type_id", "value")
_READ = {"quantile": "quantiles", "sample": "members", "cdf": "cdf", "pmf": ""}  # in NumberColumns
_POINTS = ("mean", "median")  # they give no distribution
_OBSERVED = ("observation", "oracle_value", "target_value", "value")
_WRONG = {
    "columns": "{truth} is for a hub's long table, which says itself what was predicted; leave "
    "{columns} out.",
    "no value": "column {name} holds {known}, and {found} in no row; give one of those.",
    "several": "column {name} holds {known}; choose one, with {where}.",
    "type": "the output type {found} states no distribution that can be read; give quantile, sample, "
    "cdf or pmf.",
    "no tasks": "there are no columns of tasks, such as location and horizon; add them.",
    "number": "column {name} holds {found} in {row}, which is not a number; correct it.",
    "empty": "column {name} is empty in {row}: a number, such as an end, is missing; write it.",
    "bit": "column {name} holds {found} in {row}; give 1 for a class in the set, else 0.",
    "again": "output {found} of a task is stated in {row} again; keep one of each.",
    "one draw": "every task ({found}) has one draw; take out what names every draw, as an index does.",
    "uneven": "the task {found} has fewer rows of output than others; give every task the same.",
    "no keys": "no column of the truth ({known}) is one of the tasks' ({found}); name them alike.",
    "no label": "no column of the truth is called {found}; give as the label that of what was "
    "observed: the columns are {known}.",
    "two": "the truth of {row} is of the same {name} as another; keep one, such as the last version.",
    "no truth": "there is no truth of any task, such as {found}; write the keys alike.",
}


def _hub(path: str | Path, truth: str | Path, where: Mapping[str, str], roles: Roles) -> Content:
    """Read forecasts of one target and output type, with the outcomes of their tasks."""
    if roles.columns is not None:
        given = Argument(next(iter(roles.numbers.of)) if roles.numbers else "columns")
        raise InputError(_WRONG["columns"], truth=Argument("truth"), columns=given)
    (table, place), (observed, of_truth) = _texts(path), _texts(truth)
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
            how = Argument(f"where={{{name!r}: {known[0]!r}}}", shell=f"--where '{name}={known[0]}'")
            raise InputError(_WRONG["several"], name=quoted(name), known=listed(known), where=how)
    if (kind := str(table["output_type"].iloc[0])) not in _READ:
        raise InputError(_WRONG["type"], found=quoted(kind))
    if not (tasks := [name for name in table if name not in (*_OUTPUT, "model_id")]):
        raise InputError(_WRONG["no tasks"])
    weights = {} if roles.weights is None else {roles.weights: np.float64}
    roles = roles.among(tasks)
    for name in (described := (*roles.groups, *roles.features, *weights)):
        check_there(name, tasks, "column", "", "the columns of tasks are")
    with paths.placed(place):
        wide = _wide(table, tasks, kind)
        for name in weights:
            _numbers(table[name])
    begins = table.reset_index(names="").groupby(tasks)[""].min().reindex(wide.index).to_numpy()
    found = wide.index.to_frame(index=False)
    with paths.named(paths.called(truth)), paths.placed(of_truth):
        label, keys, outcomes = _outcomes(observed, found, kind, roles.label)
        known = (outcomes != "").to_numpy()
        lacking = (zip(tasks, np.atleast_1d(task), strict=True) for task in wide.index[~known][:1])
        first = "".join(", ".join(map(" ".join, task)) for task in lacking)
        if not known.any():
            raise InputError(_WRONG["no truth"], found=first)
        seen = outcomes[known] if kind == "pmf" else _numbers(outcomes[known])
    if first:
        notes.append(f"Left out for want of truth: {(~known).sum()} of {len(wide)} tasks ({first}, …).")
    found, values, begins = found[known].astype(weights), wide.to_numpy()[known], begins[known]
    notes += [f"Truth was found by {listed(keys)}{', and is taken for that of the target' * untold}."]
    if kind == "cdf":
        notes.append("Outcomes count as the next threshold, as nothing is stated between these.")
    names = [str(at) if kind == "pmf" else f"{kind}_{at:.15g}" for at in wide.columns]
    of: Any = tuple(names) if kind == "sample" else dict(zip(names, wide.columns, strict=True))
    numbers = None if kind == "pmf" else NumberColumns({_READ[kind]: of})
    columns = {name: found[name].tolist() for name in tasks if name in described}
    columns[label] = seen.tolist()
    read = pa.table(columns | dict(zip(names, values.T, strict=True)))
    stated = replace(roles, label=label, columns=tuple(names), numbers=numbers)
    content = replace(Columns.of(stated, read.column_names), notes=tuple(notes)).content(read)
    text = "the task that begins in {row}"
    return replace(content, place=lambda row: Phrase(text, {"row": place(int(begins[row]))}))


def _texts(path: str | Path) -> tuple[Any, Callable[[int], Row]]:
    """Read a table as text, with 1.0 as 1 and midnight as a date; also return the names of its rows."""
    with paths.named(paths.called(path)):
        place = paths.located(path)
        if not (paths.is_folder(place) or paths.is_pattern(place)):
            paths.check_file(place)
        stored = as_texts(place)
        frame = stored.table().to_pandas().astype(object).fillna("")
    for name in frame.columns.difference(["value"]):
        frame[name] = frame[name].map({cell: spelled(cell) or "" for cell in frame[name].unique()})
    return frame, stored.row


def _picked(frame: Any, name: str, value: str) -> Any:
    """Return the rows with this value, if there is such a column."""
    chosen = frame[name] == spelled(value) if name in frame else np.ones(len(frame), np.bool_)
    if not chosen.any():
        known = listed(frame[name].unique())
        raise InputError(_WRONG["no value"], name=quoted(name), found=quoted(value), known=known)
    return frame[chosen]


def _numbers(column: Any) -> Any:
    """Return text as numbers, or raise."""
    for row, cell in column.items():
        if is_missing(cell) or not is_number(cell):
            kind = "empty" if is_missing(cell) else "number"
            raise InputError(_WRONG[kind], name=quoted(column.name), found=quoted(cell), row=int(row))
    return column.astype(np.float64)


def _wide(table: Any, tasks: list[str], kind: str) -> Any:
    """Return a row per task, with a column per draw, level, threshold or category."""
    own = table["output_type_id"]
    table = table.assign(value=_numbers(table["value"]))
    if kind in ("quantile", "cdf"):
        table["output_type_id"] = _numbers(own)
    for row in table.index[table.duplicated([*tasks, "output_type_id"])][:1]:
        raise InputError(_WRONG["again"], found=quoted(own[row]), row=int(row))
    if kind == "sample":  # draws of different tasks may have different names
        table["output_type_id"] = table.groupby(tasks).cumcount()
    wide = table.pivot(index=tasks, columns="output_type_id", values="value")
    if kind == "sample" and wide.shape[1] == 1:
        raise InputError(_WRONG["one draw"], found=listed(tasks))
    for task in wide.index[wide.isna().any(axis=1) & (kind in ("cdf", "pmf"))][:1]:
        raise InputError(_WRONG["uneven"], found=listed(np.atleast_1d(task)))
    return wide[own.unique()] if kind == "pmf" else wide


def _outcomes(observed: Any, tasks: Any, kind: str, label: str | None) -> tuple[str, list[str], Any]:
    """Return the outcome column, the keys, and each task's outcome as text; "" if there is none."""
    names = list(observed.columns)
    if not (keys := [name for name in tasks if name in names]):
        raise InputError(_WRONG["no keys"], known=listed(names), found=listed(tasks))
    if (label := label or next((name for name in _OBSERVED if name in names), None)) is None:
        raise InputError(_WRONG["no label"], known=listed(names), found=" or ".join(_OBSERVED))
    check_there(label, names, "column", " of the truth")
    check_distinct([*tasks, label], "columns, of tasks and of outcomes,")
    observed = observed[~observed[label].map(is_missing)]
    if "output_type" in names:  # a hub's own scoring table
        observed = observed[observed["output_type"].isin((kind, ""))]
    if "output_type_id" in names and kind in ("cdf", "pmf"):  # such tables have a 1 where it happened
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
