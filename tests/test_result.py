"""The result: frozen, inert, printed the same for the same seed."""

import copy
import importlib
import json
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from xml.etree import ElementTree

import numpy as np
import pytest
from support import P6, Y6

import caltest
from caltest import testing, text
from caltest.kernels import Exponential
from caltest.results import CalibrationResult, Result
from caltest.statistics import LinearSKCE, UnbiasedSKCE

RESULT = caltest.test(P6, Y6, UnbiasedSKCE(Exponential(0.5)), n_resamples=99, rng=0)

SUMMARY = """\
No miscalibration found, p = 0.48 (exact), which does not prove calibration. The probability
that the top class is right: predicted 65.0%, observed 83.3%.

What to do next
  1. To show that errors are small, give caltest.audit the error that matters
     (materiality=0.02).

  data       6 predictions of 3 classes
  H0         the model is calibrated; rows are independent, and labels were not used to fit the
             model
  statistic  skce_uq = −0.000177731  (squared kernel calibration error)
  null       Monte Carlo test, exact: valid for any sample size
  p-value    0.48  (99 resamples; 95% Monte Carlo interval 0.37 to 0.58)"""


def test_summary_is_the_same_for_the_same_seed():
    assert RESULT.summary() == str(RESULT) == SUMMARY
    assert "bandwidth 0.5" in RESULT.summary(verbose=True)


def test_what_is_approximate_says_about():
    given = {"n_resamples": 99, "rng": 0}
    asymptotic = caltest.test(P6, Y6, LinearSKCE(Exponential(0.5)), null="normal")
    clusters = caltest.test(P6, Y6, "ecd", clusters=[0, 0, 1, 2, 3, 3], **given)
    assert "(asymptotic)" in asymptotic.summary()
    assert "valid only as the number of rows grows" in asymptotic.summary()
    assert "approximate: an approximation without a guarantee" in clusters.summary()


def test_summary_of_a_bound_through_a_lens():
    result = caltest.test(P6, Y6, LinearSKCE(Exponential(0.5)), null="bound", lens="top_label")
    lines = result.summary().splitlines()
    assert "  data       6 predictions, lens top_label" in lines
    (null,) = [line for line in lines if line.startswith("  null")]
    assert (
        null == "  null       bound, bound: valid for any sample size, but much larger than necessary"
    )
    assert "p is at most " in result.summary().replace("\n", " ")


@pytest.mark.parametrize(
    ("side", "words"),
    [
        ("less", "a value this small or smaller counts"),
        ("two-sided", "a value at least this extreme in either direction counts"),
    ],
)
def test_summary_says_which_side(side, words):
    def label_sum(probs, labels):
        return float(labels.sum())

    result = caltest.test(P6, Y6, label_sum, alternative=side, n_resamples=9, rng=0)
    text = " ".join(result.summary().split())
    assert words in text
    assert "label_sum = 5 (the value of your function)" in text


def test_summary_prints_every_warning_within_the_page():
    text = replace(RESULT, warnings=("One thing. " * 20, "Another.")).summary()
    assert text.count("Note: ") == 2
    assert max(map(len, text.splitlines())) <= 96


def test_printing_computes_nothing():
    before = copy.copy(RESULT.__dict__)
    str(RESULT), repr(RESULT), RESULT.to_dict(), RESULT.rejects(0.05)
    assert RESULT.__dict__ == before
    assert "null_distribution" not in repr(RESULT)


def test_frozen():
    with pytest.raises(FrozenInstanceError):
        RESULT.pvalue = 0.01


def test_rejects_at_and_below_the_level():
    result = replace(RESULT, pvalue=0.05)
    assert result.rejects(0.05)
    assert not result.rejects(0.0499)


def test_plain_data():
    plain = RESULT.to_dict()
    assert list(plain)[:4] == ["statistic", "pvalue", "name", "null"]
    assert "null_distribution" not in plain
    assert len(RESULT.to_dict(draws=True)["null_distribution"]) == 99
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_plain_data_is_strict_json():
    """Numbers that are not finite, numpy scalars, arrays and nested options."""
    inner = {"c": (np.float32(1), -np.inf)}
    parameters = {"a": np.nan, "b": inner, "d": np.arange(2), "e": np.bool_(True)}
    result = CalibrationResult(
        statistic=np.inf,
        pvalue=np.float64(0.5),
        name="x",
        null="y",
        guarantee="exact",
        alternative="greater",
        n_samples=np.int64(3),
        n_classes=2,
        parameters=parameters,
        null_distribution=np.array([1.0, np.inf]),
    )
    plain = json.loads(json.dumps(result.to_dict(draws=True), allow_nan=False))
    assert plain["statistic"] == "inf"
    assert plain["parameters"] == {"a": "nan", "b": {"c": [1.0, "-inf"]}, "d": [0, 1], "e": True}
    assert plain["null_distribution"] == [1.0, "inf"]


