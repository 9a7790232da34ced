"""Audits of point forecasts are written and drawn in units of the outcome."""

import math
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

import caltest
from caltest import report
from caltest._numbers import in_unit_of, outward_points, percents, points, signed_points
from caltest.auditing.views import Isotonic
from caltest.text import sizes


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(1)
    forecast = rng.uniform(50.0, 150.0, 300)
    outcomes = forecast - 8.0 + rng.uniform(-20.0, 20.0, 300)
    stated = caltest.predictive.Point(forecast, "mean", low=0.0, high=200.0)
    return replace(caltest.audit(stated, outcomes, rng=0), unit="EUR")


def changed(found, **facts):
    """The same audit, and other facts of its one view."""
    view = replace(found.views[0], **facts)
    checks = tuple(replace(each, view=view) for each in found.checks)
    return replace(found, views=(view,), checks=checks)


def test_numbers_have_the_digits_that_intervals_justify(found):
    write = in_unit_of(lambda _, function, *given: function(*given))
    assert write(found, points, 1500.0) == "1,500 EUR"
    assert write(replace(found, unit=""), points, 0.05) == "0.05"
    assert write(found, outward_points, -3012.0, 8123.0) == ("−3,100", "8,200")
    assert write(found, outward_points, -math.inf, 5.31) == ("−∞", "5.31")
    assert write(found, signed_points, 3.24, 1.2, 5.3) == "+3.2"
    assert write(found, signed_points, 0.0, -40.0, 40.0) == "0"
    assert write(found, percents, 128.13, 124.89) == ("128.1", "124.9")
    assert write(found, percents, 12345.6, 11234.5, 0, 900.0, 1300.0) == ("12,346", "11,234")
    assert (points(0.05), signed_points(0.05)) == ("5 points", "+5.0")  # and so again outside


def test_sentences_are_in_units_of_the_outcome(found):
    text = str(found)
    assert found.headline.startswith("The predicted mean is about ")
    assert found.headline.endswith(" EUR too high.")
    assert "Errors in EUR (predicted − observed; negative: too low), with intervals" in text
    for word in ("points", "probabilit", "observed rate", "true rate", "event"):
        assert word not in text
    limited = replace(found, materiality_ratio=1.01)
    assert limited.headline.endswith(" times the observed mean.")
    assert "times the true mean (95% confidence)" in str(limited)


def test_an_end_that_is_not_known_is_said(found):
    between = in_unit_of(lambda _, *ends: sizes.between(*ends, "mean"))
    assert between(found, 3.1, math.inf) == "at least 3.10 EUR too high"
    assert between(found, -math.inf, 5.3) == "between an unknown amount too low and 5.30 EUR too high"
    for ends, told in (((-math.inf, 5.0), "5.00 or less"), ((-math.inf, math.inf), "not known")):
        audit = changed(found, low=ends[0], high=ends[1])
        assert in_unit_of(lambda audit: sizes.ends(audit.views[0], audit))(audit) == told


@pytest.mark.slow
def test_pages_and_pictures(found):
    fit = Isotonic((60.0, 100.0, 140.0), (50.0, 92.0, 300.0), (40.0, 80.0, 280.0), (60.0, 99.0, 320.0))
    curved = changed(found, isotonic=fit)
    page, table = report.to_html(curved), report.to_markdown(found)
    here = "Error, EUR", "forecast, EUR", "mean outcome, EUR", "in EUR; a minus", "regression; shaded"
    assert all(text in page for text in here)
    assert not any(text in page for text in ("percentage point", "predicted probability"))
    assert "| Error, EUR |" in table
    assert "<td>5.00 or less</td>" in report.to_html(changed(found, low=-math.inf, high=5.0))
    assert " EUR too high" in report.to_junit(found)
    assert jsonschema.validate(curved.to_dict(), report.schema()) is None
    labels = [(ax.get_xlabel(), ax.get_ylabel()) for ax in curved.plot().axes_]
    assert ("forecast, EUR", "mean outcome, EUR") in labels


def test_a_limit_says_which_end_of_outcomes_it_takes():
    rng = np.random.default_rng(0)
    forecast = rng.uniform(50.0, 150.0, 400)
    outcomes = forecast + rng.uniform(-20.0, 20.0, 400)
    stated = caltest.predictive.Point(forecast, low=0.0)
    audit = caltest.audit(stated, outcomes, materiality=9.0)
    text = " ".join(str(audit).split())
    assert (audit.ends, audit.story.unsettled[0].place) == ((True, False), "ends")
    assert "lies inside, but is not exact where forecasts are too low; without high" in text
    assert "the largest number that an outcome can be (high)" in text
    assert "needs high" in text


@pytest.mark.slow
def test_of_expectiles_a_value_is_implied(found):
    stated = replace(found, functional="expectile:0.8")
    text = str(stated) + report.to_html(stated) + report.to_markdown(stated)
    assert "implied" in text
    assert "forecast less error" in " ".join(text.split())
    for word in ("mean outcome", "observed mean", "Observed<", "| Observed"):
        assert word not in text
