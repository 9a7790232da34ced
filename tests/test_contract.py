"""What every statistic and every null promise, whatever is registered: pairs, lenses, files, audits.

A pair either works, and then keeps all the promises, or is refused with the nulls that are possible.
"""

import json
import re
from itertools import product

import joblib
import numpy as np
import pandas as pd
import pytest
from pages import page
from support import binomial_limits, dirichlet, labels_from, some_fast, tied

import caltest
from caltest import InputError, blocks, testing
from caltest._parallel import Workers
from caltest.data import Rows, sample
from caltest.files import scan
from caltest.lenses import find_lens
from caltest.nulls import GUARANTEES, NULLS
from caltest.statistics import FEATURE_STATISTICS, STATISTICS
from caltest.statistics.table import TABLE

ROWS = 600  # more than one tile, so that workers have something to share
PROBS = dirichlet(ROWS, 3, 0, 0.7)
LABELS = labels_from(PROBS, np.random.default_rng(1))
SMALL, FEW = PROBS[:60], LABELS[:60]
WEIGHTS = np.random.default_rng(2).exponential(size=60)
#: What rows may carry. What clusters are is in test_clusters.py.
KINDS = {"alike": None, "weights": WEIGHTS}


def form_of(statistic, weights=None):
    """The statistic on the small data, seen through its default lens."""
    lens = find_lens(STATISTICS[statistic].default_lens)
    predictions = Rows(SMALL) if weights is None else Rows(SMALL, weights=weights)
    return STATISTICS[statistic]().given(lens.show(predictions).rows if lens else predictions)


FORMS = {statistic: form_of(statistic) for statistic in STATISTICS}
OF_OTHER_LAWS = ("event_signs", "point_errors")
#: Those of rows in clusters are in test_clusters.py.
OF_ROWS = [null for null in NULLS if not (NULLS[null].of_clusters or null in OF_OTHER_LAWS)]
EVERY_PAIR = [(statistic, null) for statistic in STATISTICS for null in OF_ROWS]
PAIRS = [(statistic, null) for statistic, null in EVERY_PAIR if NULLS[null].fits(FORMS[statistic])]
#: For each null a statistic that it is fast for.
FAST = {
    **dict.fromkeys(("moments", "bootstrap", "bound"), "skce_uq"), "monte_carlo": "brier",
    "normal": "skce_ul", "chi2": "hosmer_lemeshow", "brownian": "ks", "consistency": "ece",
}  # fmt: skip
#: "consistency" draws rows too, and makes a form of each draw: one statistic shows what it promises.
CHEAP = [pair for pair in PAIRS if pair[1] != "consistency" or pair[0] == FAST["consistency"]]
ORDERLESS = [name for name in STATISTICS if name != "skce_ul"]  # which may pair rows as they come


def run(statistic, null, probs=SMALL, labels=FEW, rng=0, n_resamples=49, **options):
    return caltest.test(
        probs, labels, statistic, null=null, rng=rng, n_resamples=n_resamples, **options
    )


@pytest.mark.parametrize("null", OF_ROWS)
def test_other_pairs_are_refused_with_the_possible_nulls(null):
    for statistic in STATISTICS:
        if (statistic, null) not in PAIRS:
            with pytest.raises(InputError, match="possible here: monte_carlo"):
                run(statistic, null)


def numbers(result):
    return result.statistic, result.pvalue, result.n_resamples, result.pvalue_interval


def test_every_statistic_has_the_exact_null():
    for statistic in STATISTICS:
        assert caltest.test(SMALL, FEW, statistic, n_resamples=9, rng=0).null == "monte_carlo"


@pytest.mark.parametrize("null", OF_ROWS)
def test_every_null_fits_some_statistic(null):
    assert any(pair[1] == null for pair in PAIRS)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics_describe_themselves(statistic):
    kind = STATISTICS[statistic]
    assert kind.name == statistic
    assert kind.measures
    assert kind.alternatives
    assert kind() == kind()
    assert kind.__doc__
    assert all((kind.question, kind.where, kind.what, kind.how))


def test_the_page_on_choosing_names_every_statistic():
    table = page("docs/choosing.md").partition("## What each statistic sees")[2].partition("Notes:")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for cell in first for name in re.findall("`([a-z_]+)`", cell)} - {"test", "order"}
    assert {*STATISTICS, *FEATURE_STATISTICS} <= named <= {*TABLE}


