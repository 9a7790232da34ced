"""Every public function and class, called with every argument wrong: an answer, or one sentence.

What is public is found by looking: a new function is covered as soon as it is public.
"""

import ast
import importlib
import inspect
import pickle
import signal
import timeit
import types
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import caltest
from caltest import InputError
from caltest._arguments import Whole, arguments

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]] * 5)
Y = np.array([0, 1, 2, 0] * 4 + [1, 0, 1, 2])
TWO, BINARY = P[:, 0].copy(), (Y == 0).astype(int)
SECONDS = 20  # of one call, on a machine that has other work

# ---------------------------------------------------------------------- what is public

#: Records that functions return, and parts of the machinery that are given checked data only.
NOT_FOR_USERS = {
    "Audit", "AuditPlan", "CalibrationResult", "Comparison", "MonitorState", "Recalibration",
    "ReliabilityDisplay", "Scorer", "bounds.Certificate", "bounds.MiscalibrationBounds",
    "estimation.SquaredErrorEstimate", "planning.PowerResult", "planning.SampleSizeResult",
    "plots.PITDisplay", "plots.SurvivalDisplay",
    "binning.ConsistencyBand", "binning.share_bands",
    "data.Rows", "data.Sample", "data.subsample",
    "datasets.DigitsPredictions",
    "estimation.Fitted", "estimation.FunctionRisk", "estimation.PlugIn",
    "files.Stored", "files.scan_arrays",
    "kernels.fitted", "lenses.Reduction", "nulls.Answer", "nulls.ComponentAnswer", "nulls.Question",
    "nulls.answer_of", "nulls.check_alternative", "nulls.find_null", "nulls.observed_value",
    "nulls.of_calibrated",
    "nulls.possible_nulls", "planning.Pilot", "planning.PowerPoint", "plots.Panel",
    "simulation.Simulated", "statistics.find_statistic",
}  # fmt: skip


#: Classes whose methods users call.
MADE = {
    "Audit", "BoundsDisplay", "CalibrationResult", "Certificate", "Comparison",
    "ComparisonDisplay", "MiscalibrationBounds", "Monitor", "MonitorDisplay", "MonitorState",
    "NullDisplay", "PowerDisplay", "PowerResult", "SquaredErrorEstimate",
}  # fmt: skip

WITHOUT_PICTURE = {"Audit.plot"}  # whatever it is given


def named():
    """Yield the public names with what they stand for, each object once."""
    seen = set()
    for name in caltest.__all__:
        found = getattr(caltest, name)
        members = {name: found}
        if isinstance(found, types.ModuleType):
            own = [
                x for x, of in vars(found).items() if getattr(of, "__module__", "") == found.__name__
            ]
            own = getattr(found, "__all__", [each for each in own if not each.startswith("_")])
            members = {f"{name}.{each}": getattr(found, each) for each in own}
        for full, each in members.items():
            ours = getattr(each, "__module__", "").startswith("caltest")
            if ours and isinstance(each, type | types.FunctionType) and id(each) not in seen:
                seen.add(id(each))
                yield full, each


def is_made_by_users(name, of):
    abstract = isinstance(of, type) and (inspect.isabstract(of) or issubclass(of, Exception))
    return name not in NOT_FOR_USERS and not abstract


@cache
def public_callables():
    """Return functions, constructors and methods by name; those of objects by class and name."""
    found = {name: of for name, of in named() if is_made_by_users(name, of)}
    for name, of in named():
        if not isinstance(of, type) or issubclass(of, Exception):
            continue
        for method, how in inspect.getmembers_static(of):
            ours = isinstance(how, types.FunctionType) and of.__name__ in MADE
            if method.startswith("from_"):
                found[f"{name}.{method}"] = getattr(of, method)
            elif ours and not method.startswith("_") and f"{name}.{method}" not in WITHOUT_PICTURE:
                found[f"{name}.{method}"] = (of.__name__, method)
    return found


def public(name):
    """Return what is called: a function, a class, or a method of an object that was made."""
    found = public_callables()[name]
    return getattr(made()[found[0]], found[1]) if isinstance(found, tuple) else found


# ---------------------------------------------------------------------- right arguments


