"""`caltest compare`."""

import numpy as np
import pandas as pd
import pytest
from support import command as run
from support import strict_json

import caltest
from caltest.datasets import digits_models, load_digits_predictions

CLASSES = ["ant", "bee", "cat"]
QUICK = ["--statistic", "skce_uq"]


def fails(*arguments):
    """Return the message: one sentence on standard error, nothing on standard output."""
    result = run("compare", *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert len(result.stderr.splitlines()) == 1
    return result.stderr.removeprefix("Error: ").rstrip("\n")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), size=100)
    labels = (rng.random((100, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    sharp = probs**4 / (probs**4).sum(axis=1, keepdims=True)
    return probs, sharp, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("models")
    probs, sharp, labels = data
    names = np.array(CLASSES)[labels]

    def write(name, table, truth=names, label="label", columns=CLASSES):
        pd.DataFrame(table, columns=columns).assign(**{label: truth}).to_csv(folder / name, index=False)

    write("good.csv", probs)
    write("sharp.csv", sharp)
    write("prefixed.csv", probs, columns=[f"p_{name}" for name in CLASSES])
    write("swapped.csv", sharp[:, [2, 0, 1]], columns=["cat", "ant", "bee"])
    write(
        "other.csv", sharp, columns=["ant", "bee", "dog"], truth=np.where(names == "cat", "dog", names)
    )
    write("verdict.csv", probs, label="verdict")
    write("verdict_sharp.csv", sharp, label="verdict")
    write("shuffled.csv", sharp, truth=names[::-1])
    pd.read_csv(folder / "sharp.csv")[:90].to_csv(folder / "short.csv", index=False)
    pd.read_csv(folder / "sharp.csv").assign(run=7).to_csv(folder / "extra.csv", index=False)
    np.savez(folder / "arrays.npz", probs=sharp, labels=labels)
    (folder / "again").mkdir()
    write("again/good.csv", sharp)
    return folder


def test_the_output_is_the_summary(folder, data):
    labels = data[2]
    result = run("compare", folder / "good.csv", folder / "sharp.csv", *QUICK)
    assert (result.exit_code, result.stderr) == (0, "")
    models = {
        name: pd.read_csv(folder / f"{name}.csv", usecols=CLASSES).to_numpy()
        for name in ("good", "sharp")
    }
    expected = caltest.compare(models, labels, "skce_uq")
    assert result.stdout == expected.summary().replace("caltest.audit", "caltest audit") + "\n"


def test_json(folder):
    files = [folder / "sharp.csv", folder / "good.csv"]
    printed = strict_json(run("compare", *files, *QUICK, "--json").stdout)
    assert printed["files"] == {"sharp": str(files[0]), "good": str(files[1])}
    assert printed["example"] is None
    assert printed["names"] == ["sharp", "good"]
    assert printed["statistic"] == "skce_uq"


def test_options_reach_the_comparison(folder, tmp_path, data):
    files = []
    for name in ("verdict", "verdict_sharp"):
        table = pd.read_csv(folder / f"{name}.csv").assign(ward=np.arange(100) % 2, day=np.arange(100))
        files.append(tmp_path / f"{name}.csv")
        table.to_csv(files[-1], index=False)
    options = ("--label", "verdict", "--lens", "top_label", "--statistic", "ece", "--group", "ward")
    more = ("--clusters", "day", "--intersections", "1", "--sampling-rate", "ant=0.5", "--json")
    printed = strict_json(run("compare", *files, *options, *more).stdout)
    assert (printed["statistic"], printed["lens"]) == ("ece", "top_label")
    assert (printed["n_clusters"], printed["sampling_rates"]) == (100, {"ant": 0.5})
    assert printed["errors"][2]["group"]["conditions"] == [
        {"column": "ward", "value": "0", "relation": "="}
    ]


def test_columns(folder):
    files = [folder / "good.csv", folder / "extra.csv"]
    named = run("compare", *files, *QUICK, "--columns", "ant, bee, cat", "--json")
    assert strict_json(named.stdout)["n_classes"] == 3
    assert "run" in fails(*files, *QUICK)


@pytest.mark.parametrize("other", ["swapped.csv", "arrays.npz"])
def test_columns_are_brought_into_one_order(folder, other):
    plain, mixed = (
        strict_json(run("compare", folder / "good.csv", folder / name, *QUICK, "--json").stdout)
        for name in ("sharp.csv", other)
    )
    assert mixed["values"] == pytest.approx(plain["values"], rel=1e-9)
    assert mixed["errors"][1]["absolute"] == pytest.approx(plain["errors"][1]["absolute"])


def test_a_shared_prefix_does_not_matter(folder):
    result = run("compare", folder / "good.csv", folder / "prefixed.csv", *QUICK, "--json")
    assert strict_json(result.stdout)["gaps"][0]["brier"] == [0.0, 0.0, 0.0]


def test_equal_stems_are_called_by_their_paths(folder):
    one, two = folder / "good.csv", folder / "again" / "good.csv"
    printed = strict_json(run("compare", one, two, folder / "sharp.csv", *QUICK, "--json").stdout)
    assert printed["names"] == [str(one), str(two), "sharp"]


@pytest.mark.slow
def test_example():
    result = run("compare", "--example", "digits", *QUICK, "--json")
    printed = strict_json(result.stdout)
    assert (result.exit_code, printed["example"], printed["files"]) == (0, "digits", None)
    assert printed["names"] == list(digits_models())
    digits = load_digits_predictions("naive_bayes")
    value = caltest.estimate(digits.probs, digits.labels)
    assert printed["values"][-1] == pytest.approx(value, rel=1e-12)


def test_columns_of_one_file_are_models_of_two_classes(folder):
    risk = np.linspace(0.05, 0.95, 200)
    table = pd.DataFrame(
        {"before": risk**2, "after": risk, "y": (np.arange(200) * 83 % 200 < 200 * risk)}
    )
    table.to_csv(folder / "both.csv", index=False)
    result = run("compare", folder / "both.csv", "--columns", "before,after", *QUICK, "--json")
    printed = strict_json(result.stdout)
    assert (result.exit_code, printed["names"]) == (0, ["before", "after"])
    models = {name: table[name].to_numpy() for name in ("before", "after")}
    found = caltest.compare(models, table["y"].to_numpy().astype(int), "skce_uq")
    assert printed["values"] == pytest.approx(found.values.tolist())
    message = fails(folder / "both.csv", "--columns", "before,nobody")
    assert "there is no column 'nobody' of probabilities" in message


# --- what is wrong


def test_too_few_files(folder):
    assert fails().startswith("there are no files to compare; give two or more, or one with a column")
    assert fails(folder / "good.csv").startswith("there is one file to compare")
    assert "is given twice" in fails(folder / "good.csv", folder / "good.csv")


def test_labels_must_agree(folder):
    good, shuffled = folder / "good.csv", folder / "shuffled.csv"
    one, two = (pd.read_csv(file)["label"] for file in (good, shuffled))
    row = int(np.flatnonzero(one != two)[0])
    assert fails(good, folder / "sharp.csv", shuffled, *QUICK) == (
        f"the outcomes of {good} and {shuffled} differ, the first in row {row} (counting from 0); give "
        "files of the same rows in the same order."
    )


def test_rows_and_classes_must_agree(folder):
    message = fails(folder / "good.csv", folder / "short.csv", *QUICK)
    assert "good.csv has 100 rows of 3 classes" in message
    assert "short.csv 90 of 3" in message
    assert "those of" in fails(folder / "good.csv", folder / "other.csv", *QUICK)


def test_wrong_options(folder):
    files = [folder / "good.csv", folder / "sharp.csv"]
    assert "did you mean 'ckce'" in fails(*files, "--statistic", "ckse")
    assert "top_label" in fails(*files, "--lens", "top_lable")
    assert "--intersections is 0" in fails(*files, "--intersections", "0")
    assert "missing.csv" in fails(files[0], folder / "missing.csv")
    assert "both FILE" in fails(*files, "--example", "digits")
    assert "--label is for a file, and --example is given" in fails(
        "--example", "digits", "--label", "y"
    )
    assert "did you mean 'digits'" in fails("--example", "digit")
