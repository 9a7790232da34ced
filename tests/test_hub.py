"""Long tables of forecast hubs: a row a task, whatever the output type, with what was observed."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import ran as run
from support import sentence

import caltest
from caltest import InputError
from caltest.cli._commands import command_line
from caltest.files import read, read_with_groups
from caltest.predictive import Members, Quantiles

DOORS = Path(__file__).parent / "doors"
REFERENCE = os.environ.get("CALTEST_REFERENCE_DATA")
LONG = pd.read_csv(DOORS / "hub.csv", dtype={"location": str, "output_type_id": str})
TRUTH = pd.read_csv(DOORS / "truth.csv", dtype={"location": str})
TASK = ["reference_date", "location", "horizon"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("hub.csv", "truth.csv", "oracle.csv"):
        shutil.copy(DOORS / name, name)


def of(kind, target, outcome="observation"):
    """Return, by hand, values and outcomes of the tasks that have a truth, ordered by task."""
    own = LONG[LONG["output_type"] == kind].sort_values(TASK, kind="stable")
    known = TRUTH[TRUTH["target"] == target].set_index(TASK)[outcome]
    found = [
        (each["value"].to_numpy(), known[task])
        for task, each in own.groupby(TASK, sort=True)
        if task in known.index
    ]
    return np.array([values for values, _ in found]), [each for _, each in found]


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["truth.csv", "oracle.csv"])
def test_quantiles_and_samples(truth):
    values, outcomes = of("quantile", "inc hosp")
    found = read("hub.csv", truth=truth, where={"output_type": "quantile"})
    assert found.rows.law.levels.tolist() == [0.025, 0.25, 0.5, 0.75, 0.975]
    np.testing.assert_array_equal(found.rows.law.values, values)
    np.testing.assert_array_equal(found.labels, np.array(outcomes, dtype=float))
    assert found.rows.notes[0].startswith("Left out for want of truth: 1 of 20 tasks (reference_date 2")
    values, outcomes = of("sample", "inc hosp")
    found = read("hub.csv", truth=truth, where={"output_type": "sample"}, clusters="location")
    np.testing.assert_array_equal(found.rows.law.values, values)
    assert found.rows.clusters.max() == 4
    assert isinstance(found.rows.law, Members)


@pytest.mark.parametrize("truth", ["truth.csv", "oracle.csv"])
def test_categories(truth):
    values, outcomes = of("pmf", "hosp category")
    found = read("hub.csv", truth=truth, where={"output_type": "pmf"})
    assert found.rows.classes == ("low", "middle", "high")
    np.testing.assert_allclose(found.rows.probs, values, atol=1e-9)
    assert [found.rows.classes[k] for k in found.labels] == outcomes


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["truth.csv", "oracle.csv"])
def test_a_cdf_is_one_of_the_thresholds(truth):
    values, outcomes = of("cdf", "hosp rate")
    found = read("hub.csv", truth=truth, where={"output_type": "cdf"})
    raised = np.array([5.0, 10.0, 15.0, 20.0])
    expected = [raised[raised >= min(float(y), 20.0)].min() for y in outcomes]
    law = found.rows.law
    np.testing.assert_array_equal(law.outcomes(found.labels), law.outcomes(expected))
    below, upto = law.cdf(np.full(19, 10.0))
    np.testing.assert_allclose((below, upto), values[:, :2].T, atol=1e-12)
    np.testing.assert_array_equal(law.cdf(np.full(19, 4.0))[1], 0.0)
    np.testing.assert_array_equal(law.cdf(np.full(19, 20.0))[1], 1.0)
    steps = np.diff(np.column_stack([np.zeros(19), values, np.ones(19)]))
    mean, variance = law.mean_and_variance()
    np.testing.assert_allclose(mean, steps @ raised)
    np.testing.assert_allclose(variance, steps @ raised**2 - mean**2)
    assert caltest.test(found.rows, found.labels, rng=1).pvalue > 0.001


@pytest.mark.slow
def test_the_command_line():
    where = ["--where", "output_type=sample", "--seed", 1, "--json"]
    sample = read("hub.csv", truth="truth.csv", where={"output_type": "sample"})
    expected = caltest.test(sample.rows, sample.labels, rng=1).pvalue
    found = json.loads(run("test", "hub.csv", "--truth", "truth.csv", *where).stdout)
    assert found["pvalue"] == expected
    groups = ["--group", "location", "--min-rows", 3, "--resamples", 199, *where[:-1], "--json", "-"]
    asked = {"truth": "truth.csv", "where": {"output_type": "sample"}, "groups": ["location"]}
    again, frame = read_with_groups("hub.csv", **asked)
    assert frame["location"].tolist()[0] == "01"
    options = {"groups": frame, "min_rows": 3, "n_resamples": 199, "rng": 1}
    expected = caltest.audit(again.rows, again.labels, **options)
    found = json.loads(run("audit", "hub.csv", "--truth", "truth.csv", *groups).stdout)
    assert found["pvalue"] == expected.pvalue
    asked = {"truth": "truth.csv", "where": ("output_type=sample", "target=inc hosp"), "seed": 1}
    repeated = "--truth truth.csv --where output_type=sample --where 'target=inc hosp' --seed 1"
    assert command_line("audit", "hub.csv", asked) == f"caltest audit hub.csv {repeated}"
    LONG.assign(model_id="wide").to_parquet("wide.parquet")
    files = ["hub.csv", "wide.parquet", "--truth", "truth.csv"]
    assert "wide" in run("compare", *files, "--where", "output_type=sample").stdout


def test_types_of_keys_do_not_matter():
    TRUTH.assign(
        reference_date=pd.to_datetime(TRUTH["reference_date"]), horizon=TRUTH["horizon"].astype(float)
    ).to_parquet("truth.parquet")
    where = {"output_type": "quantile"}
    one, other = (read("hub.csv", truth=each, where=where) for each in ("truth.csv", "truth.parquet"))
    np.testing.assert_array_equal(one.labels, other.labels)
    shuffled = LONG.sample(frac=1.0, random_state=0)
    shuffled[shuffled["output_type"] == "quantile"].to_csv("quantiles.csv", index=False)
    other = read("quantiles.csv", truth="truth.csv")
    np.testing.assert_array_equal(one.rows.law.values, other.rows.law.values)


@pytest.mark.parametrize(
    ("row", "column", "cell", "said"),
    [
        (3, "value", "many", "long: column 'value' holds 'many' in {row}, which is not a number"),
        (130, "value", "?", "long: column 'value' holds '?' in {row}, which is not a number; corr"),
        (13, "value", 2.0, "long: the cdf of the task that begins in {first} is "),
        (14, "value", 0.0, "long: the cdf of the task that begins in {first} is 0 at 15; give"),
        (14, "output_type_id", "10", "long: output '10' of a task is stated in {row} again; keep one"),
        (138, "output_type_id", "x", "long: column 'output_type_id' holds 'x' in {row}, which is not"),
    ],
)
def test_rows_are_those_of_the_file_after_a_pick_and_the_pivot(row, column, cell, said):
    """In a folder of two files, of a type that is picked, whose tasks become rows."""
    long = LONG.astype({column: object})
    kind = "cdf" if column == "output_type_id" or cell in (0.0, 2.0) else LONG.output_type[row]
    start = {13: 12, 14: 12}.get(row, row)
    long.loc[row, column] = cell
    Path("long").mkdir()
    long[:100].to_csv("long/a.csv", index=False)
    long[100:].to_csv("long/b.csv", index=False)
    names = {
        each: f"row {each % 100} (counting from 0) of {'ab'[each // 100]}.csv" for each in (row, start)
    }
    with pytest.raises(InputError) as wrong:
        read("long", truth="truth.csv", where={"output_type": kind})
    assert str(wrong.value).startswith(said.format(row=names[row], first=names[start]))


def changed(**columns):
    LONG.assign(**columns).to_csv("changed.csv", index=False)
    return "changed.csv"


WRONG = {
    "types": ("hub.csv", {}, {}, "'output_type' holds 'quantile', 'sample', 'cdf', 'pmf'; choose"),
    "no such type": ("hub.csv", {}, {"output_type": "x"}, "column 'output_type' holds .*, and 'x' in"),
    "a point": ("hub.csv", {}, {"output_type": "median"}, "output type 'median' states no distribut"),
    "column": (
        "hub.csv", {}, {"outputtype": "x"}, "no column 'outputtype' .did you mean 'output_type'",
    ),
    "columns": ("hub.csv", {"columns": {"members": "s"}}, {}, "truth is for a hub's long table, which"),
    "group": (
        "hub.csv",
        {"groups": ["region"]},
        {"output_type": "pmf"},
        "is no column 'region' .did you mean",
    ),
    "label": ("hub.csv", {"label": "seen"}, {"output_type": "pmf"}, "there is no column 'seen' of the"),
    "no table": ("truth.csv", {}, {}, "there is no column 'output_type' of a hub's long table"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "more", "where", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_a_sentence(path, more, where, said):
    sentence(lambda: read(path, truth="truth.csv", where=where, **more), said)


@pytest.mark.slow
def test_wrong_tables_are_sentences():
    def fails(long, truth=TRUTH, kind="quantile", **more):
        long.to_csv("long.csv", index=False)
        truth.to_csv("known.csv", index=False)
        with pytest.raises(InputError) as wrong:
            read("long.csv", truth="known.csv", where={"output_type": kind}, **more)
        return str(wrong.value)

    two = pd.concat([LONG.assign(model_id="a"), LONG.assign(model_id="b")])
    text = LONG.assign(value=LONG["value"].astype(str).where(LONG.index != 3, "many"))
    spoilt = TRUTH.astype({"observation": object})
    spoilt.loc[4, "observation"] = "many"
    falling = LONG.assign(value=LONG["value"].where(LONG["output_type_id"] != "15", 0.0))
    alone, (cdf, sample) = TRUTH[:1].filter(["observation"]), ({"kind": x} for x in ("cdf", "sample"))
    for said, long, truth, more in (
        ("column 'model_id' holds 'a', 'b'; choose one, with where={'model_id': 'a'}", two, TRUTH, {}),
        ("is stated in row 360 (counting from 0) again", pd.concat([LONG, LONG[:1]]), TRUTH, {}),
        ("column 'value' holds 'many' in row 3 (counting from 0), which is not a", text, TRUTH, {}),
        ("states no distribution that can be read; give quantile, sample, cdf or pmf",
            LONG[:1].assign(output_type="density"), TRUTH, {"kind": "density"}),
        ("no column of the truth ('observation') is one of the tasks'", LONG, alone, {}),
        ("no column of the truth is called observation or oracle_value",
            LONG, TRUTH.rename(columns={"observation": "seen"}), {}),
        ("long.csv: known.csv: the truth of row 57 (counting from 0) is of the same",
            LONG, pd.concat([TRUTH, TRUTH[:1]]), {}),
        ("there is no truth of any task, such as reference_date 2024-11-02, location 01",
            LONG, TRUTH.assign(horizon=9), {}),
        ("known.csv: column 'observation' holds 'many' in row 4 (counting from 0)", LONG, spoilt, cdf),
        ("cdf of the task that begins in row 12 (counting from 0) is 0 at 15", falling, TRUTH, cdf),
        ("has one draw; take out what names every draw", LONG.reset_index(), TRUTH, sample),
        ("have one name ('observation'); rename one", LONG.assign(observation=1), TRUTH, sample),
        ("have one name ('location'); rename one", LONG, TRUTH, {**sample, "label": "location"}),
        ("column 'location' holds 'US' in row 150", LONG, TRUTH, {**sample, "weights": "location"}),
    ):  # fmt: skip
        assert said in fails(long, truth, **more)
    with pytest.raises(InputError, match=r"where=? picks rows of a hub's long table; give its"):
        read("hub.csv", where={"output_type": "pmf"})
    assert "no such file" in run("test", "hub.csv", "--truth", "none.csv", code=(2,)).stderr
    asked = ("test", "hub.csv", "--truth", "truth.csv", "--where")
    assert (
        "is 'x'; give a column and its value, as in target=rain." in run(*asked, "x", code=(2,)).stderr
    )
    twice = run(*asked, "location=01", "--where", "location=02", code=(2,)).stderr
    assert "--where gives column 'location' twice; give it once." in twice
    sample = {"output_type": "sample"}
    found = read("hub.csv", truth="truth.csv", where=sample, weights="horizon", groups="location")
    assert np.unique(found.rows.weights).tolist() == [0.0, 1.0]  # horizons
    assert "--truth is for a file, and --example is given" in (
        run("test", "--example", "digits:naive_bayes", "--truth", "truth.csv", code=(2,)).stderr
    )


@pytest.mark.slow
@pytest.mark.skipif(REFERENCE is None, reason="CALTEST_REFERENCE_DATA names no folder of hub files")
def test_a_real_hub():
    names = ("long_2022-12-17.csv", "samples_2022-12-17.parquet")
    long, wide = (f"{REFERENCE}/hub_{name}" for name in names)
    whole = read(wide, "observation", columns={"members": "sample_"})
    values, outcomes = whole.rows.law.values, whole.labels[:, None]
    assert values.shape == (212, 100)
    assert ((values < outcomes).sum(), (values == outcomes).sum()) == (11_011, 122)
    kinds = ("sample", "quantile")
    states = {kind: read(long, truth=wide, where={"output_type": kind}) for kind in kinds}
    sampled, stated = states["sample"].rows.law, states["quantile"].rows.law
    np.testing.assert_array_equal(states["sample"].labels, states["quantile"].labels)
    assert isinstance(stated, Quantiles)
    assert (sampled.n_samples, stated.values.shape) == (12, (12, 23))
    # Of the draws no more lie below a stated quantile than its level, and no fewer at or below it, but
    # for chance: with 100 draws of 12 tasks, 0.2 with a probability of 1% (Massart).
    draws, quantiles = sampled.values[:, :, None], stated.values[:, None, :]
    assert ((draws < quantiles).mean(axis=1) - stated.levels).max() < 0.2
    assert (stated.levels - (draws <= quantiles).mean(axis=1)).max() < 0.2
    own = {tuple(sorted(each)) for each in sampled.values.tolist()}
    assert own <= {tuple(sorted(each)) for each in values.tolist()}
    signs = [caltest.test(each.rows, each.labels, "bias", rng=1).statistic for each in states.values()]
    assert np.sign(signs[0]) == np.sign(signs[1])
