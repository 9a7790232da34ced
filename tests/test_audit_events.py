"""Statistics of single classes, from the rows in which they came true: the same as from all rows."""

import numpy as np
import pytest
from support import dirichlet

import caltest
from caltest.data import Rows
from caltest.forms.sums import EventColumns, OfOneClass, of_events
from caltest.statistics import ECD, Brier, CalibrationInTheLarge, KolmogorovSmirnov, Kuiper

N, M = 2500, 12


@pytest.fixture(params=[False, True], ids=["different", "tied"])
def probs(request):
    found = dirichlet(N, M, 0, 0.4)
    if request.param:
        found = np.round(found * 50.0) / 50.0 + 1e-3
    return found / found.sum(axis=1, keepdims=True)


def pair(probs, column):
    return Rows(np.column_stack([1.0 - probs[:, column], probs[:, column]]))


@pytest.mark.slow
@pytest.mark.parametrize("statistic", [KolmogorovSmirnov, Kuiper, ECD, Brier, CalibrationInTheLarge])
def test_the_same_number(probs, statistic):
    rng, statistic = np.random.default_rng(1), statistic()
    form = statistic.given(pair(probs, 3))
    fast = of_events(form, 0.1)
    labels = (rng.random((20, N)) < np.linspace(0.0, 1.0, 20)[:, None]).astype(np.uint8)
    found = EventColumns((OfOneClass(None, 1, fast, 0),)).of_labels(labels)[:, 0]
    if statistic.name in ("ks", "kuiper"):
        assert found.tolist() == form.of_labels(labels).tolist()
    else:
        expected = form.of_labels(labels)
        assert (np.abs(found - expected) <= form.resolution * np.maximum(1.0, np.abs(expected))).all()


def test_where_it_is_no_gain_or_not_possible(probs):
    assert of_events(KolmogorovSmirnov().given(pair(probs, 3)), 0.5) is None
    assert of_events(KolmogorovSmirnov().given(pair(probs[:100], 3)), 0.1) is None
    certain = np.tile([1.0, 0.0], (N, 1))
    assert of_events(ECD().given(Rows(certain)), 0.0) is None
    assert of_events(caltest.statistics.ECE().given(pair(probs, 3)), 0.1) is None


@pytest.mark.slow
def test_an_audit_is_the_same_either_way(probs, monkeypatch):
    """In one group of each kind of size."""
    monkeypatch.setattr("caltest.auditing.audits.bounds", lambda *_: {})
    monkeypatch.setattr("caltest.auditing.audits.remedies", lambda *_: ())
    labels = np.random.default_rng(0).integers(0, M, N)
    options = {"lenses": ("canonical", "classwise"), "statistics": ("ks", "ecd", "brier"), "rng": 0}

    def found(**more):
        groups = np.arange(N) % 8 > 0
        audit = caltest.audit(probs, labels, groups=groups, n_resamples=99, **options, **more)
        return {(x.view.key, x.statistic): (x.value, *x.expected, x.pvalue) for x in audit.checks}

    fast = found()
    monkeypatch.setattr("caltest.forms.sums._LABELS", 1)
    assert found(n_jobs=2) == fast
    monkeypatch.setattr("caltest.forms.sums._MOST_EVENTS", -1.0)
    assert found() == {name: pytest.approx(each, abs=1e-9) for name, each in fast.items()}
