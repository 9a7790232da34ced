"""`caltest audit`: many looks at a model, one exact answer, and a report of it."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from caltest._visible import line, shown, visible
from caltest.cli import _output as out
from caltest.cli._config import Config, checked, load_config, rates_of
from caltest.cli._options import Input, declared
from caltest.exceptions import InputError
from caltest.files.writing import write_whole
from caltest.options import COMMANDS

#: Which format an option writes.
_FORMATS = {"--report": "html", "--markdown": "markdown", "--json": "json", "--junit": "junit"}
_PATH = 200  # characters of a path
_VALUE = 24  # characters of an option: in a report no long one is to push the others out

#: What a configuration file may hold, in the order of the help.
OPTIONS = {name: option for name, option in COMMANDS["audit"].items() if not option.typed}
_READ = ("label", "columns", "group", "weights", "clusters")
#: What the numbers follow from: all before what is written.
_NUMBERS = list(OPTIONS)[: list(OPTIONS).index("report")]


def _audit(typed: dict[str, Any]) -> None:
    """Look at a model in many ways, and give one exact answer.

    Every lens and group is checked by every statistic; all p-values are adjusted for the number of
    checks. Exit status: 1 if what --fail-on names was found, 0 if not, 2 for wrong input.
    """
    from caltest import auditing
    from caltest._parallel import on_cluster
    from caltest.data.sample import event_called
    from caltest.report import formats
    from caltest.text.audit import chip
    from caltest.text.numbers import pvalue

    file, example, config, scheduler = map(typed.pop, ("FILE", "example", "config", "scheduler"))
    loaded = load_config(config, OPTIONS)
    said = {
        name: checked(OPTIONS[name], f"--{name}", value)
        for name, value in typed.items()
        if value is not None
    }
    asked = {**loaded.values, **said}
    outputs = {option: asked[option[2:]] for option in _FORMATS if option[2:] in asked}
    suffixes = {option: formats.SUFFIXES[kind] for option, kind in _FORMATS.items()}
    out.check_outputs(outputs, suffixes, [file, config, loaded.path])
    if loaded.path is not None and loaded.place is not None:
        configured = {option: path for option, path in outputs.items() if option[2:] not in said}
        out.check_configured(configured, _FORMATS, loaded.path, loaded.place, named=config is not None)
    limited = "materiality" in asked or "materiality-ratio" in asked
    fail_on = asked.get("fail-on", "material" if limited else "found")
    if fail_on == "material" and not limited:
        raise InputError(
            "--fail-on material needs a limit; give --materiality 0.02, say, or --fail-on found."
        )
    weaker = _configured(loaded, said)
    source = Input(file, example=example, **{name: asked[name] for name in _READ if name in asked})
    sample, groups, column = source.with_groups(asked.get("rounding"))

    passed = [name for name in _NUMBERS if name in asked and name not in _READ]
    given = {OPTIONS[name].argument: asked[name] for name in passed}
    given["sampling_rates"] = rates_of(asked.get("sampling-rate"))
    if sample.rows.n_classes == 2 and sample.rows.classes is None and column:
        given.setdefault("event", event_called(asked.get("label") or "", column))
    try:
        with on_cluster(scheduler):
            audit = auditing.audit(
                sample.rows,
                sample.labels,
                groups=groups,
                n_jobs=asked.get("jobs", -1),
                progress=True,
                **given,
            )
    except InputError as error:  # in the words of who typed it
        raise error.renamed({each.argument: f"--{each.name}" for each in OPTIONS.values()}) from error

    title = asked.get("title", str(example if file is None else Path(file).name))
    date = asked.get("date", datetime.now().astimezone().date().isoformat())
    command = command_line(file, example, {**asked, "seed": audit.seed})
    texts_of = {
        path: formats.rendered(
            audit, _FORMATS[option], title=title, date=date, command=command, gate=weaker
        )
        for option, path in outputs.items()
    }
    printed = texts_of.pop(out.STANDARD_OUTPUT, None)
    problem = None
    try:
        write_whole(texts_of)
    except InputError as error:  # what was found is told first, with the status that it leads to
        problem = error
    failed = {"material": audit.verdict == "material", "found": audit.rejected, "never": False}
    status, why = out.REJECTED if failed[fail_on] else out.NOT_REJECTED, ""
    if problem:
        status, why = out.WRONG_INPUT, ", for not all could be written"
    elif audit.rejected and not failed[fail_on]:
        why = f", by --fail-on {fail_on}"
    notes = []
    if used := [name for name in loaded.values if name not in said]:
        notes.append(f"Options from {loaded.place}: {', '.join(used)}.")
    if texts_of and not problem:
        notes.append(f"Written: {', '.join(shown(str(path), _PATH) for path in texts_of)}.")
    verdict, _ = chip(audit)
    notes.append(f"{verdict}, p = {pvalue(audit.pvalue, audit.alpha)} (exit status {status}{why}).")
    first = [weaker] if weaker else []
    if printed is None:
        out.write("\n".join([*map(line, first), audit.summary().rstrip(), "", *map(line, notes)]))
    else:  # standard output is for a program to read
        out.write_data(printed.rstrip("\n"))
        out.note("\n".join(map(line, [*first, *notes])))
    if problem:
        raise problem
    raise typer.Exit(status)


audit = declared("audit", _audit.__doc__, _audit)

#: Without a configuration, in words that are shorter than those of the help.
_USUALLY = {
    "label": "found by its name",
    "columns": "all others",
    "lens": "several",
    "statistic": "several",
    "correction": "westfall_young",
    "seed": "random",
    "fail-on": "found",
}


def _configured(loaded: Config, typed: Mapping[str, Any]) -> str | None:
    """Say what a configuration sets that may change the exit status: who reads the result is to know.

    It may come with a folder that someone else wrote, and change what its reader expects.
    """
    found = []
    for name, value in loaded.values.items():
        words = ", ".join(value) if isinstance(value, tuple) else str(value)
        number = re.search(r"\[default: ([\d.]+)\]", OPTIONS[name].help)
        usual = number[1] if number else _USUALLY.get(name, "none")
        if not (name in typed or OPTIONS[name].harmless or words == usual):
            found.append(f"{name} is {shown(words, _VALUE)} (by default {usual})")
    if not found:
        return None
    place = shown(loaded.place or "", _PATH // 2)
    return f"Set by {place}, which may change the exit status: {'; '.join(found)}."


def command_line(file: str | Path | None, example: str | None, asked: Mapping[str, Any]) -> str:
    """Return the command that repeats the numbers, in the same folder.

    What was asked for stands in it, typed or from a configuration, whatever that says later. What was
    not asked for does not: it is the default, as long as no configuration gives it then. Where results
    are written, on how many cores and what they are to fail does not change them, and is left out.

    >>> command_line(Path("my predictions.csv"), None, {"group": ("age", "sex"), "seed": 1})
    "caltest audit 'my predictions.csv' --group age --group sex --seed 1"
    """
    words = ["caltest", "audit"]
    if file is not None:
        words.append(f"./{file}" if str(file).startswith("-") else str(file))
    if example is not None:
        words += ["--example", example]
    for name in _NUMBERS:
        value = asked.get(name, ())
        if name == "columns" and value:
            cells = io.StringIO()
            csv.writer(cells, lineterminator="").writerow(value)
            value = cells.getvalue()
        for each in map(str, value if isinstance(value, tuple) else (value,)):
            words += [f"--{name}={each}"] if each.startswith("-") else [f"--{name}", each]
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    r"""Quote a word for the shell; one in which something hides, as bash and zsh escape it.

    >>> print(_quoted("my file.csv"), _quoted("x\n::error::"))
    'my file.csv' $'x\x0a::error::'
    """
    plain = shlex.quote(word)
    if visible(plain) == plain:
        return plain
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    number = ord(character)
    if character in "\\'":
        return f"\\{character}"
    if visible(character) == character:
        return character
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a file name that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x80 else f"\\U{number:08x}"
