"""The commands: each calls the package and reports its answer."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caltest._arguments import check_draws, choose
from caltest._visible import attempt, line, quoted, shown, visible
from caltest.cli import _output as out
from caltest.cli._options import STATED, Config, Found, Input, column_names, command
from caltest.exceptions import InputError, Row
from caltest.files.paths import called
from caltest.files.writing import write_whole
from caltest.options import COMMANDS

if TYPE_CHECKING:
    from caltest.auditing.result import Audit, FailOn
    from caltest.data import Rows


def _taken(given: dict[str, Any], *names: str) -> list[Any]:
    """Take the command's own options out of those for the function it calls; None if not given."""
    return [given.pop(name, None) for name in names]


@command
def test(asked: Input, *, alpha: float, n_resamples: int, **given: Any) -> Found:
    """Test whether predictions are calibrated.

    Exit status: 0 if no miscalibration is found, 1 if it is found, 2 if the input is wrong.
    """
    data, given["order"] = asked.rows_or_file(given.get("rounding")), asked.order

    from caltest import testing
    from caltest.statistics import find_statistic

    approximation, rank, verbose = _taken(given, "approximation", "rank", "verbose")
    if approximation is not None or rank is not None:
        found: Any = find_statistic(given.get("statistic", "skce_uq"))
        if approximation is None or not hasattr(found, "rank"):
            what = f"--approximation (with --rank) is for kernel statistics, and this is {found.name!r}"
            do = "give --approximation auto and --statistic skce_uq, skce_b or jkce, or neither"
            raise InputError(f"{what}; {do}.")
        rank = found.rank if rank is None else rank
        given["statistic"] = replace(found, approximation=approximation, rank=rank)
    result = testing.test(*data, n_resamples=n_resamples, progress=True, **given)
    if result.null == "one_per_cluster":
        check_draws("--resamples", n_resamples, alpha, 2)
    elif result.n_resamples is not None:  # with too few draws nothing could be rejected
        sides = 2 if result.alternative == "two-sided" else 1
        least = sides / (1 + result.n_resamples)
        clusters = asked["clusters"]
        if clusters is not None and result.n_resamples < n_resamples and least > alpha:
            # all sign vectors of few clusters
            few = f"--clusters {clusters} names so few clusters that no p-value is below {least:.3g}"
            do = "choose a level that they can reach, or give more clusters"
            raise InputError(f"{few}, and nothing is ever rejected at level {alpha:g}; {do}.")
        check_draws("--resamples", result.n_resamples, alpha, sides)
    result = replace(result, alpha=alpha)
    rejected = result.story.found
    what = "miscalibration" if result.claim is None else "error"
    verdict = f"{what} found".capitalize() if rejected else f"No {what} found"
    status = out.REJECTED if rejected else out.NOT_REJECTED
    decision = f"{verdict} at alpha = {alpha} (exit status {status})."
    facts = {**asked.source, **result.to_dict(), "rejected": rejected}
    told = verdict, "found" if rejected else "not found"
    text = f"{result.summary(verbose=bool(verbose))}\n\n{decision}"
    return Found(facts, text, status=status, verdict=told)


@command
def estimate(asked: Input, *, statistic: str, lens: str | None = None, **given: Any) -> Found:
    """Estimate a calibration error, without a test.

    Exit status: 0, or 2 if the input is wrong.
    """
    sample = asked.sample()

    from caltest import testing
    from caltest.results import plain
    from caltest.text.vocabulary import estimated

    jobs, whole = given.pop("n_jobs"), (sample.rows, sample.labels, statistic)
    value = testing.estimate(*whole, lens=lens, n_jobs=jobs, **given)
    fitted, calibrated, premises, warnings = testing.beside_estimate(*whole, lens=lens, **given)
    for each in () if asked["json"] else (*premises, *warnings):
        out.note(f"Note: {each}")
    data = {"name": statistic, "lens": lens, "statistic": value, "calibrated": calibrated}
    data |= {"parameters": fitted.parameters, "warnings": warnings, "premises": premises}
    return Found({**asked.source, **plain(data)}, estimated(fitted, value, lens, calibrated))


