"""`caltest audit`: many looks at a model, one exact answer, and a report of it."""

from __future__ import annotations

import csv
import io
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caltest.cli._config import (
    Check,
    Config,
    at_least,
    cores,
    level,
    load_config,
    number,
    one_of,
    path,
    text,
    texts,
)
from caltest.cli._input import read_sample_with_groups
from caltest.cli._options import Columns, Example, File, Label, Seed, column_names
from caltest.cli._output import NOT_REJECTED, REJECTED, errors_reported, write
from caltest.cli._outputs import STANDARD_OUTPUT, check_outputs, write_files
from caltest.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from caltest.auditing import Audit
    from caltest.data import Sample

_SUFFIXES = {
    "--report": (".html", ".htm"),
    "--markdown": (".md", ".markdown"),
    "--json": (".json",),
    "--junit": (".xml",),
}


def _columns(name: str, value: object) -> tuple[str, ...]:
    listed = column_names(value) if isinstance(value, str) else value
    return texts(name, listed)


#: What a configuration file may hold, in the order of the help.
OPTIONS: Mapping[str, Check] = {
    "label": text,
    "columns": _columns,
    "group": texts,
    "lens": texts,
    "statistic": texts,
    "alpha": level,
    "tolerance": number,
    "correction": text,
    "min-rows": at_least(1),
    "resamples": at_least(1),
    "seed": at_least(0),
    "report": path,
    "markdown": path,
    "json": path,
    "junit": path,
    "fail-on": one_of("reject", "never"),
    "jobs": cores,
}

#: Which argument of `caltest.audit` an option is.
_ARGUMENTS = {
    "lens": "lenses",
    "statistic": "statistics",
    "alpha": "alpha",
    "tolerance": "tolerance",
    "correction": "correction",
    "min-rows": "min_rows",
    "resamples": "n_resamples",
    "seed": "rng",
}


def _option(kind: str, help_text: str, *names: str) -> Any:
    return typer.Option(*names, metavar=kind, help=help_text, show_default=False)


def run_audit(
    file: File = None,
    label: Label = None,
    columns: Columns = None,
    group: Annotated[
        list[str] | None,
        _option("COL", "A column whose values group the rows; give it once for each column."),
    ] = None,
    lens: Annotated[
        list[str] | None,
        _option(
            "NAME",
            "A view of the predictions, see below; once for each.  [default: canonical, top_label and "
            "classwise]",
        ),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        _option(
            "NAME",
            "What is computed in every view, see below; once for each.  [default: skce_uq, ecd and ks, "
            "where they fit; with a tolerance, scan]",
        ),
    ] = None,
    alpha: Annotated[
        float | None, _option("FLOAT", "Level of the whole: of all findings together.  [default: 0.05]")
    ] = None,
    tolerance: Annotated[
        float | None,
        _option("FLOAT", "An error that is allowed anywhere, 0.02 for 2 points.  [default: none is]"),
    ] = None,
    correction: Annotated[
        str | None,
        _option(
            "NAME",
            "For the number of checks: westfall_young, holm, fdr_bh, ….  [default: westfall_young; "
            "with a tolerance, holm]",
        ),
    ] = None,
    min_rows: Annotated[
        int | None, _option("INT", "Groups with fewer rows are named, not looked at.  [default: 50]")
    ] = None,
    resamples: Annotated[int | None, _option("INT", "Draws of labels.  [default: 999]")] = None,
    seed: Seed = None,
    report: Annotated[Path | None, _option("FILE", "Write the report: one .html file.")] = None,
    markdown: Annotated[Path | None, _option("FILE", "Write a short report: .md.")] = None,
    json: Annotated[
        Path | None, _option("FILE", "Write all numbers: .json, or - for standard output.")
    ] = None,
    junit: Annotated[
        Path | None, _option("FILE", "Write every check as a test case for CI: .xml.")
    ] = None,
    fail_on: Annotated[
        str | None,
        _option("NAME", "When the exit status is 1: reject or never.  [default: reject]"),
    ] = None,
    config: Annotated[
        Path | None,
        _option("FILE", "Options from this file.  [default: pyproject.toml, if it has [tool.caltest]]"),
    ] = None,
    jobs: Annotated[
        int | None, _option("INT", "Cores to use; -1 is all of them.  [default: -1]")
    ] = None,
    example: Example = None,
) -> None:
    """Look at a model in many ways, and give one exact answer.

    Every lens and group is checked by every statistic; all p-values are adjusted for the number of
    checks. Exit status: 0 not rejected, 1 rejected, 2 wrong input.
    """
    typed = {
        name: value for name, value in locals().items() if name not in ("file", "config", "example")
    }
    with errors_reported():
        _run(file, example, config, {name.replace("_", "-"): value for name, value in typed.items()})


