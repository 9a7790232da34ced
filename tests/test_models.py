"""Fitted classifiers: their displays, their scores, and class names in place of columns."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caltest
from caltest import InputError
from caltest.data import sample

IRIS = load_iris()
X, Y = IRIS.data, IRIS.target
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)
CLASSES = {
    "places": np.array([0, 1, 2]),
    "numbers": np.array([7, -1, 3]),
    "text": np.array(["virginica", "setosa", "versicolor"]),
    "numbers in text": np.array(["3", "1", "2"]),
    "floats": np.array([2.0, 1.0, 3.0]),
}


def fitted(classes=CLASSES["text"], model=None):
    return (model or GaussianNB()).fit(X[TRAIN], classes[Y][TRAIN])


# ------------------------------------------------------------------ displays


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("display", ["ReliabilityDisplay"])
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_a_display_of_a_model_is_that_of_its_predictions(display, classes):
    """Whatever the classes are called, and in whatever order the model has them."""
    of, model = getattr(caltest.plots, display), fitted(classes)
    columns = [model.classes_.tolist().index(each) for each in classes]
    probs = model.predict_proba(X[TEST])[:, columns]  # in the order of 0, 1, 2
    assert model.classes_.tolist() == sorted(classes.tolist())
    options = {"lens": "top_label", "rng": 0, "n_resamples": 199}
    shown = of.from_estimator(model, X[TEST], classes[Y][TEST], **options)
    plain = of.from_predictions(probs, Y[TEST], **options)
    found = [getattr(each, "result", None) or each.panels[0].result for each in (shown, plain)]
    assert found[0].statistic == pytest.approx(found[1].statistic, abs=1e-12)
    assert found[0].pvalue == found[1].pvalue


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifierCV(GaussianNB(), cv=3),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
        HistGradientBoostingClassifier(max_iter=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_all_that_predicts_probabilities_is_shown(model):
    fitted(model=model)
    labels = pd.Series(CLASSES["text"][Y], name="species").astype("category")[TEST]
    display = caltest.ReliabilityDisplay.from_estimator(
        model, X[TEST], labels, lens="class:setosa", rng=0
    )
    assert display.panels[0].title == "Class setosa"


@pytest.mark.usefixtures("pictures")
def test_labels_of_two_classes():
    model = GaussianNB().fit(X, Y == 1)
    for y in (Y == 1, (Y == 1).astype(int)):
        display = caltest.ReliabilityDisplay.from_estimator(model, X, y, rng=0)
        probs = model.predict_proba(X)[:, 1]
        expected = caltest.ReliabilityDisplay.from_predictions(probs, y, rng=0)
        assert display.panels[0].result.pvalue == expected.panels[0].result.pvalue


class Odd(ClassifierMixin, BaseEstimator):
    """A model of one's own."""

    def __init__(self, classes=None, columns=3):
        self.columns = columns
        if classes is not None:
            self.classes_ = classes

    def predict_proba(self, X):
        return np.full((len(X), self.columns), 1.0 / self.columns)


def test_a_score_of_one_row_is_none():
    folds = {"cv": LeaveOneOut(), "error_score": "raise"}
    with pytest.raises(InputError, match=r"probs has 1 row; .*in folds of .* \(not LeaveOneOut\)"):
        cross_val_score(GaussianNB(), X, Y, scoring=caltest.scorer("brier"), **folds)
    with pytest.raises(InputError, match="probs has 1 row; give 2 or more"):
        caltest.estimate([0.5], [1])


def test_a_model_without_classes_has_columns():
    given = Odd(columns=3), X, Y
    display = caltest.ReliabilityDisplay.from_estimator
    scored = caltest.scorer("brier")(*given)
    assert scored == -abs(caltest.estimate(np.full((150, 3), 1 / 3), Y, "brier"))
    assert "classes_" in inspect.getdoc(display)