@command
def estimate_error(asked: Input, *, functions: str, **given: Any) -> Found:
    """Estimate the squared calibration error.

    The estimator with the lowest risk on rows that it was not fitted to is used.

    Exit status: 0, or 2 if the input is wrong.
    """
    sample = asked.sample()

    from caltest import estimation

    compete = [name.strip() for name in functions.split(",")]
    given["functions"] = "all" if compete == ["all"] else compete
    found = estimation.estimate_squared_error(sample.rows, sample.labels, progress=True, **given)
    return Found({**asked.source, **found.to_dict()}, found.summary())


@command
def bounds(asked: Input, *, confidence: float, lens: str | None = None, **given: Any) -> Found:
    """Prove lower and upper bounds on the error.

    At least how large it is, in which direction and where, and at most. The lens may also be
    classwise: every class at once, lower bounds only. Exit status: 0, or 2 if the input is wrong.
    """
    sample = asked.sample()

    import caltest.bounds as own

    whose: Any = {"lens": lens, "confidence": confidence}
    upper = None if lens == "classwise" else own.certificate(sample.rows, sample.labels, **whose)
    lower = own.miscalibration_bounds(sample.rows, sample.labels, progress=True, **whose, **given)

    worst = max(range(len(lower.views)), key=lambda k: max(x.bound for x in lower.views[k].sides))

    data = {**asked.source, **lower.to_dict(), "certificate": upper.to_dict() if upper else None}
    alone = upper and replace(upper, warnings=())  # the lower bounds have shown them
    text = "\n\n".join(each.summary() for each in (lower, alone) if each)
    return Found(data, text, partial(lower.plot, view=worst))


# ------------------------------------------------------------------ compare


def _check_alike(groups: Any, other: Input, first: Path) -> None:
    """Raise if another file has the same group columns with different groups."""
    from caltest.spelling import spelled

    if (own := attempt(other.with_groups)) is None:
        return
    for name, cells in groups.items():
        pairs = [*zip(cells, own[1][name], strict=False)] * (len(cells) == len(own[1][name]))
        for row in [k for k, pair in enumerate(pairs) if len({*map(spelled, pair)}) > 1][:1]:
            text = "column {name} is another than that of {first} in {row}; give the same rows."
            error = InputError(text, name=quoted(name), first=called(first), row=row)
            raise error.within(called(other["FILE"]))


@command
def compare(asked: Input, *, files: Sequence[Path] = (), **given: Any) -> Found:
    """Say how far off models are, and which differ.

    A model is called by its file, or its column. Exit status: 0, or 2 if the input is wrong.
    """
    sources, models, labels = _models(asked, files, asked["example"])
    groups = None
    if files and asked["group"]:
        own = asked if len(files) > 1 else next(iter(_by_column(asked).values()))
        groups = own.but(FILE=files[0]).with_groups()[1]
        for file in files[1:]:
            _check_alike(groups, own.but(FILE=file), files[0])

    from caltest import comparison

    found = comparison.compare(models, labels, groups=groups, **given)
    data = {"files": sources, "example": asked["example"], **found.to_dict()}
    return Found(data, found.summary(), found.plot, result=found)


def _by_column(asked: Input) -> dict[str, Input]:
    """Return the input of each model's column, by name, if one file holds several models."""
    if asked["point"]:
        return {name: asked.but(point=name) for name in column_names(asked["point"])}
    return {name: asked.but(columns=[name]) for name in asked["columns"] or ()}