@cache
def made():
    """Return an object of every class whose methods users call."""
    tested = caltest.test(P, Y, "ecd", n_resamples=19, rng=0)
    compared = caltest.compare({"a": P, "b": P[:, [1, 0, 2]]}, Y, "ecd")
    planned = caltest.power(model, 20, "ecd", n_datasets=2, rng=0)
    bounded = caltest.miscalibration_bounds(TWO, BINARY, n_resamples=99, rng=0, confidence=0.5)
    proved = caltest.certificate(TWO, BINARY)
    audited = caltest.audit(P, Y, n_resamples=199, min_rows=5, lenses="top_label", rng=0)
    watched = caltest.Monitor()
    monitored = watched.update(P, Y)
    shown = {"Monitor": monitored, "Bounds": bounded, "Comparison": compared}
    shown |= {"Power": planned, "Null": tested}
    pictured = [getattr(caltest.plots, f"{name}Display")(of) for name, of in shown.items()]
    each = {audited, tested, compared, planned, bounded, proved, watched, monitored, *pictured}
    fitted = caltest.estimate_squared_error(TWO, BINARY, functions="binning", pvalue="none", n_folds=2)
    objects = {type(one).__name__: one for one in (*each, fitted)}
    assert set(objects) == MADE
    return objects


def model(n_samples, *, rng):
    probs = rng.dirichlet(np.ones(2), n_samples)
    return probs, (rng.random(n_samples) < probs[:, 1]).astype(int)


class Classifier:
    """It says what it is given."""

    classes_ = (0, 1, 2)

    def predict_proba(self, X):
        return X


#: Right values of required arguments, and small ones of those that cost time, as expressions.
RIGHT = {
    "probs": "P.copy()", "labels": "Y.copy()", "models": "{'a': P.copy(), 'b': P[:, [1, 0, 2]]}",
    "model": "model", "first": "'a'", "second": "'b'", "n": "20", "power": "0.8", "n_datasets": "2",
    "min_n": "20", "max_n": "30", "audit": "made()['Audit']",
    "bounds": "made()['MiscalibrationBounds']", "certificate": "made()['Certificate']",
    "comparison": "made()['Comparison']", "mean": "np.zeros(3)", "covariance": "np.ones(3)",
    "means": "np.zeros((3, 2))", "sd": "1.0", "members": "np.arange(12.0).reshape(3, 4)",
    "levels": "[0.1, 0.25, 0.5, 0.9]", "values": "np.arange(12.0).reshape(3, 4)", "name": "'numpy'",
    "edges": "[0.0, 0.5, 1.0]", "which": "1", "threshold": "10.0", "level": "0.5", "cells": "10",
    "k": "1", "sets": "[[0, 1], [2]]", "lens": "'top_label'",
    "parts": "[(caltest.kernels.Gaussian(), np.eye(3))]",
    "kernels": "(caltest.kernels.Gaussian(), caltest.kernels.Linear())",
    "kernel": "caltest.kernels.Gaussian()", "scale": "0.5", "alpha": "0.05", "n_resamples": "199",
    "n_points": "4", "n_draws": "200", "truth_draws": "10", "n_folds": "2", "n_samples": "12",
    "h": "caltest.estimation.Temperature(2.0).fit(P, Y)", "given": "[0.5]",
    "distribution": "__import__('scipy.stats').stats.norm(np.zeros(3), 1.0)",
    "function": "lambda probs, labels: float(labels.sum())", "temperature": "0.5", "pi": "0.5",
    "beta": "np.full(2, 0.5)", "share": "0.5", "wanted": "0.5", "scores": "[0.5]", "place": "0",
    "row": "0", "functions": "'binning'", "X": "P.copy()", "y": "Y.copy()", "min_rows": "5",
    "predicted": "caltest.predictive.Normal(np.zeros(20), sd=1.0)",
    "outcomes": "np.linspace(-2.0, 2.0, 20)", "entry": "'mu'", "by": "'average'",
    "parameters": "np.linspace(-2.0, 2.0, 60)", "draws": "np.linspace(-3.0, 3.0, 300).reshape(5, 60)",
}  # fmt: skip
#: What displays show.
SHOWN = {
    "BoundsDisplay": "MiscalibrationBounds",
    "ComparisonDisplay": "Comparison", "PowerDisplay": "PowerResult",
    "MonitorDisplay": "MonitorState",
}  # fmt: skip
#: The same for one callable alone.
OWN = {
    "estimate_squared_error": {"probs": "TWO.copy()", "labels": "BINARY.copy()"},
    "miscalibration_bounds": {"probs": "TWO.copy()", "labels": "BINARY.copy()"},
    "bounds.miscalibration_bounds": {"confidence": "0.5"},
    "ReliabilityDisplay.from_estimator": {"model": "Classifier()"},
}
#: What is not required, and costs time.
SMALL = {
    "n_resamples", "n_datasets", "n_points", "n_draws", "n_folds", "truth_draws", "min_n", "max_n",
    "n_samples", "functions", "min_rows",
}  # fmt: skip
SIMULATED = ("classwise", "local", "mixture", "noisy", "tempered", "true_ece_tv", "true_skce")


