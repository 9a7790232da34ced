"""What `caltest power` draws data sets from: a pilot in a file, or a generative model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from caltest._arguments import choose, whole_number
from caltest._visible import quoted
from caltest.cli._input import read_pilot
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest.planning.pilot import Kind
    from caltest.planning.simulate import ModelLike

#: Generative models, and the option that each of them needs.
_SIMULATED: dict[str, str | None] = {
    "m2": None,
    "m3": None,
    "tempered": "temperature",
    "classwise": "bias",
}
#: What an argument of Python is called here, in messages.
OPTIONS = {
    "n": "--n",
    "power": "--power",
    "n_resamples": "--resamples",
    "n_datasets": "--datasets",
    "min_n": "--min-n",
    "max_n": "--max-n",
    "careful": "--careful",
    "temperature": "--temperature",
    "bias": "--bias",
    "target": "--target",
    "overconfidence": "--overconfidence",
    "recalibration": "--recalibration",
    "alpha": "--alpha",
    "statistic": "--statistic",
    "null": "--null",
    "lens": "--lens",
    "alternative": "--alternative",
    "tolerance": "--tolerance",
}
_MOST_CLASSES = 100_000


def find_model(
    file: Path | None,
    label: str | None,
    columns: str | None,
    example: str | None,
    simulate: str | None,
    classes: int | None,
    assumed: dict[str, Any],
) -> ModelLike:
    """Return the pilot of a file or an example, or the model to simulate."""
    if simulate is None:
        if classes is not None:
            raise InputError(f"--classes {classes} is for --simulate; leave it out.")
        states = any(assumed[name] is not None for name in ("temperature", "bias", "overconfidence"))
        whole = read_pilot(file, label, columns, example, needs_labels=not states)

        from caltest.planning import pilot

        kind = cast("Kind | None", assumed.pop("recalibration"))
        try:
            return pilot(whole, recalibration=kind, **assumed)
        except InputError as error:
            raise error.renamed(OPTIONS) from error
    for name, value in {
        "FILE": file,
        "--example": example,
        "--label": label,
        "--columns": columns,
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
            raise InputError(f"{given} does not go with --simulate {simulate}; leave one of them out.")
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
