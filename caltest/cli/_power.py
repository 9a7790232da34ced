"""`caltest power`: how often a test finds an error, and how many rows it takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caltest._arguments import choose, whole_number
from caltest._visible import quoted
from caltest.cli._options import (
    Found,
    Input,
    Jobs,
    LensName,
    Seed,
    Weights,
    command,
    default,
    option,
)
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest.planning import PowerResult, SampleSizeResult
    from caltest.planning.simulate import ModelLike

#: Generative models, and the option that each of them needs.
_SIMULATED: dict[str, str | None] = {
    "m2": None,
    "m3": None,
    "tempered": "temperature",
    "classwise": "bias",
}
_MOST_CLASSES = 100_000

_SAME = (
    "n", "power", "careful", "temperature", "bias", "target", "overconfidence", "recalibration",
    "alpha", "statistic", "null", "lens", "alternative", "tolerance",
)  # fmt: skip
#: What an argument of Python is called here, in messages.
_OPTIONS = {
    **{name: f"--{name}" for name in _SAME},
    "n_resamples": "--resamples",
    "n_datasets": "--datasets",
    "min_n": "--min-n",
    "max_n": "--max-n",
}


@command(plot=True, names=_OPTIONS)
def power(
    asked: Input,
    weights: Weights = None,
    n: Annotated[
        list[int] | None, option("INT", "Rows of a data set; give it once for each size.", "--n")
    ] = None,
    sample_size: Annotated[
        bool,
        typer.Option(
            "--sample-size",
            help="Find how many rows one test needs to find the assumed error with the wanted power. "
            "(How many rows show that errors are within a limit is another question, of audit.)",
        ),
    ] = False,
    temperature: Annotated[
        float | None,
        option("FLOAT", "Assume logits divided by this: overconfident below 1, underconfident above."),
    ] = None,
    bias: Annotated[
        float | None, option("FLOAT", "Assume that the log-odds of --target are this much too high.")
    ] = None,
    target: Annotated[
        str | None, option("CLASS", "The class of --bias.  [default: class 1 of two]")
    ] = None,
    overconfidence: Annotated[
        float | None,
        option(
            "FLOAT",
            "Assume that the confidence in the top class is this much too high, 0.05 for 5 points.",
        ),
    ] = None,
    recalibration: Annotated[
        str | None,
        option(
            "NAME",
            "Assume the pilot's own error, as estimated by temperature, logistic or isotonic.  "
            "[default, if nothing else is assumed: logistic of two classes, temperature of more]",
        ),
    ] = None,
    careful: Annotated[
        bool,
        typer.Option(
            "--careful",
            help="Of a fit, assume the end of its 95% interval that is nearest to calibrated.",
        ),
    ] = False,
    simulate: Annotated[
        str | None,
        option(
            "NAME",
            "A model instead of FILE: m2, m3, tempered (with --temperature), classwise (with --bias).",
        ),
    ] = None,
    classes: Annotated[
        int | None, option("INT", "Classes of a model of --simulate.  [default: 10]")
    ] = None,
    statistic: Annotated[
        str | None,
        option("NAME", "What is computed; see below.  [default: that of caltest test]"),
    ] = None,
    null: Annotated[
        str | None,
        option("NAME", "Where the p-value comes from; see below.  [default: monte_carlo]"),
    ] = None,
    lens: LensName = None,
    alternative: Annotated[
        str | None, option("NAME", "As of caltest test.  [default: the statistic's own]")
    ] = None,
    tolerance: Annotated[
        float | None,
        option("FLOAT", "Test whether the model is wrong by more than this.  [default: by anything]"),
    ] = None,
    alpha: Annotated[float, default("FLOAT", "Level of the test.")] = 0.05,
    power: Annotated[
        float | None, option("FLOAT", "Power wanted, with --sample-size.  [default: 0.8]")
    ] = None,
    min_n: Annotated[
        int | None, option("INT", "Fewest rows, with --sample-size.  [default: 50]")
    ] = None,
    max_n: Annotated[
        int | None, option("INT", "Most rows, with --sample-size.  [default: 20000]")
    ] = None,
    under_null: Annotated[
        bool,
        typer.Option("--under-null", help="Count rejections of calibrated models of that size too."),
    ] = False,
    datasets: Annotated[
        int,
        default("INT", "Simulated data sets per size; with --sample-size, near the answer."),
    ] = 400,
    resamples: Annotated[
        int | None,
        option("INT", "Draws of the null in each test.  [default: 199 for one side at level 0.05]"),
    ] = None,
    seed: Seed = None,
    jobs: Jobs = -1,
) -> Found:
    """Simulate how often a test finds an error, or find how many rows it needs.

    FILE is a pilot set: its predictions are drawn with replacement, and labels as if the model were
    wrong in the way that is assumed. Exit status: 0, or 2 if the input is wrong.
    """
    search: dict[str, Any] = {
        name: value
        for name, value in (("power", power), ("min_n", min_n), ("max_n", max_n))
        if value is not None
    }
    _check_question(n, sample_size, search, under_null)
    assumed: dict[str, Any] = {
        "temperature": temperature,
        "bias": bias,
        "target": target,
        "overconfidence": overconfidence,
        "recalibration": recalibration,
        "careful": careful,
    }
    model = _model(asked, simulate, classes, assumed)

    from caltest import planning
    from caltest.plots import PowerDisplay

    test: dict[str, Any] = {
        "statistic": statistic,
        "null": null,
        "lens": lens,
        "alternative": alternative,
        "tolerance": tolerance,
        "alpha": alpha,
        "n_datasets": datasets,
        "n_resamples": resamples,
        "rng": seed,
        "n_jobs": jobs,
        "progress": True,
    }
    found: PowerResult | SampleSizeResult
    if sample_size:
        found = planning.sample_size(model, **search, **test)
    else:
        found = planning.power(model, n or [], under_null=under_null, **test)
    data = {**asked.source, "simulate": simulate, **found.to_dict()}
    return Found(data, found.summary(), lambda: PowerDisplay.from_result(found))


def _check_question(
    n: list[int] | None, sample_size: bool, search: dict[str, Any], under_null: bool
) -> None:
    """Raise unless one of two questions is asked."""
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


def _model(
    asked: Input, simulate: str | None, classes: int | None, assumed: dict[str, Any]
) -> ModelLike:
    """Return the pilot of a file or an example, or the model to simulate."""
    if simulate is None:
        if classes is not None:
            raise InputError(f"--classes {classes} is for --simulate; leave it out.")
        states = any(assumed[name] is not None for name in ("temperature", "bias", "overconfidence"))
        whole = asked.pilot() if states and asked.example is None else asked.sample()

        from caltest.planning import pilot

        return pilot(whole, **assumed)
    for name, value in {
        "FILE": asked.file,
        "--example": asked.example,
        "--label": asked.label,
        "--columns": ",".join(asked.columns or ()) or None,
        "--group": ",".join(asked.group) or None,
        "--weights": asked.weights,
    }.items():
        if value is not None:
            raise InputError(f"both {name} ({value}) and --simulate ({simulate}) are given; give one.")
    return _generated(simulate, 10 if classes is None else classes, assumed)


def _generated(simulate: str, classes: int, assumed: dict[str, Any]) -> ModelLike:
    """Return a generative model with its one option."""
    choose("model to simulate", simulate, _SIMULATED)
    needed = _SIMULATED[simulate]
    allowed = {needed, "target"} if needed == "bias" else {needed}
    for name, value in assumed.items():
        if value is not None and value is not False and name not in allowed:
            given = f"--{name}" if value is True else f"--{name} {value}"
            raise InputError(
                f"{given} cannot be combined with --simulate {simulate}; leave one of them out."
            )
    if needed and assumed[needed] is None:
        raise InputError(f"--simulate {simulate} needs its error; give --{needed} too.")

    if classes > _MOST_CLASSES:
        raise InputError(f"--classes is {classes}; give at most {_MOST_CLASSES:,}.")

    from caltest import simulation
    from caltest.simulation import equal

    alpha = equal(classes).tolist()
    if needed is None:
        return partial(simulation.m2 if simulate == "m2" else simulation.m3, n_classes=classes)
    if simulate == "tempered":
        return partial(simulation.tempered, alpha=alpha, temperature=assumed["temperature"])
    target = assumed["target"] or "0"
    column = whole_number(target)
    if column is None or column >= classes:
        raise InputError(f"--target is {quoted(target)}; give a class from 0 to {classes - 1}.")
    return partial(simulation.classwise, alpha=alpha, target=column, bias=assumed["bias"])
