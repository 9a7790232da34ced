"""Weights in files: whole, a block at a time, and by the commands."""

import json

import numpy as np
import pandas as pd
import pytest
from support import command as run
from support import dirichlet, labels_from, some_fast

import caltest
from caltest import InputError, testing
from caltest.files import read, read_with_groups, scan
from caltest.predictive import Survival

PROBS = dirichlet(5000, 3, 2)
LABELS = labels_from(PROBS, np.random.default_rng(3))
WEIGHTS = np.random.default_rng(4).exponential(size=5000)
NAMES = ["cat", "dog", "eel"]


def written(folder, rows=5000, kind="csv", weights=WEIGHTS):
    frame = pd.DataFrame(PROBS[:rows], columns=NAMES)
    frame["label"] = np.array(NAMES)[LABELS[:rows]]
    frame["survey"] = weights[:rows]
    path = folder / f"rows.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_gives_the_weights_of_its_rows(kind, tmp_path):
    path = written(tmp_path, 60, kind)
    expected = WEIGHTS[:60] / WEIGHTS[:60].mean()
    found = read(path, weights="survey")
    assert found.rows.classes == tuple(NAMES)
    assert found.rows.weights == pytest.approx(expected)
    found, _ = read_with_groups(path, weights="survey")
    assert found.rows.weights == pytest.approx(expected)
    assert scan(path, weights="survey").load().rows.weights == pytest.approx(expected)


def test_an_archive_of_arrays(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, probs=PROBS[:60], labels=LABELS[:60], survey=WEIGHTS[:60])
    assert read(path, weights="survey").rows.weights == pytest.approx(
        WEIGHTS[:60] / WEIGHTS[:60].mean()
    )
    np.save(tmp_path / "rows.npy", np.column_stack([PROBS[:60], LABELS[:60]]))
    with pytest.raises(InputError, match="no column 'survey'"):
        read(tmp_path / "rows.npy", -1, weights="survey")


@pytest.mark.slow
@pytest.mark.parametrize("statistic", some_fast(["omnibus", "kuiper", "ucme", "ace"], "kuiper", "ucme"))
def test_what_is_fitted_to_a_glimpse(statistic, tmp_path, monkeypatch):
    path = written(tmp_path, 5000, "parquet")
    whole = caltest.test(PROBS, LABELS, statistic, weights=WEIGHTS, n_resamples=39, rng=5)
    monkeypatch.setattr(testing, "HELD_UP_TO", 4000)
    monkeypatch.setattr("caltest.forms.kernel_matrices.HELD_UP_TO", 4000)
    read = caltest.test(scan(path, weights="survey"), None, statistic, n_resamples=39, rng=5)
    if statistic != "omnibus":
        assert read.statistic == pytest.approx(whole.statistic, rel=0.1)
    else:
        for one, other in zip(read.parts, whole.parts, strict=True):
            assert one.value == pytest.approx(other.value, rel=0.2, abs=3e-5)
    assert read.pvalue == pytest.approx(whole.pvalue, abs=0.25)


def test_equal_weights_of_a_file_change_nothing(tmp_path, monkeypatch):
    path = written(tmp_path, 5000, "parquet", np.full(5000, 3.0))
    monkeypatch.setattr(testing, "HELD_UP_TO", 4000)
    plain = caltest.test(scan(path, columns=NAMES), None, "brier", n_resamples=9, rng=0)
    equal = caltest.test(
        scan(path, columns=NAMES, weights="survey"), None, "brier", n_resamples=9, rng=0
    )
    assert equal.statistic == plain.statistic
    assert equal.parameters == plain.parameters


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1e308, 1e160, 1e-160, 5e-320])
@pytest.mark.parametrize("statistic", ["citl", "ecd"])
def test_weights_of_a_file_may_be_any_numbers(statistic, largest, tmp_path, monkeypatch):
    """The largest come last, so that sums so far are scaled anew."""
    weights = WEIGHTS / WEIGHTS.max()
    weights = np.where(np.arange(5000) < 2000, weights * 1e-3, weights) * largest
    path = written(tmp_path, 5000, "parquet", weights)
    held = caltest.estimate(PROBS, LABELS, statistic, weights=weights)
    monkeypatch.setattr(testing, "HELD_UP_TO", 4000)
    found = caltest.test(scan(path, weights="survey"), None, statistic, n_resamples=9, rng=0)
    near = 1e-2 if largest < 1e-300 else 1e-9
    assert found.statistic == pytest.approx(held, rel=near)


