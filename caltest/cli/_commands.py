"""The commands that answer one question each; `caltest audit` is in a file of its own."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest._arguments import check_draws, choose, whole_number
from caltest._visible import quoted
from caltest.cli import _output as out
from caltest.cli._options import Found, Input, command
from caltest.exceptions import InputError, Row
from caltest.files.places import called

if TYPE_CHECKING:
    from caltest.data import Rows, Sample
    from caltest.planning.simulate import ModelLike


@command
def test(
    asked: Input,
    *,
    statistic: str | None,
    approximation: str | None,
    rank: int | None,
    alpha: float,
    n_resamples: int,
    scheduler: str | None,
    **given: Any,
) -> Found:
    """Test whether predictions are calibrated.

    Exit status: 0 if no miscalibration is found, 1 if it is found, 2 if the input is wrong.
    """
    data = asked.rows_or_file(given["rounding"])

    from caltest import testing
    from caltest._parallel import on_cluster
    from caltest.statistics import find_statistic

    if approximation is not None:
        found: Any = find_statistic("skce_uq" if statistic is None else statistic)
        if not hasattr(found, "approximation") or not hasattr(found, "rank"):
            raise InputError(
                f"--approximation is for kernel statistics, and {found.name!r} is none of them; leave "
                "it out, or give --statistic skce_uq, skce_b or jkce."
            )
        rank = found.rank if rank is None else rank
        given["statistic"] = replace(found, approximation=approximation, rank=rank)
    elif rank is not None:
        raise InputError(f"--rank {rank} is that of an approximation; give --approximation too.")
    elif statistic is not None:
        given["statistic"] = statistic
    with on_cluster(scheduler):
        result = testing.test(*data, n_resamples=n_resamples, progress=True, **given)
    if result.null == "one_per_cluster":
        check_draws("--resamples", n_resamples, alpha, 2)
    elif result.n_resamples is not None:  # else no outcome whatever could be rejected
        sides = 2 if result.alternative == "two-sided" else 1
        least = sides / (1 + result.n_resamples)
        clusters = asked.clusters
        if clusters is not None and result.n_resamples < n_resamples and least > alpha:
            raise InputError(  # all signs of few clusters
                f"--clusters {clusters} names so few clusters that no p-value is below {least:.3g}, "
                f"and nothing is ever rejected at level {alpha:g}; choose a level that they can reach, "
                "or give more clusters."
            )
        check_draws("--resamples", result.n_resamples, alpha, sides)
    rejected = result.rejects(alpha)
    error = "miscalibration" if result.claim is None else "error"
    verdict = f"{error} found" if rejected else f"no {error} found"
    status = out.REJECTED if rejected else out.NOT_REJECTED
    decision = f"{verdict.capitalize()} at alpha = {alpha} (exit status {status})."
    return Found(
        {**asked.source, **result.to_dict(), "alpha": alpha, "rejected": rejected},
        f"{result.summary().rstrip()}\n\n{decision}",
        status=status,
    )


@command
def estimate(asked: Input, *, statistic: str, lens: str | None, **given: Any) -> Found:
    """Estimate a calibration error, without a test.

    Exit status: 0, or 2 if the input is wrong.
    """
    sample = asked.sample()

    from caltest import testing

    value = testing.estimate(sample.rows, sample.labels, statistic, lens=lens, **given)
    number = value if math.isfinite(value) else str(value)
    return Found({**asked.source, "name": statistic, "lens": lens, "statistic": number}, repr(value))


@command
def estimate_error(asked: Input, *, functions: str, **given: Any) -> Found:
    """Estimate the squared calibration error, by the estimator with the lowest risk.

    Exit status: 0, or 2 if the input is wrong.
    """
    if given["pvalue"] == "none" and given["n_resamples"] is not None:
        raise InputError(
            f"--resamples {given['n_resamples']} is for a p-value, and --pvalue is none; leave one of "
            "them out."
        )
    sample = asked.sample()

    from caltest import estimation
    from caltest.plots import RiskDisplay

    compete = [name.strip() for name in functions.split(",")]
    given["functions"] = "all" if compete == ["all"] else compete
    found = estimation.estimate_squared_error(sample.rows, sample.labels, progress=True, **given)
    picture = lambda: RiskDisplay.from_result(found)  # noqa: E731
    return Found({**asked.source, **found.to_dict()}, found.summary(), picture)


@command
def bounds(
    asked: Input,
    *,
    certificate: str,
    wanted: float | None,
    lens: str | None,
    confidence: float,
    **given: Any,
) -> Found:
    """Bound the error of the model: at least how large, in which direction and where, and at most.

    The lens may also be classwise: every class at once, lower bounds only. Exit status: 0, or 2 if
    the input is wrong.
    """
    choose("certificate", certificate, {"bins": True, "isotonic": True, "none": True})
    certified = certificate != "none" and lens != "classwise"
    if wanted is not None and not certified:
        why = "--certificate none" if certificate == "none" else "--lens classwise"
        raise InputError(
            f"--wanted {wanted} is for a certificate, and {why} asks for none; leave it out."
        )
    sample = asked.sample()

    import caltest.bounds as own
    from caltest.plots import BoundsDisplay

    whose: Any = {"lens": lens, "confidence": confidence}
    upper = None
    if certified:
        method: Any = certificate
        upper = own.certificate(sample.rows, sample.labels, method=method, wanted=wanted, **whose)
    lower = own.miscalibration_bounds(sample.rows, sample.labels, progress=True, **whose, **given)

    def picture() -> Any:  # of the view with the largest bound
        sizes = [max(view.over.bound, view.under.bound) for view in lower.views]
        return BoundsDisplay.from_result(lower, view=sizes.index(max(sizes)))

    data = {**asked.source, **lower.to_dict(), "certificate": upper.to_dict() if upper else None}
    return Found(data, "\n\n".join(each.summary() for each in (lower, upper) if each), picture)


# ------------------------------------------------------------------ compare


@command
def compare(asked: Input, *, files: Sequence[Path] | None, correction: str, **given: Any) -> Found:
    """Rank models by a calibration error, and show how certain the ranking is.

    A model is called by its file, or its column. Exit status: 0, or 2 if the input is wrong.
    """
    sources, models, labels = _models(asked, files or [], asked.example)

    from caltest import comparison

    corrected = None if correction == "none" else correction
    found = comparison.compare(models, labels, correction=corrected, progress=True, **given)
    return Found({"files": sources, "example": asked.example, **found.to_dict()}, found.summary())


def _models(
    asked: Input, files: Sequence[Path], example: str | None
) -> tuple[dict[str, str] | None, dict[str, Rows], Any]:
    """Return the files by model (None for an example), the predictions by model, and the labels."""
    if example is not None:
        if files:
            raise InputError(
                f"both files ({files[0]}, …) and --example ({example or 'empty'}) are given."
            )
        asked.refuse("weights", "the examples have no weights", "files")
        asked.refuse("clusters", "the rows of an example are independent", "files")
        if asked.label is not None or asked.columns is not None or asked.group:
            raise InputError("--label and --columns are for files; those of an example are known.")

        from caltest.data import Rows
        from caltest.datasets import digits_models, load_digits_predictions
        from caltest.laws import Classes

        choose("example to compare", example, {"digits": True})
        loaded = [load_digits_predictions(model) for model in digits_models()]
        models = {each.model: Rows(Classes(each.probs, each.classes)) for each in loaded}
        return None, models, loaded[0].labels
    if len(files) == 1 and asked.columns and len(asked.columns) > 1:  # one of P(class 1) a model
        whose = {name: replace(asked, file=files[0], columns=[name]).sample() for name in asked.columns}
        rows = {name: sample.rows for name, sample in whose.items()}
        return dict.fromkeys(rows, str(files[0])), rows, next(iter(whose.values())).labels
    if len(files) < 2:
        raise InputError(
            f"there {'is one file' if files else 'are no files'} to compare; give two or more, or one "
            "whose --columns are P(class 1) by each model, or --example digits."
        )
    places = [os.path.realpath(path) for path in files]  # of a loop of links, too
    twice = [path for path, place in zip(files, places, strict=True) if places.count(place) > 1]
    if twice:
        raise InputError(f"the file {called(twice[0])} is given twice; give every model once.")
    stems = [Path(path).stem for path in files]
    # What models are called: their paths if stems are equal.
    names = [Path(path).stem if stems.count(Path(path).stem) == 1 else str(path) for path in files]
    sources = {name: str(path) for name, path in zip(names, files, strict=True)}
    reference, *others = (replace(asked, file=path).sample() for path in files)
    predictions = {names[0]: reference.rows}
    for name, other in zip(names[1:], others, strict=True):
        predictions[name] = _aligned(sources[names[0]], reference, sources[name], other)
    return sources, predictions, reference.labels


def _aligned(first: str, reference: Sample, second: str, other: Sample) -> Rows:
    """Return a file's predictions with columns in the order of the first one's; labels are equal."""
    import numpy as np

    from caltest.comparison.ranking import aligned

    found = aligned(first, reference, second, other)
    differ = np.flatnonzero(reference.labels != found.labels)
    if len(differ):
        row = int(differ[0])
        classes = reference.rows.classes or range(reference.rows.n_classes)
        names = [str(each) for each in classes]
        raise InputError(
            f"the labels differ: {Row(row)} is {names[reference.labels[row]]!r} in {first} and "
            f"{names[found.labels[row]]!r} in {second}; give files of the same rows in the same order."
        )
    return found.rows


# ------------------------------------------------------------------ power

#: Generative models, and the option that each of them needs.
_SIMULATED = {"m2": None, "m3": None, "tempered": "temperature", "classwise": "bias"}
_MOST_CLASSES = 100_000
_ASSUMED = ("temperature", "bias", "target", "overconfidence", "recalibration", "careful")


@command
def power(
    asked: Input,
    *,
    n: list[int] | None,
    sample_size: bool,
    under_null: bool,
    simulate: str | None,
    classes: int | None,
    **given: Any,
) -> Found:
    """Simulate how often a test finds an error, or find how many rows it needs.

    FILE is a pilot set: its predictions are drawn with replacement, and labels as if the model were
    wrong in the way that is assumed. Exit status: 0, or 2 if the input is wrong.
    """
    search = {name: given.pop(name) for name in ("power", "min_n", "max_n")}
    search = {name: value for name, value in search.items() if value is not None}
    if sample_size and n:
        raise InputError(
            f"both --n {n[0]} and --sample-size are given; give the rows, or let them be found."
        )
    if not sample_size and not n:
        raise InputError(
            "no number of rows is given: give --n 1000, or --sample-size to find how many are needed."
        )
    if not sample_size and search:
        name, value = next(iter(search.items()))
        raise InputError(
            f"--{name.replace('_', '-')} {value} is for --sample-size, and --n is given; leave one out."
        )
    if sample_size and under_null:
        raise InputError("--under-null is for --n, and --sample-size is given; leave one out.")
    model = _model(asked, simulate, classes, {name: given.pop(name) for name in _ASSUMED})

    from caltest import planning
    from caltest.plots import PowerDisplay

    found: Any
    if sample_size:
        found = planning.sample_size(model, progress=True, **search, **given)
    else:
        found = planning.power(model, n or [], under_null=under_null, progress=True, **given)
    data = {**asked.source, "simulate": simulate, **found.to_dict()}
    return Found(data, found.summary(), lambda: PowerDisplay.from_result(found))


def _model(
    asked: Input, simulate: str | None, classes: int | None, assumed: dict[str, Any]
) -> ModelLike:
    """Return the pilot of a file or an example, or the model to simulate."""
    if simulate is None:
        if classes is not None:
            raise InputError(f"--classes {classes} is for --simulate; leave it out.")
        states = any(assumed[name] is not None for name in ("temperature", "bias", "overconfidence"))
        whole = asked.read("read_pilot") if states and asked.example is None else asked.sample()

        from caltest.planning import pilot

        return pilot(whole, **assumed)
    for name in ("file", "example", "label", "columns", "group", "weights"):
        value = getattr(asked, name)
        if value not in (None, (), []):
            called = "FILE" if name == "file" else f"--{name}"
            words = ",".join(value) if name in ("columns", "group") else value
            raise InputError(
                f"both {called} ({words}) and --simulate ({simulate}) are given; give one."
            )
    return _generated(simulate, 10 if classes is None else classes, assumed)


def _generated(simulate: str, classes: int, assumed: dict[str, Any]) -> ModelLike:
    """Return a generative model with its one option."""
    choose("model to simulate", simulate, _SIMULATED)
    needed = _SIMULATED[simulate]
    allowed = {needed, "target"} if needed == "bias" else {needed}
    for name, value in assumed.items():
        if value not in (None, False) and name not in allowed:
            given = f"--{name}" if value is True else f"--{name} {value}"
            raise InputError(
                f"{given} cannot be combined with --simulate {simulate}; leave one of them out."
            )
    if needed and assumed[needed] is None:
        raise InputError(f"--simulate {simulate} needs its error; give --{needed} too.")

    if classes > _MOST_CLASSES:
        raise InputError(f"--classes is {classes}; give at most {_MOST_CLASSES:,}.")

    from caltest import simulation

    generated = getattr(simulation, simulate)
    alpha = simulation.equal(classes).tolist()
    if needed is None:
        return partial(generated, n_classes=classes)
    error = {needed: assumed[needed]}
    if needed == "bias":
        target = assumed["target"] or "0"
        error["target"] = whole_number(target)
        if error["target"] is None or error["target"] >= classes:
            raise InputError(f"--target is {quoted(target)}; give a class from 0 to {classes - 1}.")
    return partial(generated, alpha=alpha, **error)
