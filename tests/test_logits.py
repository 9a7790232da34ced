"""Logits in place of probabilities, in Python, in files and on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from support import command as invoke

import caltest
from caltest import InputError
from caltest.data import sample
from caltest.files import read, read_with_groups, scan
from caltest.predictive import GaussianPredictions

NAMES = ["ant", "bee", "cat"]
FAST = {"n_resamples": 99, "rng": 0}


def drawn(rows=400, seed=0):
    """Return logits of three classes, and labels of the model that they are of."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(rows, 3))
    below = softmax(logits, axis=1).cumsum(axis=1)[:, :-1]
    return logits, (rng.random((rows, 1)) > below).sum(axis=1)


LOGITS, LABELS = drawn(seed=2)
PROBS = softmax(LOGITS, axis=1)


def said(*arguments, **options):
    with pytest.raises(InputError) as caught:
        caltest.test(*arguments, logits=True, **options)
    return str(caught.value)


def test_a_column_beside_probabilities_is_no_logit():
    beside = pd.DataFrame({"sample": np.arange(400) % 5, "risk": PROBS[:, 0]})
    with pytest.raises(InputError, match=r"beside column 'risk': row 2 .* column 'sample' is 2"):
        caltest.test(beside, LABELS == 0)


# ------------------------------------------------------------------ what is read


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_the_softmax_is_taken_in_double_precision(kind):
    given = LOGITS.astype(kind)
    rows = sample(given, LABELS, logits=True).rows
    assert rows.probs == pytest.approx(softmax(given.astype(np.float64), axis=1), rel=1e-14)
    assert rows.notes == ("Logits, made probabilities by softmax.",)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_column_is_of_class_1_and_keeps_small_probabilities(shape):
    given = np.array([-700.0, -60.0, -1.0, 0.0, 3.0, 60.0])
    rows = sample(given.reshape(shape), [0, 0, 0, 1, 1, 1], logits=True).rows
    assert rows.probs[:, 1] == pytest.approx(expit(given), rel=1e-14, abs=0.0)
    assert rows.probs[:, 0] == pytest.approx(expit(-given), rel=1e-14, abs=0.0)
    assert rows.classes is None
    named = sample(
        given.reshape(shape), ["no"] * 3 + ["yes"] * 3, class_names=["no", "yes"], logits=True
    )
    assert named.rows.classes == ("no", "yes")


@pytest.mark.slow
def test_numbers_are_those_of_the_softmax():
    both = [(PROBS, {}), (pd.DataFrame(LOGITS, columns=NAMES), {"logits": True})]
    labels = np.array(NAMES)[LABELS]
    classes = [{"class_names": NAMES, **options} for _, options in both]
    for call in (
        lambda p, o: caltest.test(p, labels, **o, **FAST).pvalue,
        lambda p, o: caltest.estimate(p, labels, "ece", lens="top_label", **o),
        lambda p, o: caltest.audit(p, labels, **o, **FAST).pvalue,
        lambda p, o: caltest.assert_calibrated(p, labels, **o, **FAST).pvalue,
        lambda p, o: caltest.compare({"a": p, "b": p}, labels, **o).errors[0].log_loss,
    ):
        one, other = (call(probs, own) for (probs, _), own in zip(both, classes, strict=True))
        assert one == pytest.approx(other, rel=1e-9)
    assert "logits=True" in caltest.audit(LOGITS, LABELS, logits=True, **FAST).call


def test_a_class_may_be_ruled_out():
    given = LOGITS.copy()
    given[LABELS != 0, 0] = -np.inf
    rows = sample(given, LABELS, logits=True).rows
    assert (rows.probs[LABELS != 0, 0] == 0.0).all()
    assert not len(rows.impossible(LABELS))


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_named(value):
    given = LOGITS.copy()
    given[[5, 7], 1] = value
    text = said(given, LABELS)
    assert text.startswith("probs has entries that are not finite, in 2 of 400 rows: row 5 (")
    assert f"column 1 is {value}" in text
    with pytest.raises(InputError, match="row 5"):
        caltest.test(given[:, 1], LABELS > 0, logits=True)


def test_where_nothing_is_finite():
    given = LOGITS.copy()
    given[3] = -np.inf
    assert "row 3 (counting from 0), column 0 is -inf" in said(given, LABELS)
    assert "row 3 (counting from 0) is -inf" in said(given[:, 0], LABELS > 0)


