"""MCGrad's multicalibration error and AIF360's bias scan, run as they are.

Best in an environment of their own, as they bring many packages: ``python -m venv peers``, then
``peers/bin/python -m pip install -e . mcgrad aif360`` and ``peers/bin/python -m validation features
--only features_others``. Without them this part is left out, which is printed.

MCGrad has a p-value (``mce_pvalue``, its options by default). AIF360 returns the subset of the largest
score in either direction and no p-value; its features are categories, here quarters of numbers. So
counted are how often it returns a subset, and how large the score is; its power is that of the 5% of
calibrated data sets with the largest scores.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from validation._cells import Row
from validation._feature_designs import Data

LEVEL = 0.05
_QUARTERS = 4
Case = Callable[[int, int, np.random.Generator], Data]


def tested(case: Case, rows: int, dimension: int, seed: np.random.SeedSequence) -> Row:
    """Return MCGrad's p-value, AIF360's score, and the share of rows in its subset."""
    data = case(rows, dimension, np.random.default_rng(seed.spawn(2)[0]))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        score, share = _scanned(data)
        return {"p": _multicalibrated(data), "score": score, "share": share}


def _multicalibrated(data: Data) -> float:
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    names = list(data.features)
    frame = pd.DataFrame({**data.features, "predicted": data.predicted, "event": data.outcomes})
    made = MulticalibrationError(frame, "event", "predicted", numerical_segment_columns=names)
    return float(made.mce_pvalue)


def _scanned(data: Data) -> tuple[float, float]:
    import pandas as pd
    from aif360.detectors import bias_scan

    columns = {name: pd.qcut(x, _QUARTERS, labels=False) for name, x in data.features.items()}
    frame, outcomes = pd.DataFrame(columns), pd.Series(data.outcomes)
    either: list[Any] = [
        bias_scan(frame, outcomes, pd.Series(data.predicted), favorable_value=1, overpredicted=over)
        for over in (True, False)
    ]
    subset, score = max(either, key=lambda each: each[1])
    inside = np.ones(len(frame), bool)
    for name, levels in subset.items():
        inside &= frame[name].isin(levels).to_numpy()
    return float(score), float(inside.mean())


def summary(found: Sequence[Row], limits: dict[str, float]) -> Row:
    """Return shares; limits of scores come from the calibrated case, which is the first."""
    score = np.array([each["score"] for each in found])
    share = np.array([each["share"] for each in found])
    limits.setdefault("score", float(np.quantile(score, 1.0 - LEVEL, method="higher")))
    return {
        "mcgrad": version("mcgrad"),
        "aif360": version("aif360"),
        "datasets": len(found),
        "mcgrad_rejected": int(sum(each["p"] <= LEVEL for each in found)),
        "aif360_subset": int((share < 1.0).sum()),
        "aif360_rows": round(float(np.median(share)), 4),
        "aif360_score_median": round(float(np.median(score)), 2),
        "aif360_score_limit": round(limits["score"], 2),
        "aif360_above": int((score > limits["score"]).sum()),
    }