WRONG = {
    "regressor": (LinearRegression().fit(X, Y), Y, "and these are point forecasts; "),
    "decisions": (RidgeClassifier().fit(X, Y), Y, "CalibratedClassifierCV makes one of a classifier"),
    "unfitted": (LogisticRegression(), Y, "model is LogisticRegression(), which is not fitted; fit it"),
    "unfitted pipeline": (make_pipeline(StandardScaler(), GaussianNB()), Y, "which is not fitted"),
    "unfitted search": (GridSearchCV(GaussianNB(), {}), Y, "which is not fitted"),
    "class": (GaussianNB, Y, "model is the class GaussianNB; give a fitted classifier"),
    "unseen": (fitted(), np.where(Y == 1, "owl", "setosa"), "label 'owl' in row 50"),
    "numbers of a model of text": (fitted(), Y, "not the name of a column of probs ('setosa'"),
    "text of a model of numbers": (fitted(CLASSES["numbers"]), ["8"] * 150, "label '8' in row 0"),
    "several labels": (
        RandomForestClassifier(n_estimators=2).fit(X, np.c_[Y, Y]), Y, "predicts 2 labels per row",
    ),
    "table of labels": (fitted(), np.c_[Y, Y], "y has 2 columns; give one class per row"),
    "too few classes": (Odd(np.array([0, 1])), Y, "the classes 0, 1 and predicts 3 columns"),
    "one class": (Odd(np.array([0]), 1), np.zeros(150), "the classes 0 and predicts 1 columns"),
    "classes of a number": (Odd(3), Y, "model has 3 for classes_; give one whose classes_ lists"),
    "classes of lists": (Odd([[0, 1, 2]]), Y, "model has [[0, 1, 2]] for classes_; give one"),
    "other rows": (
        GaussianNB().fit(X[:, :2], Y),
        Y,
        "GaussianNB() does not predict X: predict_proba raises ValueError (X has 4 features",
    ),
    "a fault of its own": (
        Odd(columns="three"),
        Y,
        "raises TypeError (unsupported operand type(s) for /: 'float' and 'str'); give the "
        "columns that it was fitted to, or correct the model.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "labels", "told"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_shown_is_answered_in_a_sentence(model, labels, told):
    for call in (caltest.ReliabilityDisplay.from_estimator, caltest.scorer("ece")):
        with pytest.raises(InputError) as caught:
            call(model, X, labels)
        assert told in str(caught.value)
        assert str(caught.value).endswith(".")


# ------------------------------------------------------------------ several models in one diagram


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("curve", ["binned", "corp"])
def test_several_models_share_a_diagram(curve):
    forest = caltest.datasets.load_digits_predictions("random_forest")
    svm = caltest.datasets.load_digits_predictions("platt_svm")
    probs = {"a forest": forest.probs, "an SVM": svm.probs}
    display = caltest.ReliabilityDisplay.from_predictions(probs, forest.labels, curve=curve, rng=0)
    assert display.names == ("a forest", "an SVM")
    for panel, each in zip(display.panels, probs.values(), strict=True):
        alone = caltest.ReliabilityDisplay.from_predictions(
            each, forest.labels, curve=curve, rng=0, confidence=0.975,
            binning=caltest.binning.EqualMass(10) if curve == "binned" else None,
        ).panels[0]  # fmt: skip
        assert np.array_equal(panel.observed, alone.observed)
        assert panel.result.pvalue == alone.result.pvalue
        for one, other in zip(panel.simultaneous, alone.simultaneous, strict=True):
            if curve == "binned":  # half of the level each, so that both hold together
                assert np.array_equal(one, other)
    (ax,) = display.axes_
    legend = ax.get_legend()
    texts = {text.get_text().partition(",")[0]: text.get_text() for text in legend.get_texts()}
    assert all(texts[name].endswith("p = 0.001") for name in ("a forest", "an SVM"))
    handles = dict(zip(texts, legend.legend_handles, strict=True))
    colours = [handles[name].get_color() for name in ("a forest", "an SVM")]
    assert len({*colours, "white"}) == 3
    filled = [line for line in ax.lines if line.get_linestyle() == "None" != line.get_marker()]
    filled = [line for line in filled if line.get_markerfacecolor() in colours]
    if curve == "binned":
        counted = sum(len(line.get_xdata()) for line in filled)
        assert counted == sum(int(panel.outside.sum()) for panel in display.panels)


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
def test_models_by_name_are_fitted_ones_too():
    import matplotlib.pyplot as plt

    models = {"before": fitted(), "after": fitted(model=CalibratedClassifierCV(GaussianNB(), cv=3))}
    labels = CLASSES["text"][Y][TEST]
    _, axes = plt.subplots(1, 2, layout="constrained")
    for ax in axes:
        display = caltest.ReliabilityDisplay.from_estimator(models, X[TEST], labels, rng=0, ax=ax)
        assert display.ax_ is ax
        texts = [text.get_text().partition(",")[0] for text in ax.get_legend().get_texts()]
        assert {"before", "after"} <= set(texts)
    expected = {name: model.predict_proba(X[TEST]) for name, model in models.items()}
    plain = caltest.ReliabilityDisplay.from_predictions(
        expected, labels, class_names=models["before"].classes_, rng=0
    )
    for one, other in zip(display.panels, plain.panels, strict=True):
        assert np.array_equal(one.observed, other.observed)


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lens": "classwise"}, "give lens='top_label' or that of one class"),
        ({"classes": [0]}, "give lens='top_label' or that of one class"),
        ({"ax": "two"}, "there are 2 axes; give 1"),
    ],
)
def test_several_models_have_one_probability(options, told):
    import matplotlib.pyplot as plt

    if "ax" in options:
        options = {"ax": plt.subplots(1, 2)[1]}
    probs = sample(GaussianNB().fit(X, Y).predict_proba(X), Y).rows.probs
    with pytest.raises(InputError) as caught:
        caltest.ReliabilityDisplay.from_predictions({"a": probs, "b": probs}, Y, rng=0, **options)
    assert told in str(caught.value)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_one_diagram_holds_two_to_four_models(count):
    probs = GaussianNB().fit(X, Y).predict_proba(X)
    with pytest.raises(InputError, match=r"two different ones|there are 5 models"):
        caltest.ReliabilityDisplay.from_predictions({str(k): probs for k in range(count)}, Y)


