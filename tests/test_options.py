"""An option is told once: signatures of Python, and what commands take, are held to one table."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import command

import caltest
from caltest import planning
from caltest.options import COMMANDS

#: What the commands call.
CALLS = {
    "audit": [caltest.audit], "test": [caltest.test], "estimate": [caltest.estimate],
    "estimate-error": [caltest.estimate_squared_error], "compare": [caltest.compare],
    "bounds": [caltest.miscalibration_bounds, caltest.certificate],
    "power": [planning.power, planning.sample_size, planning.pilot], "plan": [caltest.plan],
    "sbc": [caltest.sbc],
    "monitor": [caltest.Monitor, caltest.Monitor.update],
}  # fmt: skip
#: Arguments that a command gives itself, or finds in its file.
OWN = {"probs", "labels", "models", "model", "class_names", "progress", "groups"}
#: Options that a command has besides the arguments.
BESIDES = {
    "FILE", "FILES", "STATE", "label", "columns", "mean", "sd", "variance", "quantiles", "members",
    "point", "functional", "low", "high", "symmetric",
    "truth", "where", "time", "event", "survival-at", "incidence", "follow-up", "interpolation",
    "logits", "group", "weights", "clusters", "blocks",
    "sets", "lower", "upper", "level", "claims", "calibration-rows",
    "example", "json", "plot", "report", "markdown", "verbose",
    "junit", "title", "date", "fail-on", "config", "jobs",
    "approximation", "rank", "sample-size", "scale", "skip-missing",
}  # fmt: skip
SIDED = ["--materiality-low", "--materiality-high"]  # one argument together
#: Arguments that only Python has; options that only a command has.
ALONE = {
    "test": ["--alpha"], "estimate-error": ["order"], "compare": ["confidence"],
    "bounds": ["binning", "n_bins"], "power": ["truth"], "audit": ["learner", *SIDED], "plan": SIDED,
    "monitor": ["self", "predicted", "outcomes", "--date-column"],
    "sbc": ["parameters", "draws", "quantities", "options", "--materiality", "--alpha", "--resamples",
        "--seed", *SIDED],
}  # fmt: skip


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
    assert compared or command in ("power", "sbc")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_text_of_the_table_is_read_as_it_is_meant(command):
    for name, option in COMMANDS[command].items():
        assert option.name == name
        assert option.help[-1] in ".])", name
        assert option.takes in {
            "Any", "-", "INT", "FLOAT", "FILE", "COL", "COLS", "NAME", "NAMES", "TEXT", "URL", "CLASS",
            "CLASS=RATE", "PREFIX", "PATH", "COL=VALUE", "TIME=COL", "PATTERN",
        }  # fmt: skip


@pytest.mark.parametrize("option", ["alpha", "jobs", "resamples", "min-rows", "seed"])
def test_an_option_is_checked_as_the_argument(option):
    found = command("audit", "a.csv", f"--{option}=-2000")
    assert found.exit_code == 2
    assert re.match(f"Error: --{option} is -2000(.0)?; give ", found.stderr)


# --- a shell is told of options, never of Python

_ARGUMENTS = {of.argument for known in COMMANDS.values() for of in known.values()} - {"target", "error"}
_NAMES = f"({'|'.join(_ARGUMENTS)}|groups)=|caltest\\.({'|'.join(COMMANDS).replace('-', '_')})\\b"
PYTHON = re.compile(rf"\b({_NAMES}|np\.)|\.T\b|to_frame\(|in Python")
#: Rooms and files of objects, which no command takes, and the table of options itself.
OF_OBJECTS = {
    *("plots", "kernels", "laws", "_arguments.py", "alignment.py", "containers.py", "rows.py"),
    *("sample.py", "posteriors.py", "simulate.py", "sampling.py", "options.py", "_options.py"),
    "formats.py",
}


def sentences(path):
    """Texts of a module, but for docstrings and what `Argument` writes as an option."""
    tree, apart = ast.parse(path.read_text("utf-8")), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) or getattr(getattr(node, "func", None), "id", "") == "Argument":
            apart |= {*ast.walk(node)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in apart:
            yield node.value


def test_messages_name_arguments_as_facts_alone():
    root = Path(caltest.__file__).parent
    paths = [each for each in root.rglob("*.py") if OF_OBJECTS.isdisjoint(each.relative_to(root).parts)]
    told = [(path.name, text) for path in paths for text in sentences(path) if " " in text.strip()]
    assert len(told) > 1000
    assert [each for each in told if PYTHON.search(each[1])] == []


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    p, path = rng.random(300), tmp_path_factory.mktemp("shell") / "p.csv"
    rows = pd.DataFrame({"p": p, "label": rng.random(300) < p, "age": rng.integers(20, 80, 300)})
    rows = rows.assign(high=p**0.3, score=9 * p - 5, log=np.log(p), price=99 * p, paid=90 * p + 0.1)
    pd.concat([rows, rows]).astype({"label": int}).to_csv(path, index=False)
    return path


TOLD = """
test --columns score : give --logits, and
test --columns log : give their exponentials, or --logits if
test --columns price --label paid : point forecasts .--point price., .* or distributions .--mean, --q
test --columns p,age : 'age' is .*; use --group for it, or --columns for the others
test --columns p --label high : labels has fractions, in .*; if .* give every vote a row, and --clusters
test --columns p --clusters age --tolerance .1 : for rows in clusters use caltest audit
test --columns high --seed 1 : say which rows belong together .--clusters.
audit --columns high --group age --min-rows 500 --seed 1 --resamples 99 : lower --min-rows
compare --columns p,high --group age : Run caltest audit on p before
plan --columns p --materiality .05 : with --error 0.005
audit --columns p --materiality .1 --materiality-low .1 : give --materiality, or a limit of each side
audit --columns p --materiality-high 1.5 : --materiality-high is 1.5; give a difference of
power --columns p --sample-size --temperature .9 --max-n 60 --datasets 20 : most rows allowed, 60
"""


@pytest.mark.parametrize("each", TOLD.strip().splitlines())
def test_a_shell_is_told_of_options(table, each):
    call, told = each.split(" : ")
    name, *options = call.split()
    text = " ".join(command(name, table, *options).output.split())
    assert re.search(told, text), text
    assert not PYTHON.search(text), text
