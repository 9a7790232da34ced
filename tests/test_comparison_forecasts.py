"""Models that predict numbers are compared by their scores, in pairs of the same rows, and audited."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support import binomial_limits

import caltest
from caltest import InputError
from caltest.predictive import Normal, Quantiles

RNG = np.random.default_rng(0)
LEVEL = RNG.normal(size=300)
OUTCOMES = RNG.normal(LEVEL)
MODELS = {"right": Normal(LEVEL, sd=1.0), "narrow": Normal(LEVEL, sd=0.5)}


def test_scores_differences_and_audits():
    site = np.repeat(["a", "b"], 150)
    found = caltest.compare(MODELS, OUTCOMES, groups={"site": site}, n_resamples=199, rng=0)
    assert found.ranking == ("right", "narrow")
    scores = {name: law.crps(OUTCOMES) for name, law in MODELS.items()}
    assert found.scores[1].score == pytest.approx(scores["narrow"].mean())
    apart = scores["narrow"] - scores["right"]
    low, value, high = found.gap("narrow", "right").score
    assert value == pytest.approx(apart.mean())
    reach = -scipy.stats.t.ppf(0.05 / 6, 299) * apart.std() / 300**0.5
    assert (high - value, value - low) == pytest.approx((reach, reach))
    assert found.gap("right", "narrow", found.scores[2].group).model == "right"
    assert [each.alpha for each in found.audits.values()] == pytest.approx([0.025] * 2)
    assert found.audits["narrow"].rejected
    text = str(found)
    assert "narrow scores" in text
    assert "too narrow" in text
    assert "site = b" in text
    assert found.table().index.tolist() == ["right", "narrow"]
    json.dumps(found.to_dict(), allow_nan=False)


def test_quantiles_are_scored_at_the_levels_that_all_state():
    levels = [0.1, 0.5, 0.9]
    few = Quantiles(levels, scipy.stats.norm(LEVEL[:, None]).ppf(levels))
    many = Quantiles(
        [0.1, 0.3, 0.5, 0.9], scipy.stats.norm(LEVEL[:, None], 2.0).ppf([0.1, 0.3, 0.5, 0.9])
    )
    found = caltest.compare({"few": few, "many": many}, OUTCOMES, n_resamples=99, rng=0)
    assert found.measure == "wis"
    over = OUTCOMES[:, None] - few.values
    by_hand = 2.0 * np.where(over > 0, levels, np.array(levels) - 1.0) * over
    assert found.scores[0].score == pytest.approx(by_hand.mean())
    assert found.ranking[0] == "few"


def test_the_score_of_99_quantiles_is_near_the_crps():
    law = MODELS["right"]
    assert 2.0 * law.pinball(OUTCOMES) == pytest.approx(law.crps(OUTCOMES), abs=0.03)


@pytest.mark.level
def test_models_that_score_alike_are_rarely_told_apart():
    """Errors of opposite sign; differences have paired t intervals."""
    apart = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        level = rng.normal(size=80)
        models = {"low": Normal(level - 0.3, sd=1.0), "high": Normal(level + 0.3, sd=1.0)}
        found = caltest.compare(models, rng.normal(level), lens="quantile:0.5", n_resamples=99, rng=0)
        low, _, high = found.gaps[0].score
        apart += not low <= 0.0 <= high
    assert apart / 200 <= binomial_limits(200, 0.05)[1]


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        (MODELS | {"classes": LEVEL}, {}, "model 'classes'"),
        (MODELS | {"short": Normal(LEVEL[:9], sd=1.0)}, {}, "model 'short'"),
        (MODELS, {"statistic": "ece"}, "leave out statistic"),
        (MODELS, {"size": 50}, "leave out statistic"),
        (MODELS, {"logits": True}, "logits is about probabilities of classes"),
        ({"right": MODELS["right"]}, {}, "give at least two"),
    ],
)
def test_wrong_input(models, options, message):
    with pytest.raises(InputError, match=message):
        caltest.compare(models, OUTCOMES, **options)


def test_clusters_and_frames():
    found = caltest.compare(
        MODELS, pd.Series(OUTCOMES), clusters=np.arange(300) // 3, n_resamples=99, rng=0
    )
    assert found.n_clusters == 100