def test_a_row_of_weight_0_may_be_impossible(tmp_path, monkeypatch):
    probs, labels, weights = PROBS.copy(), LABELS.copy(), WEIGHTS.copy()
    probs[7], labels[7], weights[7] = [0.0, 0.5, 0.5], 0, 0.0
    frame = pd.DataFrame(probs, columns=NAMES)
    frame["label"], frame["w"] = np.array(NAMES)[labels], weights
    frame.to_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr(testing, "HELD_UP_TO", 4000)
    stored = scan(tmp_path / "rows.parquet", weights="w")
    found = caltest.test(stored, None, "ecd", n_resamples=9, rng=0)
    assert found.statistic == pytest.approx(caltest.estimate(probs, labels, "ecd", weights=weights))
    assert not any("probability 0" in note for note in found.warnings)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_times_of_rows_that_do_not_count(weight, tmp_path):
    """Events at the times of the curves alone, but for one row: steps are refused where it counts."""
    curves = np.tile([0.8, 0.5, 0.2], (40, 1))
    frame = pd.DataFrame(curves, columns=["s1", "s2", "s3"])
    frame = frame.assign(time=np.arange(40) % 3 + 1.0, event=1, w=1.0)
    frame.loc[7, ["time", "w"]] = 1.5, weight
    frame.to_csv(tmp_path / "rows.csv", index=False)
    states = {"survival": "s*", "event": "event"}
    found = read(tmp_path / "rows.csv", "time", columns=states, weights="w")
    law = Survival(curves, [1.0, 2.0, 3.0])
    pair = [frame.time, frame.event]
    expected, got = (
        caltest.test(rows, outcomes, "pit_ad", weights=own, n_resamples=19, rng=1).pvalue
        for rows, outcomes, own in (
            (law, np.column_stack(pair), frame.w),
            (found.rows, found.labels, None),
        )
    )
    assert got == expected


def test_the_commands(tmp_path):
    path = written(tmp_path, 60)
    options = ("--resamples", 199, "--seed", 0, "--jobs", 1, "--json")
    found = run("test", path, "--weights", "survey", "--statistic", "brier", *options)
    expected = caltest.test(
        PROBS[:60], LABELS[:60], "brier", weights=WEIGHTS[:60], n_resamples=199, rng=0
    )
    result = json.loads(found.stdout)
    assert result["statistic"] == pytest.approx(expected.statistic)
    assert result["parameters"]["effective_n"] == pytest.approx(expected.parameters["effective_n"])
    value = run("estimate", path, "--weights", "survey", "--statistic", "brier", "--json")
    assert json.loads(value.stdout)["statistic"] == pytest.approx(expected.statistic)
    other = run("estimate", "--example", "digits:naive_bayes", "--weights", "survey")
    assert other.exit_code == 2
    assert "--weights is for a file" in other.output


def test_sampling_rates_of_the_commands(tmp_path):
    path = written(tmp_path, 60)
    rest = ("--columns", "cat,dog,eel", "--statistic", "brier")
    rates = ("--sampling-rate", "cat=0.5", "--sampling-rate", "eel=0.1")
    expected = caltest.estimate(PROBS[:60], LABELS[:60], "brier", sampling_rates={0: 0.5, 2: 0.1})
    value = json.loads(run("estimate", path, *rest, *rates, "--json").stdout)
    assert value["statistic"] == pytest.approx(expected)
    shown = run("test", path, *rest, *rates, "--resamples", 199, "--seed", 0, "--jobs", 1)
    assert "kept" in shown.stdout
    for wrong, says in {
        "cat": "--sampling-rate is 'cat'; give a class and its rate",
        "cow=0.1": "for 'cow', which is not a class",
        "cat=2": "above 0 and at most 1",
    }.items():
        found = run("test", path, *rest, "--sampling-rate", wrong)
        assert found.exit_code == 2
        assert says in " ".join(found.output.split())


def test_models_of_files_are_compared(tmp_path):
    first = written(tmp_path, 60)
    frame = pd.read_csv(first)
    frame[NAMES] = 0.5 * frame[NAMES] + 0.5 / 3
    second = tmp_path / "flat.csv"
    frame.to_csv(second, index=False)
    options = ("--statistic", "brier", "--json")
    found = json.loads(run("compare", first, second, "--weights", "survey", *options).stdout)
    models = {"rows": PROBS[:60], "flat": 0.5 * PROBS[:60] + 0.5 / 3}
    expected = caltest.compare(models, LABELS[:60], "brier", weights=WEIGHTS[:60])
    assert found["values"] == pytest.approx(expected.values)
    frame["survey"] = frame["survey"][::-1].to_numpy()
    frame.to_csv(second, index=False)
    other = run("compare", first, second, "--weights", "survey", *options)
    assert other.exit_code == 2
    assert "different weights of rows" in " ".join(other.output.split())