# ------------------------------------------------------------------ names of classes


CALLS = {
    "test": lambda p, y, **named: caltest.test(p, y, n_resamples=99, rng=0, **named).pvalue,
    "estimate": lambda p, y, **named: caltest.estimate(p, y, **named),
    "audit": lambda p, y, **named: [
        view.observed for view in caltest.audit(p, y, n_resamples=199, rng=0, **named).views
    ],
    "compare": lambda p, y, **named: caltest.compare(
        {"a": p, "b": p[:, [1, 0, 2]]}, y, "skce_uq", **named
    ).values.tolist(),
    "recalibration": lambda p, y, **named: caltest.recalibration(p, y, **named).slope,
    "bin_table": lambda p, y, **named: caltest.bin_table(p, y, **named)["ece"].iloc[-1],
    "certificate": lambda p, y, **named: caltest.certificate(p, y, **named).distance,
    "miscalibration_bounds": lambda p, y, **named: caltest.miscalibration_bounds(
        p, y, n_resamples=199, rng=0, **named
    ).under,
    "estimate_squared_error": lambda p, y, **named: caltest.estimate_squared_error(
        p, y, "top_label", "binning", pvalue="none", rng=0, **named
    ).functions[0].estimate,
    "sample": lambda p, y, **named: sample(p, y, **named).labels.tolist(),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_labels_may_be_the_class_names_everywhere(call, classes):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1.0, 2.0, 3.0], 200)
    labels = (rng.random((200, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    expected = call(probs, labels)
    for names in (classes, classes.tolist(), tuple(classes.tolist()), pd.Index(classes)):
        assert call(probs, classes[labels], class_names=names) == expected
    with pytest.raises(InputError, match=r"has no column|to which integer labels are matched"):
        call(probs, np.where(labels == 2, 99, labels), class_names=classes)


TWO = np.array([[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("probs", "labels", "names", "expected"),
    [
        (TWO, ["dog", "cat"], ["cat", "dog"], [1, 0]),
        (TWO, [1, 0], ["cat", "dog"], [1, 0]),
        (TWO, [2, 1], [1, 2], [1, 0]),
        (TWO, [1, 2], [2, 1], [1, 0]),
        (TWO, [1.0, -1.0], [-1, 1], [1, 0]),
        (TWO, [True, False], [False, True], [1, 0]),
        (TWO, [1, 0], np.array([False, True]), [1, 0]),
        (TWO[:, 1], ["dog", "cat"], ["cat", "dog"], [1, 0]),
        (TWO[:, 1], [True, False], ["cat", "dog"], [1, 0]),
        (TWO[:, :1], ["dog", "cat"], ["cat", "dog"], [1, 0]),
        (pd.DataFrame(TWO, columns=["p0", "p1"]), ["dog", "cat"], ["cat", "dog"], [1, 0]),
        (pd.DataFrame(TWO, columns=["p_cat", "p_dog"]), ["dog", "cat"], ["cat", "dog"], [1, 0]),
    ],
)
def test_names_of_arrays_are_as_those_of_columns(probs, labels, names, expected):
    found = sample(probs, labels, class_names=names)
    assert found.labels.tolist() == expected
    assert found.rows.classes == tuple(map(str, names))


@pytest.mark.parametrize(
    ("probs", "labels", "names", "told"),
    [
        (TWO, [1, 0], ["yes", "no"], "put the column 'no' first"),
        (TWO[:, 1], [1, 0], ["yes", "no"], "put the column 'no' first"),
        (TWO[:, 1], [True, False], ["yes", "no"], "put the column 'no' first"),
        (TWO, [0, 1], [1, 2], "leave the names out (of columns, or class_names)"),
        (TWO, [1, 0], ["a"], "class_names has 1 name for 2 classes"),
        (TWO, [1, 0], [0.5, 1.5], "give a list of names"),
        (TWO, [1, 0], ["a", "a"], "give every class a name of its own"),
        (pd.DataFrame(TWO, columns=["dog", "cat"]), [1, 0], ["cat", "owl"], "holds 'cat', 'ow"),
        (pd.DataFrame(TWO, columns=["p_dog", "p_cat"]), [1, 0], ["cat", "dog"], "in another order"),
    ],
)
def test_names_that_contradict_are_refused(probs, labels, names, told):
    with pytest.raises(InputError) as caught:
        sample(probs, labels, class_names=names)
    assert told in str(caught.value)


def test_a_file_names_its_columns(tmp_path):
    pd.DataFrame(TWO, columns=["cat", "dog"]).assign(label=["cat", "dog"]).to_csv(tmp_path / "a.csv")
    stored = caltest.files.scan(tmp_path / "a.csv", columns=["cat", "dog"])
    with pytest.raises(InputError, match="leave class_names out"):
        caltest.test(stored, class_names=["cat", "dog"])


def test_an_audit_is_called_again_with_its_names():
    p, y = np.tile(TWO, (40, 1)), [0, 1] * 40
    for names in (np.array(["cat", "dog"]), pd.Index(["cat", "dog"]), ["cat", "dog"]):
        audit = caltest.audit(p, y, class_names=names, statistics="ks", n_resamples=99, rng=0)
        assert "class_names=['cat', 'dog']" in audit.call


# ------------------------------------------------------------------ scores


@pytest.mark.parametrize("name", ["ece", "citl", "skce_uq", "brier"])
def test_a_score_is_minus_the_statistic(name):
    model, y = fitted(), CLASSES["text"][Y][TEST]
    value = caltest.estimate(
        model.predict_proba(X[TEST]), y, name, lens="class:setosa", class_names=model.classes_
    )
    score = caltest.scorer(name, lens="class:setosa")(model, X[TEST], y)
    assert type(score) is float
    assert score == (-abs(value) if name in ("citl", "brier") else -value)


@pytest.mark.slow
def test_scores_rank_and_weigh():
    rng = np.random.default_rng(0)
    true = rng.beta(1.0, 1.0, 4000)
    labels = (rng.random(4000) < true).astype(int)

    class Fixed:
        classes_ = np.array(["no", "yes"])

        def __init__(self, power):
            self.power = power

        def predict_proba(self, X):
            odds = (X / (1.0 - X)) ** self.power
            return np.column_stack([1.0 / (1.0 + odds), odds / (1.0 + odds)])

    y = np.array(["no", "yes"])[labels]
    for scoring in (caltest.scorer(), caltest.scorer("skce_uq"), caltest.scorer("ecd")):
        scores = [scoring(Fixed(power), true, y) for power in (1.0, 1.5, 2.0, 4.0)]
        assert scores == sorted(scores, reverse=True)
    weights = np.r_[np.ones(2000), np.zeros(2000)]
    score = caltest.scorer("brier")
    assert score(Fixed(2.0), true, y, sample_weight=weights) == pytest.approx(
        score(Fixed(2.0), true[:2000], y[:2000])
    )


def own(probs, labels):
    return float(np.mean((probs.argmax(axis=1) == labels) - probs.max(axis=1)) ** 2)


@pytest.mark.slow
def test_searches_take_a_scorer():
    y = CLASSES["text"][Y]
    scoring = caltest.scorer("brier", lens="top_label")
    assert pickle.loads(pickle.dumps(scoring)) == scoring
    scores = cross_val_score(GaussianNB(), X, y, scoring=scoring, cv=3)
    assert scores.shape == (3,)
    assert (scores <= 0.0).all()
    found = cross_validate(
        GaussianNB(), X, y, cv=3, scoring={"nll": "neg_log_loss", "own": caltest.scorer(own)}
    )
    assert np.isfinite(found["test_own"]).all()
    model = make_pipeline(StandardScaler(), LogisticRegression())
    values = {"logisticregression__C": [1e-3, 1.0]}
    search = GridSearchCV(model, values, scoring=scoring, cv=3, n_jobs=2)
    assert search.fit(X, y).best_params_ == {"logisticregression__C": 1.0}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_weights_are_routed_to_a_scorer(routing):
    y, weights = CLASSES["text"][Y], np.random.default_rng(0).uniform(0.1, 5.0, len(Y))
    folds = list(StratifiedKFold(3).split(X, y))
    options = {"cv": folds, "params": {"sample_weight": weights}, "error_score": "raise"}
    model = GaussianNB().set_fit_request(sample_weight=False)

    def scores(scoring, **more):
        return cross_val_score(model, X, y, scoring=scoring, **(options | more))

    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        scores(caltest.scorer("brier"))
    asked = caltest.scorer("brier")
    assert asked.set_score_request(sample_weight=True) is asked
    expected = []
    for train, test in folds:
        fitted_to = GaussianNB().fit(X[train], y[train])
        expected.append(asked(fitted_to, X[test], y[test], sample_weight=weights[test]))
    assert scores(asked).tolist() == expected
    assert scores(pickle.loads(pickle.dumps(asked))).tolist() == expected
    plain = scores(caltest.scorer("brier"), params=None).tolist()
    assert plain != expected
    ignored = caltest.scorer("brier").set_score_request(sample_weight=False)
    assert ignored.get_metadata_routing().score.requests == {"sample_weight": False}
    named = caltest.scorer("brier").set_score_request(sample_weight="mass")
    assert scores(named, params={"mass": weights}).tolist() == expected
    several = cross_validate(model, X, y, scoring={"own": asked, "nll": "accuracy"}, cv=folds)
    assert several["test_own"].tolist() == plain
    search = GridSearchCV(model, {"var_smoothing": [1e-9]}, scoring=asked, cv=folds)
    found = search.fit(X, y, sample_weight=weights).cv_results_["mean_test_score"]
    assert found[0] == pytest.approx(np.mean(expected))
    for wrong in (3, "", "a b", "\ud800"):
        with pytest.raises(InputError, match="give True, False, None or a name"):
            asked.set_score_request(sample_weight=wrong)


def test_weights_without_routing():
    with pytest.raises(InputError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        caltest.scorer().set_score_request(sample_weight=True)
    y, weights = CLASSES["text"][Y], np.random.default_rng(0).uniform(0.1, 5.0, len(Y))
    scoring = {"own": caltest.scorer("brier"), "nll": "neg_log_loss"}
    for given in (scoring, scoring["own"]):
        search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, scoring=given, cv=3, refit=False)
        name = "mean_test_own" if given is scoring else "mean_test_score"
        one, other = (search.fit(X, y, sample_weight=w).cv_results_[name][0] for w in (None, weights))
        assert one != other


@pytest.mark.parametrize("given", [{"statistic": "brierr"}, {"lens": "top"}, {"statistic": 3}])
def test_a_wrong_scorer_is_none(given):
    with pytest.raises(InputError):
        caltest.scorer(**given)


@pytest.mark.slow
def test_scikit_learn_is_no_dependency():
    code = (
        "import sys; sys.modules['sklearn'] = None; import caltest; caltest.scorer('ece'); "
        "caltest.ReliabilityDisplay.from_estimator"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