@pytest.mark.parametrize("null", NULLS)
def test_nulls_describe_themselves(null):
    kind = NULLS[null]
    assert kind.name == null
    assert kind.guarantee in GUARANTEES
    assert kind.requires
    assert kind() == kind()


@pytest.mark.parametrize(("statistic", "null"), PAIRS)
def test_a_pair_works_or_says_what_does(statistic, null):
    result = run(statistic, null)
    assert 0.0 < result.pvalue <= 1.0
    assert np.isfinite(result.statistic)
    assert (result.name, result.null) == (statistic, null)
    assert result.guarantee == NULLS[null]().guarantee_for(FORMS[statistic])
    assert result.alternative in STATISTICS[statistic].alternatives
    assert result.n_samples == 60
    assert result.statistic == caltest.estimate(SMALL, FEW, statistic)
    assert json.loads(json.dumps(result.to_dict(draws=True), allow_nan=False))
    assert ("combined test" if statistic == "omnibus" else statistic) in result.summary()
    if result.null_distribution is None:
        assert (result.n_resamples, result.pvalue_interval, result.seed) == (None, None, None)
    else:
        assert len(result.null_distribution) == result.n_resamples == 49
        assert not np.isnan(result.null_distribution).any()
        low, high = result.pvalue_interval
        assert 0.0 <= low <= high <= 1.0
        assert result.seed == 0


@pytest.mark.parametrize(("statistic", "null"), CHEAP)
def test_the_same_seed_gives_the_same_numbers(statistic, null):
    """Another seed, or order of the rows: the same value, and where nothing is drawn the same p."""
    first, again, other = (run(statistic, null, rng=seed) for seed in (3, 3, 4))
    assert numbers(first) == numbers(again)
    assert first.statistic == other.statistic
    if first.null_distribution is None:
        assert first.pvalue == other.pvalue  # no chance in it
    else:
        assert np.array_equal(first.null_distribution, again.null_distribution)
    if statistic in ORDERLESS:
        order = np.random.default_rng(5).permutation(60)
        other = run(statistic, null, SMALL[order], FEW[order])
        assert other.statistic == pytest.approx(first.statistic, rel=1e-9, abs=1e-13)
        if first.null_distribution is None:
            assert other.pvalue == pytest.approx(first.pvalue, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "null"),
    [pair for pair in PAIRS if pair[1] == "monte_carlo" or FAST[pair[1]] == pair[0]],
)
def test_workers_do_not_change_a_number(statistic, null):
    draws = 40 if null == "consistency" else 130  # several blocks of work
    alone = run(statistic, null, PROBS, LABELS, n_resamples=draws, n_jobs=1)
    backends = ["threading"]
    if FAST[null] == statistic:  # processes are slow to start
        backends.append("loky")
    for backend in backends:
        with joblib.parallel_config(backend=backend, n_jobs=2):
            together = run(statistic, null, PROBS, LABELS, n_resamples=draws)
        assert numbers(together) == numbers(alone)
        if alone.null_distribution is not None:
            assert np.array_equal(together.null_distribution, alone.null_distribution)


# ------------------------------------------------------------------ lenses, audits, files

LENSES = [None, "top_label", "class:1", "sorted"]


@pytest.mark.parametrize("lens", some_fast(LENSES, None, "top_label"), ids=str)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_door_gives_the_number_of_the_reduced_rows(statistic, lens):
    """Through a lens, in an audit, as a number alone: what the reduced predictions say, draws too."""
    options = {"lens": lens, "n_resamples": 39, "rng": 7}
    audit = {**options, "statistics": statistic, "lenses": lens or "canonical"}
    del audit["lens"]
    try:
        found = caltest.test(SMALL, FEW, statistic, **options)
    except InputError:
        with pytest.raises(InputError):
            caltest.estimate(SMALL, FEW, statistic, lens=lens)
        with pytest.raises(InputError):
            caltest.audit(SMALL, FEW, **audit)
        return
    assert caltest.estimate(SMALL, FEW, statistic, lens=lens) == found.statistic
    seen = find_lens(lens if lens is not None else STATISTICS[statistic].default_lens)
    assert found.lens == (seen and seen.label)
    view = caltest.lenses.through(sample(SMALL, FEW), seen)[0]
    direct = caltest.test(view.rows, view.labels, statistic, **{**options, "lens": None})
    assert direct.pvalue == found.pvalue
    assert direct.statistic == pytest.approx(found.statistic, rel=1e-10, abs=1e-14)
    assert direct.null_distribution == pytest.approx(found.null_distribution, rel=1e-8, abs=1e-12)
    if statistic == "omnibus" or (lens is None and seen):
        return  # it is no part of an audit, or a lens is to be named there
    (check,) = caltest.audit(SMALL, FEW, **audit).checks

    def through(probs, labels):
        return caltest.estimate(probs, labels, statistic, lens=lens)

    # An audit draws labels once, for all that it looks at, and looks at these draws through the lens.
    whole = caltest.test(SMALL, FEW, through, alternative=found.alternative, n_resamples=39, rng=7)
    assert (check.statistic, check.pvalue) == (statistic, whole.pvalue)
    assert check.pvalue_interval == whole.pvalue_interval
    assert check.value == pytest.approx(whole.statistic, rel=1e-12, abs=1e-14)
    if seen is None:
        assert whole.pvalue == found.pvalue