def _models(
    asked: Input, files: Sequence[Path], example: str | None
) -> tuple[dict[str, str] | None, dict[str, Rows], Any]:
    """Return the files by model (None for an example), predictions by model, and the labels."""
    if example is not None:
        asked.check_example(", ".join(map(str, files)))

        from caltest.datasets import digits_models

        choose("example to compare", example, {"digits": True})
        loaded = {each: asked.but(example=f"digits:{each}").sample() for each in digits_models()}
        labels = loaded[digits_models()[0]].labels
        return None, {name: each.rows for name, each in loaded.items()}, labels
    if len(files) == 1 and len(columns := _by_column(asked)) > 1:
        beside = (*(asked["group"] or ()), *columns)  # which are known to exist
        read = {
            name: each.but(FILE=files[0], group=[x for x in beside if x != name])
            for name, each in columns.items()
        }
    elif len(files) < 2:
        there = "is one file" if files else "are no files"
        one = "one with a column by each model (--columns of P(class 1), or --point)"
        raise InputError(f"there {there} to compare; give two or more, or {one}, or --example digits.")
    else:
        stems = [Path(path).stem for path in files]
        pairs = zip(stems, files, strict=True)
        names = [stem if stems.count(stem) == 1 else str(path) for stem, path in pairs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"the file {called(twice[0])} is given twice; give every model once.")
        read = {name: asked.but(FILE=path) for name, path in zip(names, files, strict=True)}
    sources = {name: str(each["FILE"]) for name, each in read.items()}
    try:
        samples = {name: each.sample() for name, each in read.items()}
    except InputError:
        for each in read.values():  # a missing column is one of probabilities
            each.but(group=asked["group"]).sample()
        raise

    import numpy as np

    from caltest.comparison.models import aligned

    (first, reference), *others = samples.items()
    for name, other in others:
        found = samples[name] = aligned(sources[first], reference, sources[name], other)
        if not np.array_equal(reference.labels, found.labels):
            row = Row(int(np.argwhere(reference.labels != found.labels)[0][0]))
            differ = f"the outcomes of {sources[first]} and {sources[name]} differ, the first in {row}"
            raise InputError(f"{differ}; give files of the same rows in the same order.")
    return sources, {name: each.rows for name, each in samples.items()}, reference.labels


# ------------------------------------------------------------------ power

_ASSUMED = ("temperature", "bias", "target", "overconfidence")


@command
def power(asked: Input, *, n: Any = (), sample_size: bool, under_null: bool, **given: Any) -> Found:
    """Find how often a test detects an error.

    Or, with --sample-size, how many rows it needs.

    FILE is a pilot set: its predictions are drawn with replacement, and labels as if the model were
    wrong in the way that is assumed. Exit status: 0, or 2 if the input is wrong.
    """
    search = {name: given.pop(name) for name in ("power", "min_n", "max_n") if name in given}
    if n and sample_size:
        raise InputError("--n and --sample-size are both given; give one of them.")
    if wrong := [*search] if n else ["under_null"] * under_null:
        instead = "--sample-size" if n else "--n"
        raise InputError(f"--{wrong[0].replace('_', '-')} is for {instead}; leave it out.")
    whole, _, _ = asked.with_groups(needs_labels=False)

    from caltest import planning

    model = planning.pilot(whole, **{name: given.pop(name) for name in _ASSUMED if name in given})

    found: Any
    if not n:
        found = planning.sample_size(model, progress=True, **search, **given)
    else:
        found = planning.power(model, n, under_null=under_null, progress=True, **given)
    return Found({**asked.source, **found.to_dict()}, found.summary(), found.plot)


@command
def plan(asked: Input, **given: Any) -> Found:
    """Find how many rows an audit needs.

    Enough to show that all errors are within a limit, if they are. FILE is a pilot set: its
    predictions and groups say what will be looked at; labels are not needed.
    Exit status: 0, or 2 if the input is wrong.
    """
    rows, groups, _ = asked.with_groups(needs_labels=False)

    from caltest.auditing import plan_rows

    found = plan_rows.plan(rows, groups=groups, **given)
    return Found({**asked.source, **found.to_dict()}, found.summary())


