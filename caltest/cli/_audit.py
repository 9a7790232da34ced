"""`caltest audit`: many looks at a model, one exact answer, and a report of it."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from caltest._visible import line, shown, visible
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
from caltest.cli._options import (
    Clusters,
    Columns,
    Example,
    File,
    Input,
    Label,
    SamplingRate,
    Scheduler,
    Seed,
    Weights,
    WithChoices,
    column_names,
    file_path,
    option,
    rates_of,
)
from caltest.cli._output import (
    NOT_REJECTED,
    REJECTED,
    STANDARD_OUTPUT,
    WRONG_INPUT,
    check_configured,
    check_outputs,
    errors_reported,
    note,
    write,
    write_data,
)
from caltest.data.sample import event_called
from caltest.exceptions import InputError
from caltest.files.writing import write_whole

#: Which format an option writes.
_FORMATS = {"--report": "html", "--markdown": "markdown", "--json": "json", "--junit": "junit"}


_PATH = 200  # characters of a path
_VALUE = 24  # characters of an option: in a report no long one is to push the others out


def _columns(name: str, value: object) -> tuple[str, ...]:
    listed = column_names(value) if isinstance(value, str) else value
    return texts(name, listed)


#: What a configuration file may hold, in the order of the help.
OPTIONS: Mapping[str, Check] = {
    "label": text,
    "columns": _columns,
    "group": texts,
    "weights": text,
    "clusters": text,
    "sampling-rate": texts,
    "intersections": at_least(1),
    "event": text,
    "materiality": number,
    "materiality-ratio": number,
    "lens": texts,
    "statistic": texts,
    "alpha": level,
    "tolerance": number,
    "rounding": number,
    "correction": text,
    "min-rows": at_least(1),
    "resamples": at_least(1),
    "seed": at_least(0),
    "report": path,
    "markdown": path,
    "json": path,
    "junit": path,
    "title": text,
    "date": text,
    "fail-on": one_of("material", "found", "never"),
    "jobs": cores,
}

#: Which argument of `caltest.audit` an option is.
_ARGUMENTS = {
    "intersections": "intersections",
    "event": "event",
    "materiality": "materiality",
    "materiality-ratio": "materiality_ratio",
    "lens": "lenses",
    "statistic": "statistics",
    "alpha": "alpha",
    "tolerance": "tolerance",
    "rounding": "rounding",
    "correction": "correction",
    "min-rows": "min_rows",
    "resamples": "n_resamples",
    "seed": "rng",
}


class WithLooks(WithChoices):
    """A command whose help lists the lenses that only an audit has, too."""

    def choices(self) -> dict[str, Mapping[str, object]]:
        """Return what there is, by the parameter that takes it."""
        found = super().choices()
        own = {
            "canonical": "The full probability vector.",
            "classwise": "Every class by itself.",
        }
        return {**found, "lens": {**own, **found["lens"]}}


def audit(
    file: File = None,
    label: Label = None,
    columns: Columns = None,
    group: Annotated[
        list[str] | None,
        option("COL", "A column whose values group the rows; give it once for each column."),
    ] = None,
    weights: Weights = None,
    clusters: Clusters = None,
    sampling_rate: SamplingRate = None,
    intersections: Annotated[
        int | None,
        option("INT", "How many group columns are crossed at most: 1, 2 or 3.  [default: 2]"),
    ] = None,
    event: Annotated[
        str | None,
        option("TEXT", "What class 1 of two classes is called.  [default: the name of its column]"),
    ] = None,
    materiality: Annotated[
        float | None,
        option("FLOAT", "The average error that matters, 0.02 for 2 points.  [default: no limit]"),
    ] = None,
    materiality_ratio: Annotated[
        float | None,
        option("FLOAT", "The same as a ratio of predicted to observed, 1.25, for rare events."),
    ] = None,
    lens: Annotated[
        list[str] | None,
        option(
            "NAME",
            "A view of the predictions, see below; once for each.  [default: canonical, top_label and "
            "classwise; of two classes canonical]",
        ),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        option(
            "NAME",
            "What is computed in every view, see below; once for each.  [default: skce_uq, ecd, ks and "
            "citl, where they fit; with a tolerance, scan]",
        ),
    ] = None,
    alpha: Annotated[
        float | None, option("FLOAT", "Level of the whole: of all findings together.  [default: 0.05]")
    ] = None,
    tolerance: Annotated[
        float | None,
        option("FLOAT", "An error that is allowed anywhere, 0.02 for 2 points.  [default: none is]"),
    ] = None,
    rounding: Annotated[
        float | None,
        option("FLOAT", "The step of stated probabilities, 0.05 for 0%, 5%, ….  [default: none]"),
    ] = None,
    correction: Annotated[
        str | None,
        option(
            "NAME",
            "For the number of checks: westfall_young, holm, fdr_bh, ….  [default: westfall_young; "
            "with a tolerance, holm]",
        ),
    ] = None,
    min_rows: Annotated[
        int | None, option("INT", "Groups with fewer rows are named, not looked at.  [default: 50]")
    ] = None,
    resamples: Annotated[int | None, option("INT", "Draws of labels.  [default: 999]")] = None,
    seed: Seed = None,
    report: Annotated[
        Path | None, option("FILE", "Write the report: one .html file, or - for standard output.")
    ] = None,
    markdown: Annotated[Path | None, option("FILE", "Write a short report: .md, or -.")] = None,
    json: Annotated[Path | None, option("FILE", "Write all numbers: .json, or -.")] = None,
    junit: Annotated[
        Path | None, option("FILE", "Write every check as a test case for CI: .xml, or -.")
    ] = None,
    title: Annotated[
        str | None, option("TEXT", "What the report is about.  [default: the name of the file]")
    ] = None,
    date: Annotated[str | None, option("TEXT", "The date in the report.  [default: today]")] = None,
    fail_on: Annotated[
        str | None,
        option(
            "NAME",
            "When the exit status is 1: material, found (any error) or never.  [default: material if "
            "there is a limit, else found]",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        option(
            "FILE",
            "Options from this file.  [default: pyproject.toml, if it has [tool.caltest]]",
            parser=file_path,
        ),
    ] = None,
    scheduler: Scheduler = None,
    jobs: Annotated[
        int | None, option("INT", "Cores to use; -1 is all of them.  [default: -1]")
    ] = None,
    example: Example = None,
) -> None:
    """Look at a model in many ways, and give one exact answer.

    Every lens and group is checked by every statistic; all p-values are adjusted for the number of
    checks. Exit status: 1 if what --fail-on names was found, 0 if not, 2 for wrong input.
    """
    typed = {
        name: value
        for name, value in locals().items()
        if name not in ("file", "config", "example", "scheduler")
    }
    with errors_reported():
        named = {name.replace("_", "-"): value for name, value in typed.items()}
        _run(file, example, config, scheduler, named)


def _run(
    file: str | Path | None,
    example: str | None,
    config: Path | None,
    scheduler: str | None,
    typed: dict[str, Any],
) -> None:
    from caltest import auditing
    from caltest._parallel import on_cluster
    from caltest.report import formats
    from caltest.text.audit import chip
    from caltest.text.numbers import pvalue

    loaded = load_config(config, OPTIONS)
    said = {
        name: OPTIONS[name](f"--{name}", value)
        for name, value in typed.items()
        if value is not None and value != []
    }
    asked = {**loaded.values, **said}
    outputs = {option: asked[option[2:]] for option in _FORMATS if option[2:] in asked}
    suffixes = {option: formats.SUFFIXES[kind] for option, kind in _FORMATS.items()}
    check_outputs(outputs, suffixes, [file, config, loaded.path])
    if loaded.path is not None and loaded.place is not None:
        configured = {option: path for option, path in outputs.items() if option[2:] not in said}
        check_configured(configured, _FORMATS, loaded.path, loaded.place, named=config is not None)
    limited = "materiality" in asked or "materiality-ratio" in asked
    fail_on = asked.get("fail-on", "material" if limited else "found")
    if fail_on == "material" and not limited:
        raise InputError(
            "--fail-on material needs a limit; give --materiality 0.02, say, or --fail-on found."
        )
    weaker = _configured(loaded, said)
    sample, groups, column = Input(
        file,
        asked.get("label"),
        asked.get("columns"),
        asked.get("group", ()),
        example,
        asked.get("weights"),
        asked.get("clusters"),
    ).with_groups(asked.get("rounding"))

    given = {argument: asked[name] for name, argument in _ARGUMENTS.items() if name in asked}
    if sample.rows.n_classes == 2 and sample.rows.classes is None and column:
        given.setdefault("event", event_called(asked.get("label") or "", column))
    try:
        with on_cluster(scheduler):
            audit = auditing.audit(
                sample.rows,
                sample.labels,
                groups=groups,
                sampling_rates=rates_of(asked.get("sampling-rate")),
                n_jobs=asked.get("jobs", -1),
                progress=True,
                **given,
            )
    except InputError as error:  # in the words of who typed it
        options = {argument: f"--{name}" for name, argument in _ARGUMENTS.items()}
        options |= {"clusters": "--clusters", "sampling_rates": "--sampling-rate"}
        raise error.renamed(options) from error

    title = asked.get("title", str(example if file is None else Path(file).name))
    date = asked.get("date", datetime.now().astimezone().date().isoformat())
    command = command_line(file, example, {**asked, "seed": audit.seed})
    texts_of = {
        path: formats.rendered(
            audit, _FORMATS[option], title=title, date=date, command=command, gate=weaker
        )
        for option, path in outputs.items()
    }
    printed = texts_of.pop(STANDARD_OUTPUT, None)
    problem = None
    try:
        write_whole(texts_of)
    except InputError as error:  # what was found is told first, with the status that it leads to
        problem = error
    failed = {"material": audit.verdict == "material", "found": audit.rejected, "never": False}
    status, why = REJECTED if failed[fail_on] else NOT_REJECTED, ""
    if problem:
        status, why = WRONG_INPUT, ", for not all could be written"
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
        write("\n".join([*map(line, first), audit.summary().rstrip(), "", *map(line, notes)]))
    else:  # standard output is for a program to read
        write_data(printed.rstrip("\n"))
        note("\n".join(map(line, [*first, *notes])))
    if problem:
        raise problem
    raise typer.Exit(status)


#: Of a configuration: what cannot change the exit status.
_HARMLESS = ("event", "report", "markdown", "json", "junit", "title", "date", "jobs")


def _configured(loaded: Config, typed: Mapping[str, Any]) -> str | None:
    """Say what a configuration sets that may change the exit status: who reads the result is to know.

    It may come with a folder that someone else wrote, and change what its reader expects.
    """
    from caltest.auditing.engine import ALPHA, INTERSECTIONS, MIN_ROWS, N_RESAMPLES

    defaults = {
        "label": "found by its name",
        "columns": "all others",
        "intersections": INTERSECTIONS,
        "lens": "several",
        "statistic": "several",
        "alpha": ALPHA,
        "correction": "westfall_young",
        "min-rows": MIN_ROWS,
        "resamples": N_RESAMPLES,
        "seed": "random",
        "fail-on": "found",
    }
    found = [
        f"{name} is {shown(text, _VALUE)} (by default {default})"
        for name, each in loaded.values.items()
        for text in [", ".join(each) if isinstance(each, tuple) else str(each)]
        for default in [defaults.get(name, "none")]
        if not (name in typed or name in _HARMLESS or each == default)
    ]
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
    given = ("label", "columns", "group", "weights", "clusters", "sampling-rate")
    for name in (*given, *_ARGUMENTS):
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
