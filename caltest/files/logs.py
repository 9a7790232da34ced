"""Logs of language models, written by lm-evaluation-harness or inspect.

A log becomes a table with known columns: a row for each answer, with probabilities, the right answer,
the question, the task and the subject. Columns named by the user take precedence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import IO, Any

import numpy as np
import pyarrow as pa
from scipy.special import softmax

from caltest._visible import attempt, quoted
from caltest.data.containers import listed
from caltest.exceptions import Argument, InputError, Row
from caltest.files import paths
from caltest.files.columns import Columns, Content, Roles, check_there
from caltest.files.paths import Place

_GROUPS = ("model", "task", "source", "category", "subject")  # of those that split rows alike, the last
_SAMPLES = re.compile(r"^samples_|(_\d{4}-\d\d-\d\dT[\d.-]+)?\.jsonl$")
_MARKS = {"C": 1, "1": 1, "1.0": 1, "True": 1, "I": 0, "0": 0, "0.0": 0, "False": 0, "N": None}
_WRONG = {
    "text": "filtered_resps is {found} in {row}, not a log-likelihood for each choice; leave it out.",
    "target": "target {found!r} and acc {acc} do not say which of {known} is right in {row}; omit it.",
    "option": "this log says itself what is likely and what is right; leave {option} out.",
    "nan": "filtered_resps is {found} in {row}, of which none is finite, or one is NaN; leave it out.",
    "field": "{where} has no field {name} as its package writes it; give the log as it was written.",
    "zip": "this is a compressed log of inspect; write it as JSON: inspect log convert --to json.",
    "none": "there is no list of samples, so this is no log of inspect; give one, or JSON lines.",
    "scorer": "the scorers are {known}; say which one, with {label}.",
    "mark": "the score is {found} in {row}, neither right (C or 1) nor wrong (I or 0); use {label}.",
}


def log_files(path: Any, roles: Roles) -> list[Place]:
    """Return the files of a log by one of these packages, recognised by suffix or first line.

    A folder may hold a log for each model; a line that contains the named columns belongs to a table.
    """
    files = [paths.located(each) for each in (path if isinstance(path, list | tuple) else [path])]
    if re.fullmatch(r"\.(?!json|eval)[a-z]+", files[0].suffix.lower()):
        return []
    if len(files) == 1 and (paths.is_folder(files[0]) or paths.is_pattern(files[0])):
        files = paths.entries(files[0])
    if files and paths.is_folder(files[0]):
        files = [*chain(*(paths.entries(x) if paths.is_folder(x) else [x] for x in files))]
    lines = [each for each in files if each.suffix.lower() == ".jsonl"]
    if not lines or not paths.is_file(lines[0]):
        return files if files and files[0].suffix.lower() in (".json", ".eval") else []
    with paths.opened(lines[0], "JSON lines") as file:
        first = attempt(lambda: {*json.loads(file.readline(2**24))}) or set()
    own = {"doc_id", "filtered_resps"} <= first and first.isdisjoint(roles.columns or ())
    return lines if own else []


def read_logs(files: Sequence[Place], roles: Roles) -> Content:
    """Read the logs of one package into one table."""
    answers, places = list[dict[Any, Any]](), list[Row]()
    parts = paths.called_apart(files) if len(files) > 1 else ("",)
    for path, part in zip(files, parts, strict=True):
        read = _harness if path.suffix.lower() == ".jsonl" else _inspect
        with paths.placed(partial(Row, of=part)), paths.opened(path, "JSON of such a log") as file:
            answers += list(read(file, path, roles.label))
        places += [Row(row, part) for row in range(len(answers) - len(places))]
    cells = {x: [each.get(x) for each in answers] for x in dict.fromkeys(chain.from_iterable(answers))}
    choices = {f"choice {k + 1}": [x or 0.0 for x in cells.pop(k)] for k in [*cells] if type(k) is int}
    texts = {name: [x if x is None else str(x) for x in each] for name, each in cells.items()}
    for name in ("sets", *(("label", "scale", "logits") if choices else ())):
        if getattr(roles, name):
            raise InputError(_WRONG["option"], option=Argument(name, ...))
    table = pa.table(texts | {"right": cells["right"]} | choices)
    groups = [name for name in _GROUPS if len(set(texts.get(name, ()))) > 1]
    groups = [name for name in groups if name != "task" or "subject" not in groups]
    groups = [*roles.groups] if set(roles.groups) - {roles.clusters} else groups
    questions = len(set(texts["question"]))
    together = roles.clusters or ("question" if questions < len(answers) else None)
    named = roles.columns or [*choices] or ["confidence"]
    scale = roles.scale or (None if choices or any("%" in str(texts.get(x)) for x in named) else 1.0)
    own = replace(roles, label="right", groups=groups, clusters=together, scale=scale, columns=named)
    note = f"Read as a log of {len(answers):,} answers to {questions:,} questions; groups: "
    note += f"{listed(groups) or 'none'}; clusters: {together or 'none'}."
    columns = replace(Columns.of(own, table.column_names), notes=(note,))
    with paths.placed(places.__getitem__):
        columns.check_kinds(table.schema, lambda name: table.column(name).to_pylist())
    return columns.content(table, places.__getitem__)


def _harness(file: IO[bytes], path: Place, _: Any) -> Iterator[dict[Any, Any]]:
    """Read a task's samples of lm-evaluation-harness: log-likelihoods of each question's choices."""
    of = {"model": str(path).rpartition("/")[0], "task": _SAMPLES.sub("", path.name)}
    for row, each in enumerate(map(json.loads, filter(bytes.strip, file))):
        field = partial(_field, row=Row(row))
        pairs, target = field(each, "filtered_resps", list), str(field(each, "target")).strip()
        scores: Any = attempt(partial(np.array, [next(iter(pair), "") for pair in pairs], float))
        count = 0 if scores is None else len(scores) // (2 if "acc_mutual_info" in each else 1)
        if count < 2 or not np.isfinite(scores[:count].max()):
            raise InputError(_WRONG["text" if count < 2 else "nan"], row=row, found=quoted(pairs))
        best = scores[:count].argmax()
        given = field({"arguments": {}} | each, "arguments", dict).values()
        known = [str([*one.values()][-1]).strip() for one in given][:count]
        right = {k for k in range(count) if target == str(k) or target in known[k : k + 1]}
        if (acc := each.get("acc")) in (0, 1):
            right = {k for k in right or range(2 * (count == 2)) if (k == best) == acc}
        if len(right) != 1 or acc not in (None, 0, 1):
            raise InputError(_WRONG["target"], row=row, found=target, known=listed(known), acc=acc)
        chances = dict(enumerate(softmax(scores[:count]).tolist()))
        own = {"question": f"{of['task']} {field(each, 'doc_id')}", "right": f"choice {min(right) + 1}"}
        yield {**of, **field(each, "doc", dict), **own, **chances}


def _inspect(file: IO[bytes], path: Place, label: str | None) -> Iterator[dict[str, Any]]:
    """Read a log of inspect: marks of the answers, and their metadata."""
    if path.suffix.lower() == ".eval":
        raise InputError(_WRONG["zip"])
    log = json.load(file)
    if not (samples := isinstance(log, dict) and log.get("samples")) or not isinstance(samples, list):
        raise InputError(_WRONG["none"])
    known = dict.fromkeys(chain.from_iterable(each.get("scores") or {} for each in samples))
    if label is None and len(known) > 1:
        raise InputError(_WRONG["scorer"], known=listed(known), label=Argument("label", ...))
    check_there(scorer := label or next(iter(known), "scores"), known, "scorer", "")
    of = {name: _field(_field(log, "eval", dict), name) for name in ("model", "task")}
    for row, each in enumerate(samples):
        score = (each.get("scores") or {}).get(scorer) or {"value": "N"}
        if (mark := str(_field(score, "value", row=Row(row)))) not in _MARKS:
            raise InputError(_WRONG["mark"], row=row, found=quoted(mark), label=Argument("label", ...))
        question = f"{of['task']} {_field(each, 'id', row=Row(row))}"
        own = {"answer": score.get("answer"), "question": question, "right": _MARKS[mark]}
        yield {**of, **(each.get("metadata") or {}), **(score.get("metadata") or {}), **own}


def _field(of: Any, name: str, kind: Any = object, row: Row | str = "this log") -> Any:
    """Return a field of a row or log, or raise."""
    if (found := of.get(name) if isinstance(of, dict) else None) is None or not isinstance(found, kind):
        raise InputError(_WRONG["field"], where=row, name=quoted(name))
    return found
