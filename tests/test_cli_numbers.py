"""Predicted distributions of numbers, from files and on the command line: the same as from Python."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import ran as run

import caltest
from caltest import InputError
from caltest.files import read, read_with_groups, scan
from caltest.predictive import Normal

MANY = 120_000  # more than are held
NUMBERS = {"mean": "forecast", "sd": "error"}
STATED = ["--label", "demand", "--mean", "forecast", "--sd", "error"]
SUFFIXES = ["csv", "parquet", "arrow", "jsonl", "npz"]


def frame(n):
    rng = np.random.default_rng(0)
    mean, sd = rng.uniform(20, 100, n), rng.uniform(5, 15, n)
    whole = {"forecast": mean, "error": sd, "demand": rng.normal(mean, 1.1 * sd)}
    quantiles = {f"q{level}": mean + z * sd for level, z in ((0.05, -1.645), (0.5, 0), (0.95, 1.645))}
    more = {"squared": sd**2, "w": rng.uniform(1, 2, n), "day": np.arange(n) // 4}
    return pd.DataFrame({**whole, **more, **quantiles, "region": rng.choice(["north", "south"], n)})


ROWS = frame(400)
PREDICTED = Normal(ROWS["forecast"], sd=ROWS["error"])


def save(rows, path):
    if path.suffix == ".csv":
        rows.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        rows.to_parquet(path)
    elif path.suffix == ".arrow":
        rows.to_feather(path)
    elif path.suffix == ".jsonl":
        rows.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        np.savez(path, **{name: np.array(rows[name].tolist()) for name in rows})
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    for suffix in SUFFIXES:
        save(ROWS, folder / f"demand.{suffix}")
    columns = {name: frame(MANY)[name] for name in ("forecast", "error", "demand", "day")}
    pq.write_table(pa.table(columns), folder / "many.parquet", row_group_size=50_000)
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def result_of(*arguments):
    return json.loads(run("test", *arguments, "--seed", 1, "--json").stdout)


def fails(*arguments):
    return run(*arguments, code=(2,)).stderr.removeprefix("Error: ").rstrip("\n")


# --- the same numbers from a file and from Python


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_test_of_a_file_is_that_of_its_columns(suffix):
    expected = caltest.test(PREDICTED, ROWS["demand"], "pit_ad", rng=1)
    found = result_of(f"demand.{suffix}", *STATED, "--statistic", "pit_ad")
    assert found["pvalue"] == expected.pvalue
    assert found["statistic"] == pytest.approx(expected.statistic, rel=1e-12)


@pytest.mark.slow
def test_the_default_and_variances():
    expected = caltest.test(PREDICTED, ROWS["demand"], rng=1)
    stated = ["--label", "demand", "--mean", "forecast", "--variance", "squared"]
    found = result_of("demand.csv", *stated)
    assert found["statistic"] == pytest.approx(expected.statistic, rel=1e-9)
    assert [part["name"] for part in found["parts"]] == [part.name for part in expected.parts]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_lenses_take_weights_and_clusters(suffix):
    more = {"weights": ROWS["w"], "clusters": ROWS["day"], "lens": "quantile:0.9"}
    expected = caltest.test(PREDICTED, ROWS["demand"], "citl", rng=1, **more)
    rows = ["--weights", "w", "--clusters", "day", "--lens", "quantile:0.9", "--statistic", "citl"]
    found = result_of(f"demand.{suffix}", *STATED, *rows)
    assert (found["statistic"], found["pvalue"]) == (expected.statistic, expected.pvalue)
    tolerant = ["--lens", "interval:0.8", "--tolerance", 0.02]
    expected = caltest.test(PREDICTED, ROWS["demand"], lens="interval:0.8", tolerance=0.02, rng=1)
    assert result_of(f"demand.{suffix}", *STATED, *tolerant)["pvalue"] == expected.pvalue


def test_an_estimate():
    found = json.loads(run("estimate", "demand.csv", *STATED, "--statistic", "crps", "--json").stdout)[
        "statistic"
    ]
    assert found == pytest.approx(caltest.estimate(PREDICTED, ROWS["demand"], "crps"), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, MANY])
def test_a_variance_given_as_standard_deviation_is_noted(tmp_path, n):
    path = save(frame(n)[["forecast", "squared", "demand"]], tmp_path / "squared.parquet")
    wrong = ["--label", "demand", "--mean", "forecast", "--sd", "squared", "--resamples", 39]
    found = result_of(path, *wrong, "--lens", "quantile:0.9", "--statistic", "citl")
    assert any("give them as variance" in note for note in found["warnings"])


@pytest.mark.slow
def test_many_rows_are_read_in_one_pass_through_a_lens():
    rows = pq.read_table("many.parquet").to_pandas()
    predicted = Normal(rows["forecast"], sd=rows["error"])
    for statistic, more in (("citl", {"lens": "quantile:0.5"}), ("bias", {})):
        how = {"rng": 1, "n_resamples": 19, **more}
        expected = caltest.test(predicted, rows["demand"], statistic, **how)
        stored = scan("many.parquet", "demand", columns=NUMBERS)
        found = caltest.test(stored, statistic=statistic, **how)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
        assert found.pvalue == expected.pvalue
        assert found.n_samples == MANY


def test_readers_return_laws():
    for found in (
        read("demand.csv", "demand", columns=NUMBERS),
        read_with_groups("demand.csv", "demand", columns=NUMBERS, groups=["region"])[0],
        scan("demand.parquet", "demand", columns=NUMBERS).load(),
    ):
        np.testing.assert_array_equal(found.labels, ROWS["demand"])
        np.testing.assert_array_equal(found.rows.law.mean, ROWS["forecast"])
    assert read_with_groups("demand.csv", columns=NUMBERS, needs_labels=False)[0].law.dimension is None


@pytest.mark.slow
@pytest.mark.parametrize("given", ["q*", "q0.05=0.05,q0.95=0.95,q0.5=0.5"])
@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_quantiles(suffix, given):
    levels = [0.05, 0.5, 0.95]
    predicted = caltest.predictive.Quantiles(levels, ROWS[[f"q{level}" for level in levels]].to_numpy())
    expected = caltest.test(predicted, ROWS["demand"], rng=1)
    found = result_of(f"demand.{suffix}", "--label", "demand", "--quantiles", given)
    assert (found["statistic"], found["pvalue"]) == (expected.statistic, expected.pvalue)


@pytest.mark.slow
def test_an_audit():
    expected = caltest.audit(PREDICTED, ROWS["demand"], groups=ROWS[["region"]], rng=1)
    options = ["--group", "region", "--seed", 1, "--json", "-"]
    found = json.loads(run("audit", "demand.parquet", *STATED, *options).stdout)
    assert found["pvalue"] == expected.pvalue


POINTS = {"mean": ["--low", -90, "--high", 210], "median": [], "quantile:0.9": [], "expectile:0.7": []}


@pytest.mark.parametrize("functional", POINTS)
def test_point_forecasts(functional):
    ends = {"low": -90.0, "high": 210.0} if POINTS[functional] else {}
    point = caltest.predictive.Point(ROWS["forecast"], functional, **ends)
    expected = caltest.test(point, ROWS["demand"], rng=1)
    how = ["--label", "demand", "--point", "forecast", "--functional", functional]
    assert result_of("demand.csv", *how, *POINTS[functional])["pvalue"] == expected.pvalue
    stated = {"point": "forecast", "functional": functional, **ends}
    found = read("demand.parquet", "demand", columns=stated)
    assert caltest.test(found.rows, found.labels, rng=1).pvalue == expected.pvalue
    with pytest.raises(InputError, match="tested all together; read the file whole"):
        scan("demand.parquet", "demand", columns=stated)


# --- wrong input

IN_TEXT = (
    "column 'region' holds '(north|south)' at row 0 (counting from 0), which is not a number (nor are "
    "the other rows);"
)
WRONG = {
    "no mean": ("--sd error",
        "--sd is given alone; give the columns of --mean and of one of --sd and "),
    "mean alone": ("--mean forecast",
        "--mean is given alone; give the columns of --mean and of one of"),
    "two spreads": ("--mean forecast --sd error --variance squared",
        "both --sd and --variance are given; give one of them."),
    "two laws": ("--mean forecast --sd error --quantiles q*",
        "both --sd and --quantiles are given; give one of them."),
    "one column": ("--mean error --sd error", "column 'error' is given twice; give each its own."),
    "probabilities": ("--mean forecast --sd error --columns w",
        "--columns names probabilities of classes, and --mean is about numbers; give one of them."),
    "missing": ("--mean forecast --sd eror",
        "there is no column 'eror' (did you mean 'error'?); besides the labels there are 'forecast', "),
    "text": ("--mean forecast --sd region", f"{IN_TEXT} name columns of numbers."),
    "classes": ("--mean forecast --sd error --label region",
        f"{IN_TEXT} name outcomes that are numbers, or give probabilities if they are"),
    "lens of classes": ("--mean forecast --sd error --lens top_label",
        "the lens 'top_label' is for classes, and these are normal distributions of numbers; give a "),
    "statistic of classes": ("--mean forecast --sd error --statistic ece",
        "'ece' is for probabilities"),
    "logits": ("--mean forecast --sd error --logits",
        "--logits is about probabilities, and the columns"),
    "rounding": ("--mean forecast --sd error --rounding 0.1", "--rounding is about probabilities, and"),
    "rates": ("--mean forecast --sd error --sampling-rate 0=0.1", "--sampling-rate is about probab"),
    "no pattern": ("--quantiles z*",
        "--quantiles is 'z*', and no column is called so with a level for"),
    "no level": ("--quantiles q0.05=0.05,q0.5",
        "--quantiles is 'q0.5'; give columns and their levels,"),
    "a percent": ("--quantiles q0.05=5", "the level of column 'q0.05' is 5.0; give a level between 0"),
    "points of nothing": ("--low 0", "--low is of point forecasts; give --point, their column, too."),
    "points and a law": ("--point forecast --mean forecast --sd error",
        "both --sd and --point are given; give one of them."),
    "points and sets": ("--point forecast --lower error --upper forecast --level 0.9",
        "both --lower and --point are given; give one of them."),
    "a functional": ("--point forecast --functional mode", "--functional is 'mode'; give 'mean', 'med"),
    "an end": ("--point forecast --low 50", "the forecast "),
    "ends": ("--point forecast --low 50 --high 20", "--low is 50, not below the largest number of"),
    "no end": ("--point forecast --high inf", "--high is inf; give a finite number"),
    "points of text": ("--point region", f"{IN_TEXT} name columns of numbers."),
    "numbers": ("--columns forecast", "probs looks like point forecasts: row 0"),
    "looks like it": ("",
        f"{IN_TEXT} for point forecasts give --point forecast, else name the"),
    "points of 100": ("--point forecast --scale 100", "--scale is about probabilities, and the"),
    "weights": ("--mean forecast --sd error --weights error",
        "the column 'error' is given as a prediction and as weights; give it once."),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(("options", "said"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_a_sentence(options, said, suffix):
    label = [] if "--label" in options else ["--label", "demand"]
    found = fails("test", f"demand.{suffix}", *label, *options.split())
    expected = re.escape(said).replace(r"\(north\|south\)", "(north|south)")
    assert re.match(rf"(demand\.{suffix}: )?{expected}", found), found
    assert found.count("\n") == 0
    assert found.endswith(".")


@pytest.mark.parametrize(
    ("column", "row", "value", "said"),
    [
        ("error", 7, -3.0, "sd is -3 in row 7 (counting from 0); give standard deviations above 0"),
        ("error", 7, 0.0, "sd is 0 in row 7 (counting from 0); give standard deviations above 0"),
        ("error", 7, np.nan, "'error' holds nan in row 7 (counting from 0); give finite numbers"),
        ("demand", 9, np.inf, "holds inf in row 9 (counting from 0); give finite numbers"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_wrong_numbers_are_told_with_their_row(tmp_path, suffix, column, row, value, said):
    wrong = ROWS.copy()
    wrong.loc[row, column] = value
    assert said in fails("test", save(wrong, tmp_path / f"wrong.{suffix}"), *STATED)


@pytest.mark.slow
def test_rows_of_one_pass_are_counted_from_the_first(tmp_path):
    wrong = pq.read_table("many.parquet").to_pandas()
    wrong.loc[100_000, "error"] = 0.0
    path = save(wrong, tmp_path / "wrong.parquet")
    lens = ["--lens", "quantile:0.5", "--statistic", "citl", "--resamples", 39]
    assert "sd is 0 in row 100000 (counting from 0); give" in fails("test", path, *STATED, *lens)


def test_arrays_without_names_and_other_commands(tmp_path):
    np.save(tmp_path / "demand.npy", ROWS[["forecast", "error", "demand"]].to_numpy())
    assert "so there is no column 'forecast'" in fails("test", tmp_path / "demand.npy", *STATED)
    wrong = fails("test", "demand.npz", "--label", "demand", "--mean", "forecat", "--sd", "error")
    assert "there is no array 'forecat' (did you mean 'forecast'?)" in wrong
    assert "--mean is for a file, and --example is" in fails("test", "--example", "x", "--mean", "x")
    assert "no such option: --mean" in fails("bounds", "demand.csv", "--mean", "forecast")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "columns is given alone; give the columns of mean and of one of sd and variance."),
        ({"mu": "forecast"}, "columns names 'mu'; name 'mean' with 'sd' or 'variance', 'quantiles',"),
        ({"mean": 3, "sd": "error"}, "mean is 3; give the name of a column."),
        ({"quantiles": ["q0.5"]}, "quantiles is ['q0.5']; give the name of a column."),
        ({"quantiles": {"q0.5": 50}}, "the level of column 'q0.5' is 50; give a level between 0 and 1"),
        ({"quantiles": {"a": "x", "b": 0.5}}, "the level of column 'a' is 'x'; give a level between 0"),
        ({"survival": {"a": 1.0, "b": "x"}, "event": "e"}, "column 'b' is 'x'; give a finite number."),
    ],
)
def test_wrong_columns_in_python(columns, said):
    for reader in (read, scan):
        with pytest.raises(InputError, match=re.escape(said)):
            reader("demand.csv", "demand", columns=columns)
    with pytest.raises(InputError, match="rounding is about probabilities, and the columns"):
        read("demand.csv", "demand", columns=NUMBERS, rounding=0.1)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("q*", lambda level: f"q{level:g}"),
        ("q_*", lambda level: f"q_{level:.6f}"),
        ("*", lambda level: f"{level:g}"),
        ("p*", lambda level: f"p{100 * level:g}%"),
        ("m-*", lambda level: f"m-lo-{100 - 200 * level:.6g}"),
        ("x*y", lambda level: f"x{level:.1e}y"),
    ],
)
def test_levels_in_names_stay_what_they_are(pattern, name, tmp_path):
    levels = [0.01, 0.025, 0.05, 0.1, 0.15, 0.3, 0.45]
    table = pd.DataFrame({name(level): level + np.arange(5.0) for level in reversed(levels)})
    table.assign(seen=1.0).to_csv(tmp_path / "q.csv", index=False)
    found = read(tmp_path / "q.csv", "seen", columns={"quantiles": pattern}).rows.law
    assert found.levels.tolist() == levels
    np.testing.assert_array_equal(found.values, np.arange(5.0)[:, None] + levels)