PREDICTED = dirichlet(5000, 3, 2)  # two blocks of rows
CAME_TRUE = labels_from(PREDICTED, np.random.default_rng(3))
COUNTED = np.random.default_rng(4).exponential(size=5000)
#: Statistics of which a file of very many rows gives a subsample, or which look at a grid of it.
COARSER = ("omnibus", "skce_uq", "skce_b", "jkce", "mmce", "ckce", "ks", "kuiper", "ace")


_LONG = [("skce_ul", "weights"), ("ucme", "weights")]
_READ = [(statistic, kind) for kind in KINDS for statistic in STATISTICS]


@pytest.mark.parametrize(
    ("statistic", "kind"),
    [pytest.param(*each, marks=[pytest.mark.slow] if each in _LONG else []) for each in _READ],
)
def test_a_file_gives_the_numbers_of_its_rows(statistic, kind, tmp_path, monkeypatch):
    """Read a block at a time where that can be: 4000 rows are taken for very many."""
    rows = 200 if statistic in COARSER or (statistic, kind) == ("t_cal", "weights") else 5000
    probs, labels = PREDICTED[:rows], CAME_TRUE[:rows]
    options = {"statistic": statistic, "n_resamples": 2 if statistic == "cox" else 19, "rng": 5}
    given = {} if kind == "alike" else {"weights": COUNTED[:rows]}
    np.save(tmp_path / "rows.npy", np.column_stack([probs, labels]))
    stored = scan(tmp_path / "rows.npy", label=-1)
    if given:
        frame = pd.DataFrame(probs, columns=["a", "b", "c"]).assign(label=np.array([*"abc"])[labels])
        frame.assign(survey=given["weights"]).to_parquet(tmp_path / "rows.parquet")
        stored = scan(tmp_path / "rows.parquet", weights="survey")
    monkeypatch.setattr(testing, "HELD_UP_TO", 4000)
    monkeypatch.setattr("caltest.forms.kernel_matrices.HELD_UP_TO", 4000)
    monkeypatch.setattr(blocks, "_MANY_ROWS", 4000)
    held = caltest.test(probs, labels, **given, **options)
    read = caltest.test(stored, **options)
    assert read.statistic == pytest.approx(held.statistic, rel=1e-9, abs=1e-15)
    assert read.null_distribution == pytest.approx(held.null_distribution, rel=1e-8, abs=1e-12)
    assert read.pvalue == held.pvalue
    assert (read.lens, read.n_samples, read.n_classes) == (held.lens, rows, held.n_classes)
    effective = held.parameters.get("effective_n")
    assert read.parameters.get("effective_n") == (effective and pytest.approx(effective))


# ------------------------------------------------------------------ forms


