"""Public tables and common models: is what is found on one half of the rows found again on the other?

Tables come inside installed packages. A third of the rows fits a model; the others are halved. Slices
that are shown for one half are looked at on the other, each by itself: how many have a mean error on
the same side, and how many of these a p-value of at most 5% (one-sided, normal). Both halves in turn,
several random cuts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

import caltest
from validation._cells import Options, Row, Table, seeds, spread
from validation._feature_designs import covered

ALPHA = 0.05
CUTS = 10


@cache
def marriages() -> tuple[pd.DataFrame, NDArray[Any]]:
    """6 366 women who were asked about their marriage: had she an affair? (statsmodels: fair)."""
    import statsmodels.api as sm

    table = sm.datasets.fair.load_pandas().data
    return table.drop(columns="affairs"), (table["affairs"] > 0.0).to_numpy(int)


@cache
def visits() -> tuple[pd.DataFrame, NDArray[Any]]:
    """20 190 persons of the RAND health insurance experiment: any visit to a doctor? (randhie)."""
    import statsmodels.api as sm

    table = sm.datasets.randhie.load_pandas().data
    return table.drop(columns="mdvis"), (table["mdvis"] > 0.0).to_numpy(int)


@cache
def digits() -> tuple[pd.DataFrame, NDArray[Any]]:
    """1 797 images of digits as 16 means of pixels: is it an even digit? (scikit-learn)."""
    from sklearn.datasets import load_digits

    images = load_digits()
    blocks = images.images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    columns = [f"block {row}.{column}" for row in range(1, 5) for column in range(1, 5)]
    return pd.DataFrame(blocks, columns=columns), (images.target % 2 == 0).astype(int)


@cache
def votes() -> tuple[pd.DataFrame, NDArray[Any]]:
    """944 voters of 1996: Dole? (statsmodels: anes96)."""
    import statsmodels.api as sm

    table = sm.datasets.anes96.load_pandas().data
    return table.drop(columns=["vote", "logpopul"]), table["vote"].to_numpy(int)


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, NDArray[Any]]]] = {
    "marriages": marriages,
    "visits to doctors": visits,
    "digits": digits,
    "votes": votes,
}
MODELS = ("logistic regression", "random forest")


def _model(name: str, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "random forest":
        return RandomForestClassifier(300, min_samples_leaf=5, random_state=seed)
    return make_pipeline(StandardScaler(), LogisticRegression())


def again(table: str, model: str, n_resamples: int, seed: np.random.SeedSequence) -> Row:
    """Cut a table, and audit both halves."""
    rng = np.random.default_rng(seed)
    features, outcomes = TABLES[table]()
    fit, *halves = np.array_split(rng.permutation(len(outcomes)), 3)
    fitted = _model(model, int(rng.integers(2**31))).fit(features.iloc[fit], outcomes[fit])
    found = dict.fromkeys(("audits", "rejected", "shown", "named", "same_side", "again"), 0)
    worst, least = list[float](), list[float]()
    for one, other in (halves, halves[::-1]):
        p, q = (fitted.predict_proba(features.iloc[rows])[:, 1] for rows in (one, other))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            audit = caltest.audit(
                p, outcomes[one], features=features.iloc[one], n_resamples=n_resamples, rng=rng
            )
        columns = {name: column.to_numpy() for name, column in features.iloc[other].items()}
        found["audits"] += 1
        found["rejected"] += audit.pvalue <= ALPHA
        found["named"] += len(audit.slices)
        least.append(audit.at_least_by_features or 0.0)
        for each in audit.slices:
            if not each.shown:
                continue
            rows = covered(each.group.conditions, columns)
            error, spread_ = (q - outcomes[other])[rows].sum(), (q * (1.0 - q))[rows].sum() ** 0.5
            z = error / spread_ * (1.0 if each.error > 0.0 else -1.0)
            found["shown"] += 1
            found["same_side"] += z > 0.0
            found["again"] += z >= norm.isf(ALPHA)
            worst.append(abs(each.error))
    return {**found, "largest": max(worst, default=0.0), "at_least": float(np.mean(least))}


def run(options: Options, seed: int) -> None:
    """Audit every table and model, and add cuts up."""
    table = Table(options.results / "features_real.csv", ("data", "model", "seed"))
    wanted = options.datasets or (1 if options.quick else CUTS)
    draws = 99 if options.quick else 999
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        every = [(name, model) for name in TABLES for model in MODELS]
        for number, (name, model) in enumerate(every):
            what = f"features_real: {name}, {model}"
            if not options.wants(what) or options.over:
                continue
            one = partial(again, name, model, draws)
            found = spread(one, seeds(seed, (3001 + number,), 0, wanted), parallel)
            size = len(TABLES[name]()[1])
            row: Row = {"data": name, "rows": size // 3, "columns": TABLES[name]()[0].shape[1]}
            row |= {"model": model, "seed": seed, "caltest": caltest.__version__, "cuts": wanted}
            counts = ("audits", "rejected", "named", "shown", "same_side", "again")
            row |= {key: int(sum(each[key] for each in found)) for key in counts}
            row["largest"] = round(max(each["largest"] for each in found), 4)
            row["at_least"] = round(float(np.mean([each["at_least"] for each in found])), 4)
            table.put([row])
            print(f"{what}: {wanted}, {options.seconds:.0f} s", flush=True)
