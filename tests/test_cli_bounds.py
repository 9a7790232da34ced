"""`caltest bounds`."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from support import command, refused

import caltest

run = partial(command, "bounds")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), size=400)
    labels = (rng.random((400, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    sharp = probs**4 / (probs**4).sum(axis=1, keepdims=True)
    path = tmp_path_factory.mktemp("bounds") / "sharp.csv"
    names = ["ant", "bee", "cat"]
    pd.DataFrame(sharp, columns=names).assign(verdict=np.array(names)[labels]).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_the_output_is_the_summary():
    result = run("--example", "digits:naive_bayes", "--seed", 3)
    assert (result.exit_code, result.stderr) == (0, "")
    digits = caltest.datasets.load_digits_predictions("naive_bayes")
    predictions = caltest.data.Rows(caltest.laws.Classes(digits.probs, digits.classes))
    expected = caltest.miscalibration_bounds(predictions, digits.labels, rng=3)
    upper = caltest.certificate(predictions, digits.labels)
    shown = f"{expected.summary()}\n\n{upper.summary()}\n".replace("in where()", "in --json")
    shown = shown.replace("caltest.audit", "caltest audit")
    assert result.stdout == shown


@pytest.mark.slow
def test_the_picture(tmp_path):
    path = tmp_path / "bounds.png"
    result = run("--example", "digits:naive_bayes", "--resamples", 59, "--seed", 3, "--plot", path)
    assert result.exit_code == 0
    assert path.stat().st_size > 10_000


def test_the_certificate_is_in_the_picture(file, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        caltest.plots.Display, "save", lambda self, path: drawn.extend(self.figure_.axes)
    )
    options = ("--label", "verdict", "--lens", "class:ant", "--resamples", "59", "--seed", 4)
    assert run(file, *options, "--plot", tmp_path / "a.png").exit_code == 0
    least, most = (ax.get_title(loc="left") for ax in drawn if ax.get_title(loc="left"))
    assert "some predictions are at least" in least
    assert "on average over each of 10 bins" in most


def test_json_and_options(file):
    options = ("--label", "verdict", "--lens", "class:ant", "--confidence", ".9", "--resamples", "59")
    result = run(file, *options, "--seed", 4, "--jobs", 1, "--json")
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed["file"] == str(file)
    assert printed["example"] is None
    assert (printed["lens"], printed["confidence"], printed["n_resamples"], printed["seed"]) == (
        *("class:ant", 0.9, 59, 4),
    )
    assert printed["views"][0]["event"] == "the label is 'ant'"
    assert printed["over"] > 0.0
    two = run(file, *options, "--seed", 4, "--jobs", 2, "--json")
    assert two.stdout == result.stdout


@pytest.mark.slow
def test_classwise(file):
    result = run(file, "--label", "verdict", "--lens", "classwise", "--seed", 1)
    assert result.exit_code == 0
    assert "each of the 3 classes by itself" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to read"),
        (("--example", "digits:naive_bayes", "--confidence", "2"), "confidence is 2.0"),
        (("--example", "digits:naive_bayes", "--lens", "top"), "there is no lens 'top'"),
        (("--example", "digits:naive_bayes", "--jobs", "0"), "--jobs is 0"),
        (("--example", "digits:naive_bayes", "--resamples", "9"), "give --resamples 39 or more"),
        (("missing.csv",), "missing.csv"),
        (("--example", "digits:naive_bayes", "--plot", "picture.doc"), "ends in .png or .pdf or .svg"),
    ],
)
def test_errors(arguments, words):
    refused(run(*arguments), words)
