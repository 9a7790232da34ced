"""The record's calls about where data come from: distributions, simulations, examples, files."""

import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from record_base import (
    DRAWS,
    SEED,
    call,
    dirichlet,
    of_array,
    of_checks,
    of_result,
    of_rows,
    of_sample,
    too_sure,
)
from record_of_test import LARGE, OPTIONS

import caltest
from caltest import predictive, simulation, statistics

# ------------------------------------------------------------------ distributions of numbers


@cache
def outcomes(name):
    import scipy.stats

    rng = np.random.default_rng(71)
    mean = rng.normal(size=80)
    if name == "numbers":
        return predictive.GaussianPredictions(mean, rng.uniform(0.5, 1.5, 80)), rng.normal(mean, 1.2)
    if name == "vectors":
        vectors = rng.normal(size=(60, 2))
        return predictive.GaussianPredictions(vectors, [[1, 0.3], [0.3, 0.8]]), rng.normal(vectors, 1.1)
    if name == "ensemble":
        return predictive.Ensemble(rng.normal(mean[:, None], 1.0, (80, 12))), rng.normal(mean, 1.3)
    if name == "ensemble_vectors":
        return predictive.Ensemble(rng.normal(size=(40, 15, 2)), 0.4), rng.normal(size=(40, 2))
    if name == "scipy":
        rate = rng.uniform(1.0, 9.0, 80)
        return predictive.Distribution(scipy.stats.poisson(rate)), rng.poisson(1.2 * rate)
    return scipy.stats.norm(mean, 1.0), rng.normal(mean, 1.1)


def of_outcomes(name, statistic, *, rng, n_jobs, **options):
    asked = {"n_resamples": DRAWS, "rng": rng, "n_jobs": n_jobs}
    return caltest.test(*outcomes(name), statistic, **(asked | options))


for _name in ("numbers", "vectors", "ensemble", "ensemble_vectors", "scipy", "frozen"):
    call(f"predictive/ecd/monte_carlo/{_name}", of_outcomes, _name, "ecd")
for _name in ("numbers", "vectors"):
    for _null in ("monte_carlo", "chi2"):
        call(f"predictive/nees/{_null}/{_name}", of_outcomes, _name, "nees", null=_null)
_SIDES = {"alternative": "two-sided"}
call("predictive/ecd/monte_carlo/numbers/two-sided", of_outcomes, "numbers", "ecd", **_SIDES)

# ------------------------------------------------------------------ simulated data, example data


def simulated(temperature):
    made = simulation.tempered(40, temperature=temperature, rng=SEED)
    return of_rows(made.probs, made.labels) | {"truth": of_array(made.truth)}


call("simulation/tempered", simulated, 0.6, keep=dict)


def digits(model):
    loaded = caltest.datasets.load_digits_predictions(model)
    options = {"null": "moments", "rng": SEED}
    return of_rows(loaded.probs, loaded.labels) | {
        name: of_result(caltest.test(loaded.probs, loaded.labels, name, **options))
        for name in ("ecd", "ece_squared")
    }


for _name in ("logistic_regression", "naive_bayes"):
    call(f"digits/{_name}", digits, _name, keep=dict)

# ------------------------------------------------------------------ files


@cache
def folder():
    """Predictions and labels in files of every kind; the folder goes when the program ends."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    held = tempfile.TemporaryDirectory(prefix="record")
    path = Path(held.name)
    probs, labels = LARGE
    table = pd.DataFrame(probs, columns=["a", "b", "c", "d"])
    table["label"] = np.array(["a", "b", "c", "d"])[labels]
    table["age"] = np.arange(len(labels)) % 3
    table.to_csv(path / "large.csv", index=False)
    plain = table.drop(columns="age")
    plain.head(300).to_csv(path / "small.csv", index=False)
    plain.to_parquet(path / "large.parquet", row_group_size=777)
    feather.write_feather(plain, path / "large.arrow")
    (path / "parts").mkdir()
    for number, start in enumerate(range(0, 5000, 1501)):
        plain[start : start + 1501].to_parquet(path / "parts" / f"{number}.parquet")
    np.savez(path / "large.npz", probs=probs, labels=labels)
    np.save(path / "large.npy", np.column_stack([probs, labels]))
    rows = 100_100  # more than are held in memory: read in one pass
    long, came = too_sure(dirichlet(rows, 3, 81), 1.02, 82)
    columns = {f"c{k}": long[:, k] for k in range(3)} | {"label": came}
    pq.write_table(pa.table(columns), path / "long.parquet", row_group_size=30_000)
    np.save(path / "long.npy", np.column_stack([long, came]))
    return held, path


def read(name, *args, **options):
    sample = caltest.files.read(folder()[1] / name, *args, **options)
    tested = caltest.test(sample.rows, sample.labels, "ecd", n_resamples=DRAWS, rng=SEED)
    return of_sample(sample) | {"ecd": of_result(tested)}


def grouped_file(name, **options):
    sample, groups = caltest.files.read_with_groups(folder()[1] / name, **options)
    found = {"lenses": "top_label", "groups": groups, "n_resamples": DRAWS, "rng": SEED}
    return of_checks(caltest.audit(sample.rows, sample.labels, **found))


def scanned(name, statistic, label=None, *, rng, n_jobs, **options):
    stored = caltest.files.scan(folder()[1] / name, label)
    asked = {"statistic": statistic, "n_resamples": DRAWS, "rng": rng, "n_jobs": n_jobs}
    return caltest.test(stored, **(asked | options))


def scan(name, *args, **options):
    call(f"files/scan/{name}", scanned, *args, **options)


call("files/read/csv", read, "small.csv", keep=dict)
call("files/read/csv_columns", read, "large.csv", columns=["a", "b", "c", "d"], keep=dict)
call("files/read/csv_wrong_columns", read, "large.csv", columns=["a", "b"], keep=dict)
call("files/read/csv_groups", grouped_file, "large.csv", groups=["age"], keep=dict)
call("files/read/parquet", read, "large.parquet", keep=dict)
call("files/read/npz", read, "large.npz", keep=dict)
call("files/read/npy", read, "large.npy", -1, keep=dict)
call("files/read/none", read, "nothing.csv", keep=dict)
for _name in ("large.parquet", "large.arrow", "parts"):
    scan(_name, _name, "ecd")
scan("large.npy", "large.npy", "ks", -1)
scan("large.parquet/nystrom", "large.parquet", OPTIONS["skce_uq/nystrom"])
for _name in ("ecd", "log_score", "brier", "spiegelhalter"):
    scan(f"long/{_name}", "long.parquet", _name)
for _name in ("citl", "esce", "ks", "kuiper", "smooth_ece", "ece", "ace", "ece_debiased"):
    scan(f"long/{_name}", "long.parquet", _name, lens="class:1")
scan("long/ucme", "long.parquet", "ucme", n_resamples=19)
for _name in ("nystrom", "fourier"):
    _few = partial(statistics.UnbiasedSKCE, approximation=_name, rank=4)
    scan(f"long/skce_uq_{_name}", "long.parquet", _few, n_resamples=19)
scan("long/npy", "long.npy", "ecd", -1)
scan("long/two-sided", "long.parquet", "citl", lens="top_label", alternative="two-sided")
scan("long/moments", "long.parquet", "ecd", null="moments")
scan("long/tolerance", "long.parquet", "citl", tolerance=0.01, alternative="over")
