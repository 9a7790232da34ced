"""What the tests of comparisons share: three models of the same rows."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax
from support import dirichlet, labels_from

import caltest

ROWS = 120
TRUTH = dirichlet(ROWS, 3, 0)
LABELS = labels_from(TRUTH, np.random.default_rng(0))


def tempered(g, factor):
    return softmax(factor * np.log(g), axis=1)


def raised(g, target, bias=1.0):
    logits = np.log(np.maximum(g, 1e-300))
    logits[:, target] += bias
    return softmax(logits, axis=1)


MODELS = {"sharp": tempered(TRUTH, 3.0), "true": TRUTH, "biased": raised(TRUTH, 0, 1.5)}


def quick(models=MODELS, labels=LABELS, statistic="skce_uq", **options):
    return caltest.compare(models, labels, statistic, **{"n_resamples": 20, "rng": 0, **options})


def brier_score(probs, labels):
    return float(((np.eye(probs.shape[1])[labels] - probs) ** 2).sum(axis=1).mean())
