"""`caltest power`."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from support import command, refused

import caltest
from caltest.planning import pilot

DIGITS = ("--example", "digits:logistic_regression")
WRONG = (*DIGITS, "--overconfidence", 0.05)
QUICK = ("--statistic", "ecd", "--datasets", 20, "--seed", 3, "--jobs", 1)


run = partial(command, "power")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), size=200)
    labels = (rng.random((200, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    path = tmp_path_factory.mktemp("power") / "pilot.csv"
    names = ["ant", "bee", "cat"]
    pd.DataFrame(probs, columns=names).assign(verdict=np.array(names)[labels]).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_the_output_is_the_summary():
    result = run(*DIGITS, "--n", 50, "--n", 90, "--overconfidence", 0.05, "--under-null", *QUICK)
    assert (result.exit_code, result.stderr) == (0, "")
    digits = caltest.datasets.load_digits_predictions("logistic_regression")
    model = pilot(digits.probs, overconfidence=0.05)
    expected = caltest.power(model, [50, 90], "ecd", n_datasets=20, rng=3, under_null=True)
    assert result.stdout == f"{expected.summary()}\n"


@pytest.mark.slow
def test_sample_size_as_json(file):
    asked = ("--label", "verdict", "--temperature", 0.4, "--power", 0.7, *QUICK)
    result = run(file, *asked, "--min-n", 20, "--max-n", 5000, "--alpha", 0.1, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    printed = json.loads(result.stdout)
    model = pilot(caltest.files.read(file, "verdict"), temperature=0.4)
    expected = caltest.sample_size(
        model, "ecd", power=0.7, min_n=20, max_n=5000, alpha=0.1, n_datasets=20, rng=3
    )
    assert printed.pop("file") == str(file)
    assert printed.pop("example") is None
    assert printed == expected.to_dict()
    assert printed["n_resamples"] == 199  # two sides at level 0.1


def test_a_class_by_name_and_a_tolerance(file):
    named = run(file, "--label", "verdict", "--n", 30, "--bias", -1, "--target", "cat", *QUICK)
    assert "log-odds of class cat are stated 1 too low" in named.stdout
    tolerant = run(*DIGITS, "--n", 30, "--temperature", 0.5, "--lens", "top_label", "--tolerance", 0.02,
                   "--datasets", 3, "--resamples", 79, "--seed", 1)  # fmt: skip
    assert tolerant.exit_code == 0
    assert "2 points" in tolerant.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "npy"])
def test_a_stated_error_needs_no_labels(tmp_path, kind):
    probs = np.random.default_rng(1).dirichlet(np.ones(3), size=50)
    path, names = tmp_path / f"pilot.{kind}", ["ant", "bee", "cat"]
    frame = pd.DataFrame(probs, columns=names)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "npz":
        np.savez(path, probs=probs, classes=names)
    else:
        np.save(path, probs)
    result = run(path, "--n", 30, "--overconfidence", 0.2, *QUICK, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    expected = caltest.power(pilot(probs, overconfidence=0.2), 30, "ecd", n_datasets=20, rng=3)
    assert json.loads(result.stdout)["points"] == expected.to_dict()["points"]
    if kind != "npy":
        named = run(path, "--n", 30, "--bias", 1, "--target", "cat", *QUICK)
        assert "log-odds of class cat" in named.stdout
    refused = run(path, "--n", 30, *QUICK)
    assert refused.exit_code == 2
    assert "nothing is assumed to be true of the pilot; give one of --temperature 0.8" in refused.stderr


def test_a_file_without_labels_is_checked(tmp_path):
    path = tmp_path / "pilot.csv"
    pd.DataFrame({"a": [0.5, 0.2], "b": [0.5, 0.8], "verdict": ["a", "b"]}).to_csv(path, index=False)
    asked = ("--n", 30, "--temperature", 0.5, *QUICK)
    wrong = run(path, *asked)
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (2, 1)
    assert "pilot.csv: column 'verdict' holds 'a'" in wrong.stderr
    assert run(path, *asked, "--columns", "a,b").exit_code == 0
    pd.DataFrame({"a": [0.5, 2.2], "b": [0.5, 0.8]}).to_csv(path, index=False)
    wrong = run(path, *asked)
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (2, 1)


def test_weights_of_a_pilot(tmp_path):
    path, rng = tmp_path / "pilot.csv", np.random.default_rng(2)
    p, weights = rng.random(60), rng.uniform(1.0, 5.0, 60)
    pd.DataFrame({"p": p, "w": weights}).to_csv(path, index=False)
    asked = (path, "--n", 40, "--weights", "w", *QUICK)
    found = run(*asked, "--overconfidence", 0.2, "--json")
    assert (found.exit_code, found.stderr) == (0, "")
    made = pilot(p, overconfidence=0.2, weights=weights)
    expected = caltest.power(made, 40, "ecd", n_datasets=20, rng=3).to_dict()
    assert json.loads(found.stdout)["points"] == expected["points"]
    assert "weights like those of the pilot" in run(*asked, "--overconfidence", 0.2).stdout
    pd.DataFrame({"p": p, "w": -weights}).to_csv(path, index=False)
    wrong = run(*asked, "--overconfidence", 0.2)
    assert wrong.exit_code == 2
    assert "weights has -1.68711 in row 0" in wrong.stderr


@pytest.mark.slow
def test_the_picture(tmp_path):
    path = tmp_path / "power.png"
    assert run(*WRONG, "--n", 20, "--n", 40, *QUICK, "--plot", path).exit_code == 0
    assert path.stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--n", 100), "nothing to read"),
        ((*DIGITS, "--n", 100, "--sample-size"), "--n and --sample-size are both given"),
        ((*DIGITS, "--n", 100, "--power", 0.9), "--power is for --sample-size"),
        ((*DIGITS, "--n", 100, "--max-n", 9), "--max-n is for --sample-size"),
        ((*DIGITS, "--sample-size", "--under-null"), "--under-null is for --n"),
        ((*DIGITS, "--n", 1, "--temperature", 2), "--n is 1; give a whole number"),
        ((*DIGITS, "--n", 9, "--temperature", 0), "--temperature is 0.0; give a positive number"),
        ((*DIGITS, "--n", 9, "--temperature", 2, "--bias", 1), "both --temperature and --bias are"),
        ((*DIGITS, "--n", 9, "--bias", 1), "needs the class it is of (--target)"),
        ((*DIGITS, "--n", 9, "--temperature", 2, "--resamples", 9), "give --resamples 19 or more"),
        ((*DIGITS, "--n", 9, "--temperature", 2, "--datasets", 0), "--datasets is 0"),
        ((*DIGITS, "--n", 9, "--weights", "w"), "--weights is for a file"),
        ((*WRONG, "--sample-size", "--power", 2), "--power is 2.0; give a probability"),
        ((*WRONG, "--n", 9, "--jobs", 0), "--jobs is 0"),
        ((*WRONG, "--n", 9, "--plot", "picture.doc"), "ends in .png or .pdf or .svg"),
        ((*WRONG, "--n", 10**9), "--n is 1000000000; give at most 100,000,000 rows"),
        ((*WRONG, "--sample-size", "--max-n", 10**9), "--max-n is 1000000000; give at"),
        ((*WRONG, "--n", 9, "--alpha", 0), "--alpha is 0.0; give a level"),
        (("missing.csv", "--n", 9, "--temperature", 2), "missing.csv"),
        (("missing.csv", "--n", 9), "missing.csv"),
    ],
)
def test_errors(arguments, words):
    refused(run(*arguments), words)
