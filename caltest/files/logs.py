"""Logs of language models, as lm-evaluation-harness and inspect write them.

A log becomes a table that says itself what its columns are: a row for each answer, with probabilities,
what was right, the question, the task and the subject. What a user names goes before.
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
from scipy.special import softmax

from caltest._visible import attempt, quoted
from caltest.data.containers import listed
from caltest.exceptions import Argument, InputError, Row
from caltest.files import paths
from caltest.files.columns import Columns, Content, Roles, check_there
from caltest.files.paths import Place

_GROUPS = ("model", "task", "source", "category", "subject")  # of those that split rows alike, the last
_SAMPLES = re.compile(r"samples_(.+?)(_\d{4}-\d\d-\d\dT[\d.-]+)?\.jsonl")
_MARKS = {"C": 1, "1": 1, "1.0": 1, "True": 1, "I": 0, "0": 0, "0.0": 0, "False": 0, "N": None}
_WRONG = {
    "text": "filtered_resps is {found} in {row}, not a log-likelihood for each choice; give the log of "
    "a multiple-choice task.",
    "target": "which choice is right in {row} is not known: target is {found}, of {known}, and acc is "
    "{acc}; leave this task out.",
    "zip": "this is a compressed log of inspect; write it as JSON: inspect log convert --to json.",
    "none": "there are no samples, so this is no log of inspect; give one, or a table as JSON lines.",
    "scorer": "the scorers are {known}; say which one, with {label}.",
    "mark": "the score is {found} in {row}, neither right (C or 1) nor wrong (I or 0); name a scorer "
    "that says which, with {label}.",
}


def log_files(path: Any) -> list[Place]:
    """Return the files of a log of one of these packages, known by a suffix or the first line."""
    several = path if isinstance(path, list | tuple) else [path]
    files: list[Place] = [paths.located(each) for each in several]
    if files[0].suffix.lower() not in ("", ".jsonl", ".json", ".eval"):
        return []
    if len(files) == 1 and (paths.is_folder(files[0]) or paths.is_pattern(files[0])):
        files = paths.entries(files[0])
    lines = [each for each in files if each.suffix.lower() == ".jsonl"]
    if not lines or not paths.is_file(lines[0]):
        return files if files and files[0].suffix.lower() in (".json", ".eval") else []
    with paths.opened(lines[0], "JSON lines") as file:
        return lines if re.match(rb'{"doc_id": .*"filtered_resps": ', file.readline(2**24)) else []


def read_logs(files: Sequence[Place], roles: Roles) -> Content:
    """Read the logs of one package as one table."""
    import pyarrow as pa

    answers, places = list[dict[str, Any]](), list[Row]()
    parts = paths.called_apart(files) if len(files) > 1 else ("",)
    for path, part in zip(files, parts, strict=True):
        read = _harness if path.suffix.lower() == ".jsonl" else _inspect
        with paths.placed(partial(Row, of=part)), paths.opened(path, "JSON") as file:
            answers += list(read(file, path, roles.label))
        places += [Row(row, part) for row in range(len(answers) - len(places))]
    names = dict.fromkeys(chain.from_iterable(answers))
    cells = {name: [each.get(name) for each in answers] for name in names}
    texts = {name: [x if x is None else str(x) for x in each] for name, each in cells.items()}
    choices = [name for name in names if name.startswith("choice ")]
    numbers = {name: [x or 0.0 for x in cells[name]] for name in choices}
    table = pa.table(texts | {"right": cells["right"]} | numbers)
    groups = [name for name in _GROUPS if len(set(texts.get(name, ()))) > 1]
    groups = [name for name in groups if name != "task" or "subject" not in groups]
    groups = [*roles.groups] if set(roles.groups) - {roles.clusters} else groups
    questions = len(set(texts["question"]))
    together = roles.clusters or ("question" if questions < len(answers) else None)
    scale = None if choices else roles.scale or 1.0
    own = replace(roles, label="right", groups=groups, clusters=together, scale=scale)
    own = replace(own, columns=roles.columns or choices or "confidence")
    note = f"Read as a log of {len(answers):,} answers to {questions:,} questions; groups: "
    note += f"{listed(groups) or 'none'}; clusters: {together or 'none'}."
    columns = replace(Columns.of(own, [*names]), notes=(note,))
    with paths.placed(places.__getitem__):
        columns.check_kinds(table.schema, lambda name: table.column(name).to_pylist())
    return columns.content(table, places.__getitem__)


def _harness(file: IO[bytes], path: Place, _: Any) -> Iterator[dict[str, Any]]:
    """Read a task's samples of lm-evaluation-harness: log-likelihoods of a question's choices."""
    named = _SAMPLES.fullmatch(path.name)
    of = {"model": str(path).rpartition("/")[0], "task": named[1] if named else path.name}
    for row, each in enumerate(map(json.loads, filter(bytes.strip, file))):
        pairs, acc, target = each["filtered_resps"], each.get("acc"), str(each["target"]).strip()
        scores: Any = attempt(partial(np.array, [next(iter(pair), "") for pair in pairs], float))
        if scores is None or len(scores) < 2:
            raise InputError(_WRONG["text"], row=row, found=quoted(pairs))
        scores = scores[: len(scores) // (2 if "acc_mutual_info" in each else 1)]
        given = [[*one.values()][-1] for one in each.get("arguments", {}).values()][: len(scores)]
        known, best = [str(one).strip() for one in given], int(scores.argmax())
        right = int(target) if target.isdecimal() else -1
        right = known.index(target) if right < 0 and target in known else right
        if len(scores) == 2 and acc in (0, 1):
            right = best if acc else 1 - best
        elif not 0 <= right < len(scores) or acc not in (None, best == right):
            target, choices = quoted(target), listed(known)
            raise InputError(_WRONG["target"], row=row, found=target, known=choices, acc=acc)
        own = {f"choice {k + 1}": x for k, x in enumerate(softmax(scores).tolist())}
        own |= {"question": f"{of['task']} {each['doc_id']}", "right": f"choice {right + 1}"}
        yield {**of, **each["doc"], **own}


def _inspect(file: IO[bytes], path: Place, label: str | None) -> Iterator[dict[str, Any]]:
    """Read a log of inspect: marks of answers, and what their metadata say."""
    if path.suffix.lower() == ".eval":
        raise InputError(_WRONG["zip"])
    log = json.load(file)
    if not (samples := isinstance(log, dict) and log.get("samples")):
        raise InputError(_WRONG["none"])
    known = dict.fromkeys(chain.from_iterable(each.get("scores") or {} for each in samples))
    if label is None and len(known) > 1:
        raise InputError(_WRONG["scorer"], known=listed(known), label=Argument("label", ...))
    check_there(scorer := label or next(iter(known), "scores"), known, "scorer", "")
    of = {name: log["eval"][name] for name in ("model", "task")}
    for row, each in enumerate(samples):
        score = (each.get("scores") or {}).get(scorer) or {"value": "N"}
        if (mark := str(score["value"])) not in _MARKS:
            raise InputError(_WRONG["mark"], row=row, found=quoted(mark), label=Argument("label", ...))
        own = {"answer": score.get("answer"), "question": each["id"], "right": _MARKS[mark]}
        yield {**of, **(each.get("metadata") or {}), **(score.get("metadata") or {}), **own}