def test_what_is_no_logit():
    assert (
        said(PROBS, LABELS)
        == "probs holds probabilities, as every row sums to 1; leave out logits=True."
    )
    assert "rounding and logits=True do not go together" in said(
        LOGITS, LABELS, rounding=0.05, lens="top_label"
    )
    assert "give logits=True to what read it" in said(sample(PROBS, LABELS).rows, LABELS)
    normal = GaussianPredictions(np.zeros(20), np.ones(20))
    assert said(normal, np.zeros(20)).startswith("logits is about probabilities of classes")
    assert said(LOGITS, LABELS, null="moments", n_resamples=True).startswith("n_resamples is True")
    with pytest.raises(InputError, match="logits is 'yes'; give True or False"):
        caltest.test(LOGITS, LABELS, logits="yes")


def test_who_takes_none_takes_rows_that_were_read():
    rows = sample(LOGITS, LABELS, logits=True).rows
    assert caltest.certificate(rows, LABELS).to_dict()["n_samples"] == 400


# ------------------------------------------------------------------ files


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the logits in files of every kind, and a model's logits of class 1."""
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(LOGITS, columns=NAMES).assign(label=np.array(NAMES)[LABELS])
    table.to_csv("n.csv", index=False)
    table.to_parquet("n.parquet")
    np.savez("n.npz", test_logits=LOGITS, probs=PROBS[:, :2], labels=LABELS)
    np.save("n.npy", np.column_stack([LOGITS, LABELS]))
    return tmp_path


FILES = {"n.csv": {}, "n.parquet": {}, "n.npz": {}, "n.npy": {"label": "3"}}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("here")
def test_files_of_every_kind(name):
    for reader in (read, lambda *a, **o: read_with_groups(*a, **o)[0]):
        found = reader(name, logits=True, **FILES[name])
        assert found.rows.probs == pytest.approx(PROBS, rel=1e-12)
        assert found.labels.tolist() == LABELS.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FILES if name != "n.npz"])
@pytest.mark.usefixtures("here")
def test_files_that_are_read_a_block_at_a_time(name):
    stored = scan(name, logits=True, **FILES[name])
    (block,) = stored.samples()
    assert block.rows.probs == pytest.approx(PROBS, rel=1e-12)
    assert stored.load().rows.probs == pytest.approx(PROBS, rel=1e-12)
    assert caltest.test(stored, rng=0).pvalue == caltest.test(PROBS, LABELS, rng=0).pvalue
    assert "was opened already; leave logits out" in said(stored)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_one_pass_over_many_rows():
    logits, labels = drawn(30_000)
    expected = caltest.test(softmax(logits, axis=1), labels, "ecd", **FAST).pvalue
    np.save("long.npy", np.column_stack([logits, labels]))
    assert caltest.test(scan("long.npy", "3", logits=True), statistic="ecd", **FAST).pvalue == expected
    np.save("logits.npy", logits)
    mapped = np.load("logits.npy", mmap_mode="r")
    assert caltest.test(mapped, labels, "ecd", logits=True, n_jobs=2, **FAST).pvalue == expected


# ------------------------------------------------------------------ the command line


def run(*arguments):
    return invoke(*arguments)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_every_command_that_reads_predictions():
    quick = ("--seed", "1", "--jobs", "1")
    for command in (
        ("test", "n.npz", *quick, "--resamples", "99"),
        ("test", "n.npy", "--label", "3", *quick, "--resamples", "99"),
        ("estimate", "n.csv", "--statistic", "brier"),
        ("audit", "n.parquet", *quick, "--resamples", "99"),
        ("compare", "n.csv", "n.parquet"),
        ("bounds", "n.csv", "--lens", "top_label", *quick, "--resamples", "99"),
        ("estimate-error", "n.csv", "--functions", "binning", "--lens", "top_label", *quick),
        ("power", "n.csv", "--n", "60", "--temperature", "0.5", "--datasets", "10", *quick),
    ):
        done = run(*command, "--logits")
        assert done.exit_code in (0, 1), command
        assert done.stderr in ("", "Note: Logits, made probabilities by softmax.\n"), command
        if command[1] != "n.npz":  # it has probs, too
            done = run(*command)
            assert done.exit_code == 2, command
            assert "give --logits" in done.stderr, command


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_command_that_repeats_an_audit_says_so():
    run("audit", "n.csv", "--logits", "--seed", "1", "--resamples", "99", "--report", "r.html")
    assert "caltest audit n.csv --logits --resamples 99 --seed 1" in Path("r.html").read_text()
    Path("c.toml").write_text("logits = true\nresamples = 99\n")
    done = run("audit", "n.csv", "--config", "c.toml", "--seed", "1", "--json", "-")
    assert json.loads(done.stdout)["n_samples"] == 400
    assert "logits is True (by default False)" in done.stderr


def test_examples_hold_probabilities():
    for command in (("audit", "--example", "digits:naive_bayes"), ("compare", "--example", "digits")):
        done = run(*command, "--logits")
        assert "--logits is for a file" in done.stderr
        assert done.exit_code == 2
