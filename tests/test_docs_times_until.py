"""What docs/times.md shows is what happens; recipes for other packages, where they are installed."""

import re

import numpy as np
import pytest
from pages import follow, page

import caltest
from caltest.lenses import find_lens
from caltest.predictive import Survival
from caltest.statistics import DENSITY_STATISTICS, STATISTICS


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    follow("docs/times.md")


def test_names_on_the_page_exist():
    named = set(re.findall(r'`"([a-z_0-9:.]+)"`', page("docs/times.md"))) - {"within"}
    lenses = {name for name in named if ":" in name}
    assert all(find_lens(name) for name in lenses)
    assert named - lenses <= {*STATISTICS, *DENSITY_STATISTICS}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["CoxPHFitter", "WeibullAFTFitter"])
def test_models_of_lifelines(kind):
    lifelines = pytest.importorskip("lifelines")
    rows = lifelines.datasets.load_rossi()
    model = getattr(lifelines, kind)().fit(rows[::2], "week", "arrest")
    held = rows[1::2]
    predicted = Survival(model.predict_survival_function(held))
    found = caltest.test(predicted, held[["week", "arrest"]], rng=0, n_resamples=199)
    assert 0.0 < found.pvalue <= 1.0
    assert predicted.n_samples == len(held)
    known = Survival(model.predict_survival_function(held), follow_up=52.0)
    assert caltest.test(known, held[["week", "arrest"]], rng=0, n_resamples=199).guarantee == "exact"


@pytest.mark.filterwarnings("ignore")
def test_forests_of_scikit_survival():
    datasets = pytest.importorskip("sksurv.datasets")
    ensemble = pytest.importorskip("sksurv.ensemble")
    X, y = datasets.load_gbsg2()
    X = X[["age", "pnodes", "progrec", "estrec", "tsize"]].astype(float).to_numpy()
    forest = ensemble.RandomSurvivalForest(50, min_samples_leaf=15, random_state=0).fit(X[::2], y[::2])
    predicted = Survival(forest.predict_survival_function(X[1::2]))
    table = Survival(forest.predict_survival_function(X[1::2], return_array=True), forest.unique_times_)
    one, other = (caltest.estimate(law, y[1::2], "events") for law in (predicted, table))
    assert np.isclose(one, other)
    audit = caltest.audit(predicted, y[1::2], lenses="until:1095", rng=0, n_resamples=199)
    assert audit.views[0].events.expected > 50
