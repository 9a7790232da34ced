"""SKCE: hand counts, the definitions, published numbers."""

from functools import partial
from math import exp, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from support import P6, Y6, dirichlet, h_matrix, kernels_for, labels_from

import caltest
from caltest import estimate
from caltest.data import Rows
from caltest.kernels import Exponential, Gaussian, Linear
from caltest.nulls import NormalApproximation
from caltest.statistics import BiasedSKCE, LinearSKCE, UnbiasedSKCE

SKCES = [BiasedSKCE, UnbiasedSKCE, LinearSKCE]
HAND = {  # SKCE_b, SKCE_uq, SKCE_ul and its z, of six rows
    "median": (0.05207411309115408, -0.00017773095728177424, 0.09031380539776457, 1.3893059550684579),
    "median_full": (0.05092827112532738, -0.0015527413162738164, 0.07963522630454832,
        1.4194859229934484),
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "bandwidth", "biased", "unbiased", "linear", "z"),
    [("median", 0.5, *HAND["median"]), ("median_full", 0.425, *HAND["median_full"])],
)
def test_six_rows(rule, bandwidth, biased, unbiased, linear, z):
    kernel = Exponential(rule)
    assert kernel.fitted(P6).bandwidth == pytest.approx(bandwidth, abs=1e-12)
    assert estimate(P6, Y6, BiasedSKCE(kernel)) == pytest.approx(biased, abs=1e-12)
    assert estimate(P6, Y6, UnbiasedSKCE(kernel)) == pytest.approx(unbiased, abs=1e-12)
    assert estimate(P6, Y6, LinearSKCE(kernel, pairing="rows")) == pytest.approx(linear, abs=1e-12)
    result = caltest.test(P6, Y6, LinearSKCE(kernel, pairing="rows"), null="normal")
    assert -ndtri(result.pvalue) == pytest.approx(z, abs=1e-12)


@pytest.mark.parametrize("m", [2, 3, 20])
@pytest.mark.parametrize("name", kernels_for(2))
def test_definitions(m, name):
    kernel = kernels_for(m)[name]
    probs = np.vstack([dirichlet(9, m, 1, 0.5), np.eye(m)[:1], np.eye(m)[:1]])  # n = 11, odd
    labels = labels_from(dirichlet(11, m, 2), np.random.default_rng(3))
    h = h_matrix(kernel, probs, labels)
    off = h[~np.eye(11, dtype=bool)]
    assert estimate(probs, labels, BiasedSKCE(kernel)) == pytest.approx(h.mean(), rel=1e-10, abs=1e-13)
    assert estimate(probs, labels, UnbiasedSKCE(kernel)) == pytest.approx(off.mean(), 1e-10, abs=1e-13)
    pairs = [h[2 * p, 2 * p + 1] for p in range(5)]
    assert estimate(probs, labels, LinearSKCE(kernel, pairing="rows")) == pytest.approx(
        np.mean(pairs), rel=1e-10, abs=1e-13
    )


def test_defaults_are_the_papers():
    assert estimate(P6, Y6) == estimate(P6, Y6, UnbiasedSKCE(Exponential("median", "tv")))
    assert caltest.test(P6, Y6, null="moments").name == "skce_uq"
    for statistic in SKCES:
        assert statistic().kernel == Exponential("median", "tv")


@pytest.mark.parametrize("statistic", SKCES)
def test_parameters_say_what_was_fitted(statistic):
    pairing = {"pairing": "random", "pairing_seed": 0} if statistic is LinearSKCE else {}
    parameters = caltest.test(P6, Y6, statistic(), n_resamples=9, rng=0).parameters
    assert parameters == pairing | {
        "kernel": "Exponential",
        "bandwidth": pytest.approx(0.5),
        "bandwidth_rule": "median",
        "distance": "tv",
    }
    linear = caltest.test(P6, Y6, statistic(Linear()), n_resamples=9, rng=0).parameters
    assert linear == pairing | {"kernel": "Linear"}


