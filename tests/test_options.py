"""An option is told once: signatures of Python, and what commands take, are held to one table."""

import inspect
import re

import pytest
from support import command

import caltest
from caltest import planning
from caltest.options import COMMANDS

#: What the commands call.
CALLS = {
    "audit": [caltest.audit],
    "test": [caltest.test],
    "estimate": [caltest.estimate],
    "estimate-error": [caltest.estimate_squared_error],
    "compare": [caltest.compare],
    "bounds": [caltest.miscalibration_bounds, caltest.certificate],
    "power": [planning.power, planning.sample_size, planning.pilot],
    "plan": [caltest.plan],
    "monitor": [caltest.Monitor, caltest.Monitor.update],
}
#: Arguments that a command gives itself, or finds in its file.
OWN = {"probs", "labels", "models", "model", "class_names", "progress", "groups"}
#: Options that a command has besides the arguments.
BESIDES = {
    "FILE", "FILES", "STATE", "label", "columns", "mean", "sd", "variance", "quantiles", "members",
    "truth", "where", "time", "event", "survival-at", "follow-up", "interpolation", "logits", "group",
    "weights", "clusters",
    "example", "json", "plot", "report", "markdown",
    "junit", "title", "date", "fail-on", "config", "scheduler", "jobs",
    "approximation", "rank", "sample-size",
}  # fmt: skip
#: Arguments that only Python has; options that only a command has.
ALONE = {
    "test": ["--alpha"],
    "estimate-error": ["order"],
    "compare": ["confidence"],
    "bounds": ["binning", "n_bins"],
    "power": ["truth"],
    "monitor": ["self", "predicted", "outcomes"],
}


def parameters(command):
    return {
        name: parameter
        for call in reversed(CALLS[command])
        for name, parameter in inspect.signature(call).parameters.items()
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_is_an_option_and_every_option_an_argument(command):
    known = parameters(command)
    options = COMMANDS[command]
    arguments = {option.argument for option in options.values()}
    strange = {name for name, option in options.items() if option.argument not in known} - BESIDES
    alone = (set(known) - OWN - arguments) | {f"--{name}" for name in strange}
    assert alone == set(ALONE.get(command, []))


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_those_of_the_signatures(command):
    known, compared = parameters(command), 0
    for name, option in COMMANDS[command].items():
        said = re.search(r"\[default: (-?[\d.]+)\]$", option.help)
        default = float(said[1]) if said else option.default
        if default is None or option.argument not in known or name == "jobs":
            continue
        found = known[option.argument].default
        if found is not None:  # else the function decides, and the help says how
            assert default == found, name
            compared += 1
    assert compared or command == "power"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_text_of_the_table_is_read_as_it_is_meant(command):
    for name, option in COMMANDS[command].items():
        assert option.name == name
        assert option.help[-1] in ".])", name
        assert option.takes in {
            "Any", "-", "INT", "FLOAT", "FILE", "COL", "COLS", "NAME", "NAMES", "TEXT", "URL", "CLASS",
            "CLASS=RATE", "PREFIX", "PATH", "COL=VALUE", "TIME=COL",
        }  # fmt: skip


@pytest.mark.parametrize("option", ["alpha", "jobs", "resamples", "min-rows", "seed"])
def test_an_option_is_checked_as_the_argument(option):
    found = command("audit", "a.csv", f"--{option}=-2000")
    assert found.exit_code == 2
    assert re.match(f"Error: --{option} is -2000(.0)?; give ", found.stderr)