def right(name, of, directory):
    """Return right arguments for all that is required, and for what would take long else."""
    found = {}
    for parameter in inspect.signature(of).parameters.values():
        required = parameter.default is parameter.empty
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.name == "path":
            writes = "save" in name
            picture = "picture.png" if "Display" in name else "report.html"
            found["path"] = directory / (picture if writes else "data.csv")
        elif parameter.name == "result":
            display = next((part for part in name.split(".") if part.endswith("Display")), "")
            found["result"] = made()[SHOWN.get(display, "CalibrationResult")]
        elif parameter.name == "alpha" and name.split(".")[-1] in SIMULATED:
            found["alpha"] = [1.0, 1.0]
        elif required or parameter.name in SMALL:
            own = OWN.get(name, {})
            assert parameter.name in RIGHT, f"say in RIGHT what a right {parameter.name!r} is"
            found[parameter.name] = eval(own.get(parameter.name, RIGHT[parameter.name]))
    return found


# ---------------------------------------------------------------------- wrong arguments


class Silent:
    """It has no text."""

    def __repr__(self):
        raise RuntimeError("no text")


def endless():
    values = []
    values.append(values)
    return values


#: Expressions, so that every call has its own.
HOSTILE = [
    "None", "'x'", "'x' * 5000", "'a\\nb'", "-1", "0", "1.5", "float('nan')", "float('inf')", "True",
    "10**5000", "-(10**5000)", "'9' * 5000", "[]", "{}", "{1, 2}", "object()", "np.array([[[1]]])",
    "np.full(3, np.nan)", "np.array([object(), None, 1], dtype=object)", "pd.NA", "Decimal('0.5')",
    "1j", "b'x'", "int", "lambda: 1", "iter([1, 2])", "Silent()", "endless()", "[10**5000] * 3",
    "pd.DataFrame({None: [0.5, 0.5], float('nan'): [0.5, 0.5]})", "['a', 'b']", "{'a': object()}",
    "'\\x1b[31m\\u202e'", "'\\ud800'", "np.ma.masked", "pd.NaT", "5e-324",
]  # fmt: skip


@contextmanager
def limited():
    """Stop what takes too long, where the system can."""

    def stop(*_):
        pytest.fail(f"no answer within {SECONDS} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch, tmp_path):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    pd.DataFrame(P, columns=["a", "b", "c"]).assign(label=np.array(["a", "b", "c"])[Y]).to_csv(
        tmp_path / "data.csv", index=False
    )
    yield
    plt.close("all")


def complaint(of, given, argument):
    """Return what is wrong with how a call was answered, or None."""
    arrays = {name: value.copy() for name, value in given.items() if isinstance(value, np.ndarray)}
    try:
        with limited():
            found = of(**given)
            if hasattr(found, "__enter__"):
                with found:
                    pass
    except InputError as error:
        text = str(error)
        shown = text.isprintable() or argument == "path"  # the name of a file is a name
        if not shown or len(text) > 500 or not text.strip():
            return f"a message of {len(text)} characters: {text[:200]!r}"
    except Exception as error:  # what is to be found
        return f"{type(error).__name__}: {str(error)[:150]!r}"
    for name, value in arrays.items():
        if not np.array_equal(given[name], value, equal_nan=value.dtype.kind == "f"):
            return f"{name} was changed"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", public_callables())
@pytest.mark.filterwarnings("ignore:More than 20 figures")
def test_a_wrong_argument_is_answered_in_a_sentence(name, tmp_path):
    of = public(name)
    complaints = []
    for argument, parameter in inspect.signature(of).parameters.items():
        if argument.startswith("_") or parameter.kind is parameter.VAR_KEYWORD:
            continue
        for kind in HOSTILE:
            found = complaint(of, {**right(name, of, tmp_path), argument: eval(kind)}, argument)
            if found:
                complaints.append(f"{argument} = {kind}: {found}")
    assert not complaints, "\n".join([f"{len(complaints)} of {name}", *complaints])


#: Arrays that are arguments, though no required ones.
_ARRAYS = {"points": lambda: P[:3].copy(), "outcomes": lambda: np.zeros(3), "truth": lambda: P.copy()}


