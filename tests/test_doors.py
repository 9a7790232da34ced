"""Forecasts as other packages hold them: what docs/doors.md shows works on stored small ones."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from pages import blocks, follow, page

import caltest
from caltest import InputError
from caltest.laws import recognised
from caltest.predictive import Members, Quantiles

DOORS = Path(__file__).parent / "doors"
PAGE = page("docs/doors.md")
STORED = dict(np.load(DOORS / "forecasts.npz"))
Y, PATHS, AFTER = STORED["y"], STORED["paths"], STORED["after"]
LEVELS = [0.1, 0.5, 0.9]
#: Three numbers a row for the tests, and the law that they are of.
NUMBERS = PATHS[:, :, 0]


def section(name):
    """Return the blocks of a section of the page."""
    (found,) = re.findall(rf"^## {re.escape(name)}.*?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return found


def shown(name, **given):
    """Run what a section shows with these objects; return the p-values of its calls."""
    space = {"caltest": caltest, "np": np, **given}
    (block,) = blocks(section(name), "py")
    pvalues = []
    for line in ast.parse(block).body:
        if isinstance(line, ast.Expr) and "print" not in ast.unparse(line):
            pvalues.append(eval(ast.unparse(line), space).pvalue)
        else:
            exec(ast.unparse(line), space)
    return pvalues


def test_every_door_is_of_few_lines_and_tested():
    names = re.findall(r"^## (.*)$", PAGE, re.M)
    for name in names:
        assert len(section(name).strip().splitlines()) <= 14, name
    tested = Path(__file__).read_text()
    assert all(f'"{re.split(r" [(]", name)[0]}"' in tested for name in names)


@pytest.mark.slow
def test_nothing_is_imported_that_is_absent():
    code = "import sys, caltest; caltest.test({0: [.5, .5]}[0], [0, 1]); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    absent = {"xarray", "arviz", "gluonts", "darts", "sktime", "skpro", "sbi", "simuk", "torch"}
    assert not absent & {name.partition(".")[0] for name in loaded.stdout.split()}


@pytest.mark.slow
def test_tables(tmp_path, monkeypatch):
    """The commands of "Forecast hubs" and "Nixtla", on stored tables."""
    monkeypatch.chdir(tmp_path)
    for path in DOORS.glob("*.csv"):
        shutil.copy(path, path.name)
    follow("docs/doors.md")
    columns = ["ARIMA-lo-90", "ARIMA-lo-50", "ARIMA-hi-50", "ARIMA-hi-90"]
    (pvalue,) = shown("Nixtla", table=pd.read_csv("utilsforecast.csv"), columns=columns)
    read = caltest.files.read("utilsforecast.csv", "y", columns={"quantiles": "ARIMA-*"})
    assert read.rows.law.levels.tolist() == [0.05, 0.25, 0.75, 0.95]
    assert caltest.test(read.rows, read.labels, rng=1).pvalue == pvalue < 0.05
    assert "'ARIMA'" in str(read.rows.notes)


def test_levels_in_names():
    known = {
        "lo-90": 0.05, "a-hi-95": 0.975, "q0.5": 0.5, "2.5%": 0.025, "median": 0.5, "m-median": 0.5,
    }  # fmt: skip
    for name, level in known.items():
        assert Quantiles(None, pd.DataFrame({name: [1.0]})).levels.tolist() == [level]
    for name in ("mean", "lo", "lo-x", "nan", "sigma-2x", ""):
        with pytest.raises(InputError, match="the columns of values are called"):
            Quantiles(None, pd.DataFrame({name: [1.0]}))


@pytest.mark.slow
def test_arrays_with_dimensions():
    xarray = pytest.importorskip("xarray")
    time, names = pd.date_range("2024-01-01", periods=60), ["a", "b", "c"]
    given = {"time": time}
    forecast = xarray.DataArray(NUMBERS.T, dims=("member", "time"), coords=given, name="load")
    observed = xarray.DataArray(Y, dims=("time",), coords=given, name="load")
    given |= {"station": names}
    stations = xarray.DataArray(PATHS, dims=("time", "number", "station"), coords=given)
    at_stations = xarray.DataArray(AFTER, dims=("time", "station"), coords=given)
    members, vectors = Members(NUMBERS), Members(PATHS, names)
    for each in (at_stations, at_stations.T):
        own = {"forecast": forecast, "observed": observed, "stations": stations, "at_stations": each}
        expected = caltest.test(members, Y, rng=1).pvalue, caltest.audit(vectors, AFTER, rng=1).pvalue
        assert tuple(shown("xarray", **own)) == expected
    assert recognised(stations).names == ("a", "b", "c")
    with pytest.raises(InputError, match="coordinates of 'station' differ in predictions and outcomes"):
        caltest.test(stations, at_stations.isel(station=[1, 0, 2]))
    with pytest.raises(InputError, match="the coordinates of the rows of predictions and outcomes"):
        caltest.test(forecast, observed[::-1])
    for wrong in (stations.expand_dims("level"), forecast.isel(time=0)):
        with pytest.raises(InputError, match="besides that of members leave one of rows"):
            caltest.test(wrong, observed)
    assert recognised(xarray.DataArray(np.full((60, 2), 0.5), dims=("sample", "class"))) is None


@pytest.mark.slow
def test_groups_of_a_posterior():
    xarray = pytest.importorskip("xarray")
    draws = xarray.DataArray(STORED["draws"], dims=("chain", "draw", "row"), name="load")
    seen = xarray.DataArray(Y, dims=("row",), name="load")
    idata = SimpleNamespace(posterior_predictive=draws.to_dataset(), observed_data=seen.to_dataset())
    flat = np.moveaxis(STORED["draws"], 2, 0).reshape(60, -1)
    expected = caltest.test(Members(flat), Y, rng=1).pvalue
    assert shown("ArviZ", idata=idata) == [expected, expected]
    assert caltest.test(draws.stack(sample=("chain", "draw")), seen, rng=1).pvalue == expected
    two = xarray.Dataset({"load": draws, "price": draws})
    with pytest.raises(InputError, match=r"the predictions hold 'load', 'price'; give one of them"):
        caltest.test(two, idata.observed_data)
    both = xarray.Dataset({"load": seen, "price": seen + 1})
    assert caltest.test(draws, both, rng=1).pvalue == expected


@pytest.mark.slow
def test_lists_of_forecasts():
    forecasts = [SimpleNamespace(samples=each, prediction_length=3) for each in PATHS]
    keys = ["mean", "0.1", "0.5", "0.9"]
    quantiles = [SimpleNamespace(forecast_array=q, forecast_keys=keys) for q in STORED["quantiles"]]
    found = shown("GluonTS", forecasts=forecasts, quantile_forecasts=quantiles, actual=AFTER)
    flat = np.moveaxis(STORED["quantiles"][:, 1:], 1, 2).reshape(-1, 3)
    origin = np.repeat(np.arange(60), 3)
    assert found == [
        caltest.audit(Members(PATHS, ["1", "2", "3"]), AFTER, rng=1).pvalue,
        caltest.audit(Quantiles(LEVELS, flat), AFTER.ravel(), clusters=origin, rng=1).pvalue,
    ]
    assert found[1] < 0.05
    forecasts[3] = SimpleNamespace(samples=PATHS[0, :, :2], prediction_length=2)
    with pytest.raises(InputError, match=r"samples of shapes \(9, 2\) and \(9, 3\); give all of them"):
        caltest.test(forecasts, AFTER)


def test_objects_that_answer_none_for_every_name():
    """As distributions of NGBoost do, which have no dimensions and no samples for that."""

    class Fitted:
        def cdf(self, y):
            return scipy.stats.norm.cdf(y)

        def __getattr__(self, name):
            return getattr(scipy.stats.norm(np.zeros(40)), name, None)

    assert recognised(Fitted()).n_samples == 40
    outcomes = scipy.stats.norm.ppf((np.arange(40) + 0.5) / 40)
    assert caltest.test(Fitted(), outcomes, rng=0, n_resamples=99).pvalue > 0.05


def test_series_of_samples():
    def series(values, names):
        return SimpleNamespace(
            all_values=lambda: values, components=names, is_stochastic=values.shape[2] > 1
        )

    actual = SimpleNamespace(values=lambda: Y[:, None])
    found = shown("Darts", series=series(NUMBERS[:, None], ["y"]), actual=actual)
    assert found == [caltest.test(Members(NUMBERS), Y, rng=1).pvalue]
    several = recognised(series(PATHS.swapaxes(1, 2), ["a", "b", "c"]))
    np.testing.assert_array_equal(several.values, PATHS)
    assert several.names == ("a", "b", "c")
    with pytest.raises(InputError, match="holds one value a time; predict samples"):
        recognised(series(NUMBERS[:, None, :1], ["y"]))


def test_tables_of_quantiles():
    quantiles = pd.read_csv(DOORS / "quantiles.csv", header=[0, 1])
    intervals = pd.read_csv(DOORS / "intervals.csv", header=[0, 1, 2])
    found = shown("sktime and skpro", quantiles=quantiles, intervals=intervals, actual=Y)
    levels = recognised(intervals).levels
    np.testing.assert_allclose(levels, [0.05, 0.25, 0.75, 0.95])
    values = intervals.to_numpy()[:, [2, 0, 1, 3]]
    assert found == [
        caltest.test(Quantiles(LEVELS, quantiles.to_numpy()), Y, rng=1).pvalue,
        caltest.test(Quantiles(levels, values), Y, rng=1).pvalue,
    ]
    assert max(found) < 0.05
    both = pd.concat([quantiles, quantiles.rename(columns={"load": "price"}, level=0)], axis=1)
    with pytest.raises(InputError, match="are of 'load', 'price'; give one of them"):
        caltest.test(both, Y)
    assert recognised(quantiles.rename(columns=lambda name: f"x{name}", level=1)) is None


def test_shapes_of_scores():
    found = shown("scoringrules", fct=NUMBERS, obs=Y, paths=PATHS, observed_paths=AFTER)
    assert found[0] == caltest.test(Members(NUMBERS), Y, "crps", rng=1).pvalue < 0.05
    fair = pytest.importorskip("scoringrules").crps_ensemble(Y, NUMBERS, estimator="fair")
    np.testing.assert_allclose(Members(NUMBERS).met(Y)[0].crps(Y), fair, rtol=1e-9)


@pytest.mark.slow
def test_posteriors(capsys):
    draws, thetas = STORED["posterior"], STORED["theta"]
    posterior = SimpleNamespace(sample_batched=lambda shape, x: draws)
    shown("sbi", posterior=posterior, xs=None, thetas=thetas)
    assert "scale is too narrow" in capsys.readouterr().out
    simulations = {"prior_sbc": {"mu": SimpleNamespace(values=STORED["ranks"][:, :, 1])}}
    (pvalue,) = shown("simuk", simulations=simulations, L=30, scipy=scipy)
    of_draws = caltest.test(Members(draws[:, :, 1].T), thetas[:, 1], rng=1)
    assert pvalue == pytest.approx(of_draws.pvalue, abs=0.02)