@command
def monitor(asked: Input, *, state: Any = None, files: Sequence[Path] = (), **given: Any) -> Found:
    """Watch a deployed model, batch by batch.

    However often one looks, a calibrated model raises an alarm with a probability of at most --alpha.
    Exit status: 0 without an alarm, 1 with one, now or before, 2 if the input is wrong.
    """
    from caltest.monitoring import Monitor

    ids, batch, date, date_column = _taken(given, "ids", "batch", "date", "date_column")
    if not isinstance(state, Path) or not files:
        raise InputError("nothing to do: give the STATE, and a FILE of rows with outcomes, or several.")
    if batch is not None and len(files) > 1:
        raise InputError(f"--batch {batch} is the name of one batch, and {len(files)} files are given.")
    watch = Monitor.load(state) if state.exists() else Monitor(**given)
    for name, value in given.items():
        if watch.options[name] != (known := Monitor(**{name: value}).options[name]):
            was = f"{state} was begun with --{name.replace('_', '-')} {watch.options[name]}"
            raise InputError(f"{was}, and {known} is given; leave it out, or begin a new state.")
    # Names of clusters and dates are kept in the state, so they are read unchanged, with the group
    # columns.
    together, named = asked["clusters"], tuple(asked["group"] or ())
    columns = tuple(dict.fromkeys((*named, *filter(None, (together, date_column)))))
    if ids is not None and (asked["label"] is None or any(asked[name] for name in STATED)):
        do = "give --label too, and probabilities alone"
        raise InputError(f"--id {ids} is about labels that come late; {do}.")
    doubts = list[str]()
    for path in files:
        own = asked.but(FILE=path, clusters=None, group=columns)
        late: dict[str, Any] = {"ids": None, "batch": batch, "date": date}
        if ids is not None:
            own = own.but(columns=own["columns"] or watch.columns)
            predicted, late["ids"], outcomes, apart, column = own.read("read_late", ids=ids)
        else:
            sample, frame, column = own.with_groups(part=True)
            predicted, outcomes = sample.rows, sample.labels
            apart = {name: frame[name] for name in columns}
        groups = {name: apart[name] for name in named if apart} or None
        if date_column is not None and apart:
            late["date"] = apart[date_column]
        doubts += [f"{called(path)}: {each}" for each in getattr(predicted, "doubts", ())]
        try:
            if column is not None:
                watch.keep_column(column)
            watch.update(predicted, outcomes, groups=groups, clusters=apart.get(together), **late)
        except InputError as error:
            raise error.within(called(path)) from error
    watch.save(state)
    found = watch.state
    status = out.REJECTED if found.alarm else out.NOT_REJECTED
    verdict = ("Alarm", "found") if found.alarm else ("No alarm", "not found")
    told = "".join(f"In doubt: {line(each)}\n" for each in doubts)
    text = f"{told}{found.summary().rstrip()}\n\n{verdict[0]} (exit status {status})."
    data = {"state": str(state), "files": [str(path) for path in files], **found.to_dict()}
    data |= {"premises": doubts} if doubts else {}
    return Found(data, text, found.plot, status, found, verdict)


# ------------------------------------------------------------------ audit

_PATH = 200  # characters of a path
_VALUE = 24  # characters of an option's value, so that a long one does not crowd out others

#: Options allowed in a configuration file, in the order of the help.
OPTIONS = {name: option for name, option in COMMANDS["audit"].items() if not option.typed}