@pytest.mark.parametrize("name", public_callables())
def test_what_is_masked_is_not_read(name, tmp_path):
    """Neither what lies beneath a mask nor the NaN that a list makes of it is data."""
    of = public(name)
    given = right(name, of, tmp_path)
    known = inspect.signature(of).parameters
    given |= {each: make() for each, make in _ARRAYS.items() if each in known}
    for argument, value in given.items():
        if not isinstance(value, np.ndarray) and not (
            isinstance(value, list) and value and isinstance(value[0], float)
        ):
            continue
        array = np.ma.masked_array(value, mask=np.zeros(np.shape(value)))
        array[-1] = np.ma.masked
        for masked in (array, list(array)):
            with pytest.raises(InputError):
                of(**{**given, argument: masked})


# ---------------------------------------------------------------------- calls that do not fit


def test_editors_are_told_of_every_public_name():
    imports = ast.parse(Path(caltest.__file__).with_suffix(".pyi").read_text("utf-8")).body[1:]
    told = [(of.module, name.name, name.asname) for of in imports for name in of.names]
    assert all(name == public for _, name, public in told)
    assert {name for _, name, _ in told} == set(caltest.__all__) == set(dir(caltest))
    for home, name, _ in told:
        assert getattr(importlib.import_module(home), name) is getattr(caltest, name)


def test_signatures_and_documentation_survive():
    for name, of in named():
        assert not name.startswith("_")
        if isinstance(of, types.FunctionType) and name not in NOT_FOR_USERS:
            assert of.__doc__, name
            assert "args" not in inspect.signature(of).parameters, name
    assert inspect.signature(caltest.test).parameters["n_resamples"].default is None
    assert inspect.signature(caltest.statistics.ECE).parameters["binning"].default is None
    assert caltest.test.__module__ == "caltest.testing"
    assert pickle.loads(pickle.dumps(caltest.test)) is caltest.test
    assert pickle.loads(pickle.dumps(caltest.statistics.ECE())) == caltest.statistics.ECE()


def test_a_check_costs_microseconds():
    @arguments(k=Whole(2))
    def checked(probs, labels, k=None, *, n_jobs=None, alpha=0.05):
        return k

    def plain(probs, labels, k=None, *, n_jobs=None, alpha=0.05):
        return k

    def seconds(of):
        return (
            min(timeit.repeat(lambda: of(1, 2, 3, n_jobs=1, alpha=0.1), number=2000, repeat=5)) / 2000
        )

    assert seconds(checked) - seconds(plain) < 2e-5  # 3 µs on a machine at rest


# ---------------------------------------------------------------------- words


@pytest.mark.parametrize("call", [caltest.audit, caltest.estimate, caltest.recalibration])
def test_a_file_that_is_not_read_is_to_be_loaded(call, tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([P, Y]))
    stored = caltest.files.scan(tmp_path / "rows.npy", label=-1)
    with pytest.raises(InputError, match=r"call \.load\(\) on it, and give the \.rows and \.labels"):
        call(stored, Y)
    read = stored.load()
    with pytest.raises(InputError, match=r"give its \.rows first, and its \.labels second"):
        call(read, Y)


def test_unnamed_columns_and_odd_indexes_are_told():
    for unnamed in (None, float("nan")):
        with pytest.raises(InputError, match=r"column 0 of probs .* for a name; name every column"):
            caltest.data.sample(pd.DataFrame(P, columns=[unnamed, "b", "c"]), Y)
    index = pd.Index([[row] for row in range(len(Y))], dtype=object)
    with pytest.raises(InputError, match="indexes of probs and labels differ"):
        caltest.data.sample(pd.DataFrame(P, index=index), pd.Series(Y, index=index[::-1]))


@pytest.mark.parametrize("what", ["probs", "labels"])
def test_advice_on_objects_works(what):
    from fractions import Fraction

    objects = {
        "probs": np.array([[Decimal("0.5")] * 2, [Decimal("0.25"), Decimal("0.75")]]),
        "labels": np.array([Fraction(0), Fraction(1)], dtype=object),
    }
    given = {"probs": [[0.5, 0.5], [0.25, 0.75]], "labels": [0, 1], what: objects[what]}
    with pytest.raises(InputError, match=rf"with np\.asarray\({what}, dtype=(int|float)\)\.$"):
        caltest.data.sample(**given)
    given[what] = np.asarray(objects[what], dtype=float if what == "probs" else int)
    caltest.data.sample(**given)


def test_numbers_of_few_bits_are_numbers():
    """255 + 1 of 8 bits is 0."""
    rng = np.random.default_rng(0)
    p = rng.random(40)
    y = (rng.random(40) < p).astype(int)
    few = caltest.test(p, y, n_resamples=np.uint8(199), rng=1)
    assert few.pvalue == caltest.test(p, y, n_resamples=199, rng=1).pvalue