def _run(file: Path | None, example: str | None, config: Path | None, typed: dict[str, Any]) -> None:
    loaded, said = load_config(config, OPTIONS), _checked(typed)
    asked = {**loaded.values, **said}
    outputs = {option: asked[option[2:]] for option in _SUFFIXES if option[2:] in asked}
    check_outputs(outputs, _SUFFIXES, [each for each in (file, config) if each is not None])
    sample, groups = read_sample_with_groups(
        file, asked.get("label"), asked.get("columns"), asked.get("group", ()), example
    )

    audit = _audited(sample, groups, asked)
    title = example if file is None else file.name
    command = command_line(file, example, {**asked, "seed": audit.seed})
    texts_of = {path: _rendered(option, audit, str(title), command) for option, path in outputs.items()}
    printed, summary = texts_of.pop(STANDARD_OUTPUT, None), audit.summary().rstrip()
    problem = _problem(texts_of)
    fails = audit.rejected and asked.get("fail-on") != "never"
    status = REJECTED if fails else NOT_REJECTED
    notes = [*_origin(loaded, said), *([] if problem else _written(texts_of)), _decision(audit, status)]
    if printed is None:
        write("\n".join([summary, "", *notes]))
    else:  # standard output is for a program to read
        print("\n".join(notes), file=sys.stderr)  # noqa: T201
        write(printed.rstrip("\n"))
    if problem:
        raise problem
    raise typer.Exit(status)


def _audited(sample: Sample, groups: pd.DataFrame | None, asked: Mapping[str, Any]) -> Audit:
    from caltest import auditing

    given = {argument: asked[name] for name, argument in _ARGUMENTS.items() if name in asked}
    try:
        return auditing.audit(
            sample.predictions,
            sample.labels,
            groups=groups,
            n_jobs=asked.get("jobs", -1),
            progress=True,
            **given,
        )
    except InputError as error:  # in the words of who typed it
        raise InputError(re.sub(r"\bn_resamples\b", "--resamples", str(error))) from error


def _checked(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was typed, in the form that a configuration has."""
    return {
        name: OPTIONS[name](f"--{name}", value)
        for name, value in typed.items()
        if value is not None and value != []
    }


def _rendered(option: str, audit: Audit, title: str, command: str) -> str:
    from caltest import report

    if option == "--report":
        return report.to_html(audit, title=title, command=command)
    if option == "--markdown":
        return report.to_markdown(audit, title=title, command=command)
    return report.to_json(audit) if option == "--json" else report.to_junit(audit)


def _problem(texts_of: Mapping[Path, str]) -> InputError | None:
    """Write the files; return what went wrong, for what was found is to be told first."""
    try:
        write_files(texts_of)
    except InputError as error:
        return error
    return None


def _origin(loaded: Config, typed: Mapping[str, Any]) -> list[str]:
    """Say which options a file gave."""
    used = [name for name in loaded.values if name not in typed]
    return [f"Options from {loaded.place}: {', '.join(used)}."] if used else []


def _written(paths: Iterable[Path]) -> list[str]:
    names = ", ".join(str(path) for path in paths)
    return [f"Written: {names}."] if names else []


def _decision(audit: Audit, status: int) -> str:
    verdict = "Rejected" if audit.rejected else "Not rejected"
    why = ", by --fail-on never" if audit.rejected and status == NOT_REJECTED else ""
    return f"{verdict} at alpha = {audit.alpha} (exit status {status}{why})."


def command_line(file: Path | None, example: str | None, asked: Mapping[str, Any]) -> str:
    """Return the command that repeats the numbers, whatever a configuration then says.

    Where results are written, on how many cores and what they are to fail does not change them, and
    is left out.

    >>> command_line(Path("my predictions.csv"), None, {"group": ("age", "sex"), "seed": 1})
    "caltest audit 'my predictions.csv' --group age --group sex --seed 1"
    """
    words = ["caltest", "audit"]
    if file is not None:
        words.append(f"./{file}" if str(file).startswith("-") else str(file))
    if example is not None:
        words += ["--example", example]
    for name in ("label", "columns", "group", *_ARGUMENTS):
        value = asked.get(name, ())
        if name == "columns" and value:
            value = (_joined(value),)
        for each in value if isinstance(value, tuple) else (value,):
            words += _words(name, str(each))
    return shlex.join(words).encode("utf-8", "backslashreplace").decode()


def _words(name: str, value: str) -> list[str]:
    return [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]


def _joined(columns: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(columns)
    return line.getvalue()