@command
def audit(asked: Input, **given: Any) -> Found:
    """Audit a model: how wrong, where, what to do.

    Every lens and group is checked by every statistic; all p-values are adjusted for the number of
    checks. Exit status: 1 if what --fail-on names was found, 0 if not, 2 for wrong input.
    """
    from caltest import auditing
    from caltest.auditing.result import gate_of
    from caltest.data.sample import event_called

    fail_on, title, date = _taken(given, "fail_on", "title", "date")
    fail_on = gate_of(fail_on, "materiality" in given or "materiality_ratio" in given)
    sample, groups, column = asked.with_groups(rounding=given.get("rounding"))
    if asked["event"] is not None:  # for times it is a column
        given["event"] = "any event" if asked["incidence"] else asked["event"]
    elif sample.rows.n_classes == 2 and sample.rows.classes is None and column:
        given["event"] = event_called(asked["label"] or "", column)
    given = {"n_jobs": -1, "order": asked.order} | given
    audit = auditing.audit(sample.rows, sample.labels, groups=groups, progress=True, **given)

    file, example = asked["FILE"], asked["example"]
    title = str(example if file is None else called(file)) if title is None else title
    words = command_line("audit", file, {**asked.given, "seed": audit.seed})
    return _reported(asked, audit, date=date, fail_on=fail_on, title=title, command=words)


@command
def sbc(asked: Input, *, files: Sequence[Path] = (), **given: Any) -> Found:
    """Check a posterior by simulated data.

    Parameters are drawn from the prior, data are simulated by them, and each posterior is drawn from.
    Exit status: 1 if what --fail-on names was found, 0 if not, 2 for wrong input.
    """
    from caltest import auditing
    from caltest.auditing.result import gate_of
    from caltest.files.reading import read_posterior

    names, fail_on, title, date = _taken(given, "names", "fail_on", "title", "date")
    fail_on = gate_of(fail_on, "materiality" in given)
    called = None if names is None else column_names(names)
    parameters, draws = read_posterior(files, called)
    audit = auditing.sbc(parameters, draws, names=called, progress=True, **{"n_jobs": -1} | given)
    title = ", ".join(each.name for each in files) if title is None else title
    line = command_line("sbc", files, {**asked.given, "seed": audit.seed})
    return _reported(asked, audit, date=date, fail_on=fail_on, title=title, command=line)


def _reported(asked: Input, audit: Audit, *, date: str | None, fail_on: FailOn, **told: Any) -> Found:
    """Write the reports of an audit; return what to print, and the exit status."""
    from caltest._numbers import pvalue
    from caltest.report import formats
    from caltest.text.audit import chip

    weaker = _configured(asked.loaded)
    told |= {"gate": weaker, "fail_on": fail_on}
    told["date"] = datetime.now().astimezone().date().isoformat() if date is None else date
    texts_of = {
        asked.given[each[2:]]: formats.rendered(audit, kind, **told)
        for each, kind in out.FORMATS.items()
        if each[2:] in asked.given
    }
    printed = texts_of.pop(out.STANDARD_OUTPUT, None)
    problem = None
    try:
        write_whole(texts_of)
    except InputError as error:  # report the findings first, with their exit status
        problem = error
    fails = audit.fails(fail_on)
    status, why = out.REJECTED if fails else out.NOT_REJECTED, ""
    if problem:
        status, why = out.WRONG_INPUT, ", for not all could be written"
    elif not fails and (audit.rejected or audit.verdict == "undecided"):
        why = f"{', without proof' * (audit.verdict == 'undecided')}, by --fail-on {fail_on}"
    notes = []
    if asked.loaded.values:
        notes.append(f"Options from {asked.loaded.place}: {', '.join(asked.loaded.values)}.")
    if texts_of and not problem:
        notes.append(f"Written: {', '.join(shown(str(path), _PATH) for path in texts_of)}.")
    verdict, beside = chip(audit)
    because = f": {beside}" if audit.limit else ""
    p = pvalue(audit.pvalue, audit.alpha)
    notes.append(f"{verdict}{because}, p = {p} (exit status {status}{why}).")
    first = [line(weaker)] if weaker else []
    said = [] if printed else [audit.summary().rstrip(), ""]  # else a program reads standard output
    text = "\n".join([*first, *said, *map(line, notes)])
    printed = printed and printed.rstrip("\n")
    return Found({}, text, None, status, None, (verdict, audit.verdict), printed, problem)


