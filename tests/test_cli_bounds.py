"""`caltest bounds`."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from support import command, refused

import caltest

QUICK = ("--label", "verdict", "--lens", "class:ant", "--resamples", "59", "--seed", "4")
run = partial(command, "bounds")


def fails(*arguments):
    """Return the message: one sentence on standard error, nothing on standard output."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return result.stderr.strip()


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("b.PDF", b"%PDF"), ("c.svg", b"<?xml")]
)
def test_a_picture(file, tmp_path, name, start):
    import matplotlib.pyplot as plt

    plain, drawn = run(file, *QUICK), run(file, *QUICK, "--plot", tmp_path / name)
    assert (drawn.exit_code, drawn.stdout) == (0, plain.stdout)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert plt.get_fignums() == []


def test_a_picture_that_fails_late_does_not_cost_the_results(file, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    result = run(file, *QUICK, "--plot", tmp_path / "a.png")
    assert result.exit_code == 2
    assert result.stdout == run(file, *QUICK).stdout
    assert result.stderr.rstrip().endswith("a.png cannot be written: No space left on device.")


def test_pictures_that_cannot_be_written_are_refused_before_any_work(file, tmp_path, monkeypatch):
    def worked(*_, **__):
        raise AssertionError("there was work before the refusal")

    monkeypatch.setattr("caltest.files.read", worked)
    for name in ("a.bmp", "a", "png"):
        message = fails(file, *QUICK, "--plot", tmp_path / name)
        assert message.endswith(f"{name}; give a file name that ends in .png or .pdf or .svg.")
    (tmp_path / "folder.png").mkdir()
    assert "cannot be written: it is no file" in fails(file, *QUICK, "--plot", tmp_path / "folder.png")
    assert "cannot be written: No such file or directory" in fails(
        file, "--plot", tmp_path / "missing" / "a.png"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["folder.png"]


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
    assert run(file, *options, "--seed", 4, "--jobs", 2, "--json").stdout == result.stdout


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