@pytest.mark.parametrize("statistic", ORDERLESS)
def test_row_order_among_ties(statistic):
    probs = tied(60, 3, 0)
    labels = labels_from(probs, np.random.default_rng(0))
    order = np.random.default_rng(5).permutation(60)
    one = caltest.estimate(probs, labels, statistic)
    other = caltest.estimate(probs[order], labels[order], statistic)
    assert other == pytest.approx(one, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_class_names_do_not_matter(statistic):
    names = np.array([2, 0, 1])  # class k becomes column names[k]
    permuted = np.empty_like(SMALL)
    permuted[:, names] = SMALL
    one = caltest.estimate(SMALL, FEW, statistic)
    assert caltest.estimate(permuted, names[FEW], statistic) == pytest.approx(one, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_blocks_of_draws(statistic, kind):
    """A form gives a block of labels the values it gives them one by one, whatever the type."""
    form = form_of(statistic, KINDS[kind])
    classes = 2 if STATISTICS[statistic].default_lens else 3
    labels = np.random.default_rng(0).integers(0, classes, (70, 60)).astype(np.uint8)
    block = form.of_labels(labels)
    assert block.shape == (70,)
    assert block.dtype == np.float64
    single = [form.value(row.astype(np.intp)) for row in labels]
    assert block == pytest.approx(np.array(single), rel=1e-9, abs=1e-12)
    assert form.of_labels(labels, Workers(2)) == pytest.approx(block, rel=1e-12, abs=1e-15)


EVEN = ("skce_b", "skce_uq", "ece")
EXTREMES = {
    "two rows": ([[0.6, 0.4], [0.3, 0.7]], [0, 1]),
    "all equal": (np.full((20, 2), 0.5), [0, 1] * 10),
    "certain and right": (np.eye(2)[[0, 1] * 10], [0, 1] * 10),
    "certain and wrong": (np.eye(2)[[0, 1] * 10], [1, 0] * 10),
    "one class": (np.tile([0.9, 0.1], (20, 1)), [0] * 20),
    "saturated": (np.tile([1.0 - 1e-12, 1e-12], (20, 1)), [0] * 20),
    "tied": (tied(24, 3, 1), np.argmax(tied(24, 3, 1), axis=1)),
    "many classes": (dirichlet(20, 40, 1), np.arange(20)),
}


UNEVEN = {
    "alike": lambda n: None,
    "a power": lambda n: 10.0 ** np.linspace(-12, 12, n),
    "one row": lambda n: np.where(np.arange(n) == 0, 1e9, 1.0),
    "tiny": lambda n: 1e-300 * (1.0 + np.arange(n)),
    "huge": lambda n: 1e300 * (1.0 + np.arange(n)),
    "beyond": lambda n: np.where(np.arange(n) == 0, 1e300, 1e-300),
    "three": lambda n: np.where(np.arange(n) < 3, 1e160 + 1e159 * np.arange(n), 1.0),
    "half": lambda n: np.where(np.arange(n) < n / 2, 1e160, 1e-150) * (1.0 + np.arange(n)),
}


@pytest.mark.parametrize("spread", some_fast(UNEVEN, "alike", "beyond"))
@pytest.mark.parametrize("statistic", STATISTICS)
def test_extremes(statistic, spread):
    """No warning, no p-value outside (0, 1]; refusals are InputErrors."""
    nulls = [null for null in OF_ROWS if (statistic, null) in CHEAP or spread != "alike"]
    for (case, (probs, labels)), null in product(EXTREMES.items(), nulls):
        options = {"null": null, "weights": UNEVEN[spread](len(labels)), "n_resamples": 19, "rng": 0}
        try:
            result = caltest.test(probs, labels, statistic, **options)
        except InputError:
            continue
        assert 0.0 < result.pvalue <= 1.0, case
        json.dumps(result.to_dict(draws=True), allow_nan=False)
        # There every possible outcome but one has a probability below 1e-10: it is no evidence.
        if case in ("certain and right", "saturated") and null in ("monte_carlo", "moments"):
            assert result.pvalue > 0.99, case
        if (case, spread, null) == ("all equal", "alike", "monte_carlo") and statistic in EVEN:
            assert result.pvalue == 1.0  # as many of each class as can be


# ------------------------------------------------------------------ level


@pytest.mark.parametrize("null", [null for null in OF_ROWS if null != "consistency"])
def test_level(null):
    """Rejections of calibrated models: by chance beyond a limit in 1 of 10 000 such tests.

    One a null; those that are marked `level` look at other statistics, designs and doors. What the
    null "consistency" does is in test_ece.py.
    """
    found = []
    for seed in range(200):
        probs = dirichlet(60, 2, seed)
        labels = labels_from(probs, np.random.default_rng([1, seed]))
        result = caltest.test(probs, labels, FAST[null], null=null, n_resamples=39, rng=seed)
        found.append(result.pvalue)
    for level in (0.05, 0.1, 0.2):
        rate = np.mean(np.array(found) <= level + 1e-12)
        assert rate <= binomial_limits(200, level)[1]
        if NULLS[null].guarantee == "exact":
            assert rate >= binomial_limits(200, level)[0]