@pytest.mark.parametrize("statistic", SKCES)
def test_constant_predictions_are_said(statistic):
    result = caltest.test(np.full((10, 2), 0.5), [0, 1] * 5, statistic(), n_resamples=19, rng=0)
    assert any("All predictions are equal" in note for note in result.warnings)


# ------------------------------------------------------------------ published networks

NETWORKS = ["densenet121", "resnet18", "vgg19_bn", "googlenet"]
BY_ROWS = partial(LinearSKCE, pairing="rows")
COLUMNS = {BiasedSKCE: "SKCEb", UnbiasedSKCE: "SKCEuq", BY_ROWS: "SKCEul"}


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_published_networks(reference, network):
    """Estimates and p-values of Widmann et al. 2019, Appendix J.3, to 1e-9.

    The predictions go in as they are, as an object: validation would renormalise the rows of an
    array (their sums are off by up to 4e-7), which moves the estimates by some 1e-7.
    """
    data = reference(f"cifar10_{network}.npz")
    errors = pd.read_csv(reference("widmann2019_networks_errors.csv"), index_col=0).loc[network]
    pvalues = pd.read_csv(reference("widmann2019_networks_pvalues.csv"), index_col=0).loc[network]
    predictions, labels = Rows(data["probs"]), data["labels"].astype(np.intp)
    kernel = Exponential("median_full").fitted(predictions.probs)
    for statistic, column in COLUMNS.items():
        bounded = caltest.test(predictions, labels, statistic(kernel), null="bound", n_jobs=2)
        assert bounded.statistic == pytest.approx(errors[f"{column}_median"], rel=1e-9)
        if bounded.statistic > 0:
            published = pvalues[f"{column}_median_distribution_free"]
            assert bounded.pvalue == pytest.approx(published, rel=1e-9)
        else:  # the published runs squared negative estimates
            assert bounded.pvalue == 1.0
    normal = caltest.test(
        predictions, labels, LinearSKCE(kernel, pairing="rows"), null=NormalApproximation(ddof=0)
    )
    assert normal.pvalue == pytest.approx(pvalues["SKCEul_median_asymptotic"], rel=1e-9)


@pytest.mark.slow
def test_published_network_from_the_front_door(reference):
    data = reference("cifar10_resnet18.npz")
    published = pd.read_csv(reference("widmann2019_networks_errors.csv"), index_col=0).loc["resnet18"]
    kernel = Exponential("median_full")
    for statistic, null in ((BY_ROWS, NormalApproximation(ddof=0)), (BiasedSKCE, "bound")):
        result = caltest.test(data["probs"], data["labels"], statistic(kernel), null=null, n_jobs=2)
        assert result.statistic == pytest.approx(published[f"{COLUMNS[statistic]}_median"], rel=1e-6)
        assert any("renormalised" in note for note in result.warnings)


# ------------------------------------------------------------------ bounds in closed form


def test_bounds_in_closed_form():
    probs, labels = np.tile([1.0, 0.0], (40, 1)), np.ones(40, dtype=int)  # h_ij = 2 for all pairs
    kernel = Gaussian(1.0)
    mcdiarmid = caltest.test(probs, labels, BiasedSKCE(kernel), null="bound")
    assert mcdiarmid.statistic == pytest.approx(2.0, rel=1e-12)
    assert mcdiarmid.pvalue == pytest.approx(exp(-0.5 * (sqrt(40) - 1) ** 2), rel=1e-10)
    for statistic in (UnbiasedSKCE, LinearSKCE):
        hoeffding = caltest.test(probs, labels, statistic(kernel), null="bound")
        assert hoeffding.statistic == pytest.approx(2.0, rel=1e-12)
        assert hoeffding.pvalue == pytest.approx(exp(-20 / 2), rel=1e-10)
