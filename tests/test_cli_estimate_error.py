"""`caltest estimate-error`."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from support import command

import caltest
from caltest.datasets import load_digits_predictions
from caltest.files import read

CLASSES = ["ant", "bee", "cat"]
QUICK = ["--functions", "two_step_ridge", "--resamples", "20", "--seed", "1"]


run = partial(command, "estimate-error")


def fails(*arguments):
    """Return the message: one sentence on standard error, nothing on standard output."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert len(result.stderr.splitlines()) == 1
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def printed(*arguments):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=refuse)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), size=100)
    labels = (rng.random((100, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    path = tmp_path_factory.mktemp("predictions") / "export.csv"
    table = pd.DataFrame(probs, columns=CLASSES).assign(run=7, verdict=np.array(CLASSES)[labels])
    table.to_csv(path, index=False, float_format="%.17g")
    return path


@pytest.fixture
def given(file):
    return [file, "--label", "verdict", "--columns", "ant, bee,cat"]


@pytest.fixture
def data(file):
    sample = read(file, label="verdict", columns=CLASSES)
    return sample.rows, sample.labels


def test_the_output_is_the_summary(given, data):
    result = run(*given, *QUICK)
    assert (result.exit_code, result.stderr) == (0, "")
    expected = caltest.estimate_squared_error(
        *data, functions=["two_step_ridge"], n_resamples=20, rng=1
    )
    assert result.stdout == expected.summary() + "\n"


def test_json_is_the_dictionary_and_the_source(given, file, data):
    found = caltest.estimate_squared_error(*data, "top_label", pvalue="none", rng=3)
    expected = {"file": str(file), "example": None, **found.to_dict()}
    assert printed(*given, "--lens", "top_label", "--pvalue", "none", "--seed", "3") == expected
    assert len(expected["functions"]) == 5


def test_options_reach_the_estimation(given):
    found = printed(
        *given,
        *("--functions", "kernel_density, two_step_ridge", "--resamples", "9"),
        *("--test-size", "0.3", "--folds", "3", "--regularization-scaling", "published"),
        *("--lens", "class:bee", "--seed", "2", "--jobs", "1"),
    )
    assert {each["label"] for each in found["functions"]} == {"kernel_density", "two_step_ridge"}
    assert (found["test"]["name"], found["test"]["n_resamples"]) == ("held_out_agreement", 9)
    assert (found["n_test"], found["n_tuning"], found["n_folds"]) == (30, 70, 3)
    assert (found["lens"], found["n_classes"], found["seed"]) == ("class:bee", 2, 2)
    (ridge,) = (each for each in found["functions"] if each["name"] == "two_step_ridge")
    assert ridge["parameters"]["regularization_scaling"] == "published"


def test_resamples_have_the_default_of_the_library(given):
    assert printed(*given, *QUICK[:2])["test"]["n_resamples"] == 999


def test_jobs_do_not_change_the_numbers(given):
    one, two = (printed(*given, *QUICK, "--jobs", jobs) for jobs in (1, 2))
    assert one == two


def test_example():
    found = printed("--example", "digits:naive_bayes", "--lens", "top_label", *QUICK)
    digits = load_digits_predictions("naive_bayes")
    expected = caltest.estimate_squared_error(
        digits.probs, digits.labels, "top_label", "two_step_ridge", pvalue="none", rng=1
    )
    assert (found["file"], found["example"]) == (None, "digits:naive_bayes")
    assert found["estimate"] == pytest.approx(expected.estimate, rel=1e-12)


# --- what is wrong


def test_a_refusal_leaves_no_picture_behind_and_an_old_one_as_it_was(given, tmp_path):
    (tmp_path / "old.png").write_bytes(b"old")
    for name in ("old.png", "new.png"):
        fails(*given, "--plot", tmp_path / name, "--folds", "1")
    assert [each.name for each in tmp_path.iterdir()] == ["old.png"]
    assert (tmp_path / "old.png").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--functions", "kernel_densty"], "did you mean 'kernel_density'"),
        (["--functions", ""], "there is no estimation function ''"),
        (["--functions", "temperature,temperature"], "each one once"),
        (["--functions", "binning"], "'binning' measures one probability, and there are 3 classes"),
        (["--pvalue", "heldout"], "did you mean 'held_out'"),
        (["--pvalue", "none", "--resamples", "9"], "--resamples is 9, and --pvalue none draws none"),
        (["--folds", "1"], "--folds is 1"),
        (["--test-size", "20"], "--test-size is 20.0; give a share between 0 and 1"),
        (["--folds", "60"], "which leaves 1 in a fold"),
        (["--regularization-scaling", "paper"], "choices: usual, published"),
        (["--lens", "toplabel"], "did you mean 'top_label'"),
        (["--jobs", "0"], "--jobs is 0"),
        (["--example", "digits:naive_bayes"], "both FILE"),
    ],
)
def test_wrong_options(given, options, part):
    assert part in fails(*given, *options)


def test_wrong_files(file, tmp_path):
    assert "give a FILE" in fails()
    assert "there is no such file" in fails(tmp_path / "missing.csv")
    few = tmp_path / "few.csv"
    pd.DataFrame({"p": [0.1, 0.5, 0.9] * 3, "y": [0, 1, 1] * 3}).to_csv(few, index=False)
    assert "there are 9 rows, which leaves 1 in a fold" in fails(few)