def test_the_seed_repeats_the_numbers():
    again = caltest.test(P6, Y6, UnbiasedSKCE(Exponential(0.5)), n_resamples=99, rng=RESULT.seed)
    assert np.array_equal(again.null_distribution, RESULT.null_distribution)


def test_an_answer_without_draws_looks_for_copies_when_it_is_asked(monkeypatch):
    looked = []
    monkeypatch.setattr(testing, "premises_of", lambda *given: looked.append(given) or ())
    labels = (np.arange(4000) % 2).tolist()
    waiting = caltest.test(np.linspace(0.01, 0.99, 4000), labels, "spiegelhalter", null="normal")
    assert not looked
    assert len(pickle.dumps(waiting)) < 4000  # without the rows
    assert waiting.premises == waiting.premises == ()
    assert len(looked) == 1


def test_pickles():
    assert pickle.loads(pickle.dumps(RESULT)).to_dict(draws=True) == RESULT.to_dict(draws=True)


# ------------------------------------------------------------------ of all results


def kinds_of_results(base=Result):
    """Every class of results, whichever module has it."""
    for each in base.__subclasses__():
        yield each
        yield from kinds_of_results(each)


def every_kind():
    for module in ("auditing", "bounds", "comparison", "cox", "estimation", "planning"):
        importlib.import_module(f"caltest.{module}")
    return [each for each in kinds_of_results() if each.__module__.startswith("caltest.")]


@pytest.mark.parametrize("kind", every_kind(), ids=lambda kind: kind.__name__)
def test_every_result_has_its_words(kind):
    """In `caltest.text`, where its base class or it has a function; the class has none of its own."""
    known = [each for each in kind.__mro__ if each.__name__ in text.SUMMARIES]
    assert known
    module, name = text.SUMMARIES[known[0].__name__].split(".")
    assert callable(getattr(importlib.import_module(f"caltest.text.{module}"), name))
    for name in ("__str__", "summary", "_repr_html_"):
        if (kind.__name__, name) != ("Audit", "_repr_html_"):  # the first screen of its report
            assert getattr(kind, name) is getattr(Result, name)


@pytest.mark.slow
def test_results_import_no_words():
    """What is written of a result is loaded when it is printed, and of that kind alone."""
    code = (
        "import sys, caltest, caltest.auditing, caltest.bounds, caltest.comparison, caltest.planning\n"
        "import caltest.estimation\n"
        "found = caltest.test([[0.2, 0.8], [0.6, 0.4]] * 5, [1, 0] * 5, n_resamples=9, rng=0)\n"
        "def loaded(): return {name for name in sys.modules if name.startswith('caltest.text')}\n"
        "assert not loaded()\n"
        "found.summary()\n"
        "assert 'caltest.text.summaries' in loaded()\n"
        "assert 'caltest.text.audit' not in loaded()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_notebooks_show_a_sentence_and_a_table():
    found = caltest.test([[0.2, 0.8], [0.6, 0.4]] * 5, [1, 0] * 5, n_resamples=9, rng=0)
    shown = replace(found, name="<b>", measures="a & b", warnings=("One < two.",))._repr_html_()
    page = ElementTree.fromstring(f"<div>{shown}</div>")  # well-formed
    bold = page.find("p/strong").text
    assert bold.startswith(f"No miscalibration found, p = {found.pvalue:.3g} (exact), which")
    cells = {row.find("th").text: row.find("td").text for row in page.iter("tr")}
    assert {"data", "statistic", "null", "p-value"} < set(cells)
    assert cells["statistic"].startswith("<b> = ")
    assert cells["statistic"].endswith("(a & b)")
    assert cells["note"] == "One < two."
    assert "<b>" not in shown


def test_one_line_has_the_facts_that_matter():
    found = caltest.test([[0.2, 0.8], [0.6, 0.4]] * 600, [1, 0] * 600, "ecd", n_resamples=9, rng=0)
    assert repr(found) == f"CalibrationResult(ecd: p = {found.pvalue:.3g}, n = 1,200, exact)"
    assert "\n" not in repr(replace(found, name="a\nb"))


def test_line_breaks_of_the_data_are_seen_and_those_of_templates_are_not():
    found = caltest.test([[0.2, 0.8], [0.6, 0.4]] * 5, [1, 0] * 5, n_resamples=9, rng=0)
    text = str(replace(found, measures="a\r\nb  c\n"))
    assert "(a\\r\\nb  c\\n)" in text
    assert "\r" not in text
    assert "  " not in text.partition("\n")[0]
