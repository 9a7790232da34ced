"""Statistics of single classes, from the rows in which they came true: the same as from all rows."""

from __future__ import annotations

import numpy as np
import pytest
from support import dirichlet

import caltest
from caltest._parallel import ALONE, Workers
from caltest.auditing.draws import draw_all
from caltest.auditing.groups import read_groups
from caltest.auditing.options import Options
from caltest.auditing.plan import make_plan
from caltest.data import Rows
from caltest.forms import sums
from caltest.forms.sums import EventColumns, OfOneClass, of_events
from caltest.nulls.base import Trial
from caltest.statistics import ECD, Brier, KolmogorovSmirnov, Kuiper

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
@pytest.mark.parametrize("statistic", [KolmogorovSmirnov(), Kuiper(), ECD(), Brier()])
def test_the_same_number(probs, statistic):
    rng = np.random.default_rng(1)
    form = statistic.given(pair(probs, 3))
    fast = of_events(form, 0.1)
    labels = (rng.random((20, N)) < np.linspace(0.0, 1.0, 20)[:, None]).astype(np.uint8)
    found = EventColumns((OfOneClass(None, 1, fast, 0),)).of_labels(labels)[:, 0]
    if statistic.name in ("ks", "kuiper"):
        assert found.tolist() == form.of_labels(labels).tolist()
    else:
        assert np.abs(found - form.of_labels(labels)).max() <= form.resolution


def test_where_it_is_no_gain_or_not_possible(probs):
    form = KolmogorovSmirnov().given(pair(probs, 3))
    assert of_events(form, 0.5) is None
    assert of_events(KolmogorovSmirnov().given(pair(probs[:100], 3)), 0.1) is None
    certain = np.tile([1.0, 0.0], (N, 1))
    assert of_events(ECD().given(Rows(certain)), 0.0) is None
    assert of_events(caltest.statistics.ECE().given(pair(probs, 3)), 0.1) is None


def drawn(probs, labels, groups, workers=ALONE):
    rows = Rows(probs)
    options = Options.of(lenses=("canonical", "classwise"), statistics=("ks", "ecd", "brier"))
    plan = make_plan(rows, read_groups(groups, len(probs)), options)
    return draw_all(plan.hypotheses, Trial(rows, labels, 99, 0, workers))[:2]


@pytest.mark.slow
def test_an_audit_is_the_same_either_way(probs, monkeypatch):
    labels = np.random.default_rng(0).integers(0, M, N)
    groups = np.arange(N) % 8 > 0  # one group of each kind of size
    fast, resolutions = drawn(probs, labels, groups)
    monkeypatch.setattr(sums, "_LABELS", 1)
    assert np.array_equal(drawn(probs, labels, groups, Workers(2))[0], fast)
    monkeypatch.setattr(sums, "_MOST_EVENTS", -1.0)
    slow, _ = drawn(probs, labels, groups)
    assert (np.abs(fast - slow) <= resolutions).all()
    assert not np.array_equal(fast, slow)


def test_other_hypotheses_do_not_matter(probs):
    labels = np.random.default_rng(0).integers(0, M, N)
    whole, _ = drawn(probs, labels, None)
    n_classes = whole.shape[1]
    assert np.array_equal(drawn(probs, labels, np.arange(N) % 2)[0][:, :n_classes], whole)