def _configured(config: Config) -> str | None:
    """Describe the configured options that may change the exit status, for readers of the result.

    The configuration may come with someone else's folder and change what readers expect.
    """
    found = []
    for name, value in config.values.items():
        words, option = ", ".join(value) if isinstance(value, tuple) else str(value), OPTIONS[name]
        if not (option.harmless or words == option.usual):
            found.append(f"{name} is {shown(words, _VALUE)} (by default {option.usual})")
    if not found:
        return None
    place = shown(config.place or "", _PATH // 2)
    return f"Set by {place}, which may change the exit status: {'; '.join(found)}."


def command_line(name: str, files: Any, asked: Mapping[str, Any]) -> str:
    """Return the command that reproduces the numbers when run in the same folder.

    It contains every option that was given, typed or configured, whatever a configuration says later.
    Options not given are left out: their defaults apply, as long as no configuration sets them. Also
    left out are options that do not change results: outputs, cores, and what fails.

    >>> command_line("audit", Path("my predictions.csv"), {"group": ("age", "sex"), "seed": 1})
    "caltest audit 'my predictions.csv' --group age --group sex --seed 1"
    """
    words = ["caltest", name]
    listed = files if isinstance(files, list | tuple) else [] if files is None else [files]
    words += [f"./{file}" if str(file).startswith("-") else str(file) for file in listed]
    example = asked.get("example")
    words += [] if example is None else ["--example", example]
    options = [each for each, option in COMMANDS[name].items() if not option.typed]
    for each in options[: options.index("report")]:
        if isinstance((value := asked.get(each, ())), bool):
            words += [f"--{each}"] * value
            continue
        if each == "columns" and value:
            cells = io.StringIO()
            csv.writer(cells, lineterminator="").writerow(value)
            value = cells.getvalue()
        for one in map(str, value if isinstance(value, tuple) else (value,)):
            words += [f"--{each}={one}"] if one.startswith("-") else [f"--{each}", one]
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    r"""Quote a word for the shell; hidden characters are escaped as in bash and zsh.

    >>> print(_quoted("my file.csv"), _quoted("x\n::error::"))
    'my file.csv' $'x\U0000000a::error::'
    """
    plain = shlex.quote(word)
    if visible(plain) == plain:
        return plain
    hidden = (each in "\\'" or visible(each) != each for each in word)
    escaped = (f"\\U{ord(each):08x}" if how else each for each, how in zip(word, hidden, strict=True))
    return f"$'{''.join(escaped)}'"


# ------------------------------------------------------------------ list

_WHAT = typer.Argument(metavar="WHAT", help="Such as statistics.")


def list_choices(what: Annotated[str, _WHAT]) -> None:
    """List statistics, lenses, nulls or corrections.

    Also functions, of caltest estimate-error. Names stand as options take them; one with a colon is
    followed by a class or a number, class:3.
    """
    with out.errors_reported():
        from caltest.estimation import FUNCTIONS
        from caltest.lenses import LENSES
        from caltest.nulls import NULLS
        from caltest.pvalues import CORRECTIONS
        from caltest.statistics import STATISTICS
        from caltest.statistics.base import Listed
        from caltest.statistics.table import TABLE
        from caltest.text import row

        families = {"westfall_young": "family-wise error rate, from the joint draws of all checks"}
        known: dict[str, dict[str, Any]] = {
            "statistics": {name: Listed.of_name[name] for name in TABLE} | STATISTICS,
            "lenses": {
                "canonical": "For audits: all classes at once.",
                "classwise": "For audits: every class by itself, as through class:.",
                **LENSES,
            },
            "nulls": NULLS,
            "corrections": families | CORRECTIONS,
            "functions": FUNCTIONS,
        }
        by_question: dict[str, list[str]] = {}
        for name, of in choose("list", what, known).items():
            about = of if isinstance(of, str) else of.__doc__.partition("\n")[0]
            question = getattr(of, "question", what.capitalize())
            by_question.setdefault(question, []).extend(row(name, about, 17))
        out.write("\n\n".join("\n".join([head, *lines]) for head, lines in by_question.items()))
