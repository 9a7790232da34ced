"""What claims.md lists is there: the words on their page, the file in the record, the test."""

import ast
import inspect
import math
import re
from functools import cache

import numpy as np
import pytest
from pages import ROOT, page
from scipy.special import xlogy
from scipy.stats import binom, chi2, norm

import caltest

PAGE = page("tests/claims.md")
RESULTS = ROOT / "validation" / "results"
CLUSTERS = "docs/theory/clusters.md"
pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="validation is part of the source")
ROWS = [
    (claim.strip(), where, file.strip(), test.strip())
    for where, lines in re.findall(r"^## (\S+\.md)\n\n.*\n.*\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    for claim, file, test in (line.strip("|").split(" | ") for line in lines.splitlines())
]


def plain(text):
    return " ".join(text.split())


@cache
def functions_of(name):
    tree = ast.parse((ROOT / "tests" / name).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_page_is_read_whole():
    assert 60 <= len(ROWS) <= 150
    assert len(ROWS) == len(re.findall("^\\| (?!claim \\|)", PAGE, flags=re.MULTILINE))
    claims = [claim for claim, *_ in ROWS]
    assert len(claims) == len(set(claims))


@cache
def words_of(where):
    return plain(page(where))


def test_claims_stand_on_their_pages():
    for claim, where, _, _ in ROWS:
        start = 0
        for part in claim.split("…"):
            start = words_of(where).find(plain(part), start)
            assert start >= 0, (where, part)


def test_files_are_in_the_record():
    files = {row[2].strip("`") for row in ROWS} - {"–"}
    assert not {file for file in files if not (RESULTS / file).is_file()}


@pytest.mark.slow
def test_tests_of_claims_are_there():
    tests = {row[3].strip("`").partition("::")[::2] for row in ROWS}
    assert not {(name, test) for name, test in tests if test not in functions_of(name)}


def test_a_test_that_holds_a_page_to_a_file_reads_that_file():
    for claim, _, file, test in ROWS:
        name, _, function = test.strip("`").partition("::")
        if file == "–" or not name.endswith(("_prose.py", "_record.py")):
            continue
        text = page(f"tests/{name}")
        (body,) = re.findall(rf"^def {function}\(.*?(?=^\S|\Z)", text, flags=re.MULTILINE | re.DOTALL)
        study = file.strip("`").removesuffix(".csv")
        # the summary is added up from validity.csv
        assert re.search(rf"\b{study}\b", body) or study == "validity_summary", claim


@pytest.mark.slow
def test_every_file_that_a_page_shows_is_read_by_a_test():
    others = (path for path in (ROOT / "tests").glob("test_*.py") if path.name != "test_claims.py")
    texts = "".join(path.read_text(encoding="utf-8") for path in others)
    texts += page(".github/release/paper.md")  # whose numbers are read from their files
    texts += "planning_coverage planning_pilots"  # read in test_docs_planning.py, by half of their name
    shown = {
        name
        for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")
        if not {"generated", "gallery"} & set(path.parts)
        for name in re.findall(r"<!-- (?:results:|=) (\w+)\.csv", path.read_text(encoding="utf-8"))
    }
    assert len(shown) > 45
    assert {name for name in shown if not re.search(rf"\b{name}\b", texts)} == set()


# ------------------------------------------------------------------ defaults and sums


def default(function, name):
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize(
    ("where", "words", "is_so"),
    [
        ("docs/audit.md", "level 0.05", lambda: default(caltest.audit, "alpha") == 0.05),
        ("docs/audit.md", "drawn from the predictions 999 times (`--resamples`)",
         lambda: default(caltest.audit, "n_resamples") == 999),
        ("docs/audit.md", "fewer than `--min-rows` rows (50)",
         lambda: default(caltest.audit, "min_rows") == 50),
        ("docs/audit.md", "every two of them together",
         lambda: default(caltest.audit, "intersections") == 2),
        ("docs/ci.md", "The seed is 0 unless you give another.",
         lambda: default(caltest.assert_calibrated, "rng") == 0),
        ("docs/extend/house.md", "# 999 0.001",
         lambda: caltest.statistics.Statistic.usual_resamples == 999),
        ("docs/choosing.md", "`omnibus` (default of `test`)",
         lambda: caltest.test([0.2, 0.8], [0, 1], n_resamples=19, rng=0).name == "omnibus"),
        ("docs/choosing.md", "kernel error at ten places",
         lambda: default(caltest.statistics.UCME, "locations") == 10),
        ("docs/choosing.md", "twenty times `monte_carlo`",
         lambda: default(caltest.nulls.NULLS["one_per_cluster"], "choices") == 20),
        ("docs/scale.md", "features of a low-rank kernel (default 256)",
         lambda: default(caltest.statistics.UnbiasedSKCE, "rank") == 256),
        ("docs/planning.md", "within 5 points with a probability of 80%",
         lambda: default(caltest.plan, "power") == 0.8),
        ("docs/monitoring.md", '`mode="ever"` (the default)',
         lambda: default(caltest.Monitor, "mode") == "ever"),
        ("docs/monitoring.md", "rows on average (10 000 by default)",
         lambda: default(caltest.Monitor, "mean_run_length") == 10_000),
        ("docs/compare.md", "all correct together with 95% confidence",
         lambda: default(caltest.compare, "confidence") == 0.95),
    ],
)  # fmt: skip
def test_defaults_on_pages_are_those_of_the_signatures(where, words, is_so):
    assert plain(words) in plain(page(where))
    assert is_so()


def longer(delta):
    """The interval of the Kullback–Leibler distance beside that of the normal law."""
    return math.sqrt(2.0 * math.log(1.0 / delta)) / norm.isf(delta)


def of_pairs(n, p):
    """The share of one pair three times in the third cumulant of Q, where all W are 1."""
    v, third = p * (1 - p), p * (1 - p) * (1 - 2 * p)
    triangles = 8 * n * (n - 1) * (n - 2) * (2 * v) ** 3
    pairs = 4 * n * (n - 1) * 2**3 * third**2
    return pairs / (pairs + triangles)


@pytest.mark.parametrize(
    ("where", "words", "value", "told", "within"),
    [
        ("docs/monitoring.md", "in three of four half-years", 1 - 0.95**26, 0.75, 0.02),
        ("docs/monitoring.md", "is one false alarm in two years", 100_000 / 1000 / 52, 2, 0.1),
        ("docs/theory/clusters.md", "with probability 1/60: a p-value of .036",
         binom.sf(1, 30, 0.01), 0.036, 5e-4),
        ("docs/theory/clusters.md", "occurs with probability .089",
         binom.sf(1, 30, 1 / 60), 0.089, 5e-4),
        ("docs/clusters.md", "blocks of two weeks gives 26 clusters", 365 // 14, 26, 0),
        ("docs/theory/clusters.md", "5.5 times for $k = 10$", 1 + 9 * 0.5, 5.5, 0),
        ("docs/theory/clusters.md", "in one of seven data sets none does", 1 / 0.99**200, 7, 0.5),
        ("docs/theory/verdicts.md", "1.39 at $\\delta = .025$", longer(0.025), 1.39, 0.005),
        ("docs/theory/verdicts.md", "1.15 at .0001", longer(1e-4), 1.15, 0.005),
        ("docs/theory/exact.md", "about 63% of the distinct predictions",
         1 - math.exp(-1), 0.63, 0.005),
        ("docs/theory/exact.md", "With 999 draws it is at least 0.001.", 1 / 1000, 0.001, 1e-12),
        ("docs/theory/kernel.md", "a quarter where 1.5 events are expected",
         of_pairs(150, 0.01), 0.25, 0.005),
        ("docs/extend/engine.md", "A tile takes 512 kB", 256 * 256 * 8 / 1024, 512, 0),
        ("docs/ensembles.md", "states 17/21 = 81%", 17 / 21, 0.81, 0.005),
        ("docs/scale.md", "about 30 times larger, the square root of a thousand", 1000**0.5, 30, 2),
        ("docs/scale.md", "p-values down to 0.005", 1 / 200, 0.005, 1e-12),
        ("docs/extend/engine.md", "1 000 classes are 2 MB a draw", 8 * 256e3 / 1e6, 2, 0.1),
    ],
)  # fmt: skip
def test_sums_that_pages_work_out(where, words, value, told, within):
    assert plain(words) in plain(page(where))
    assert value == pytest.approx(told, abs=within + 1e-12)


def test_a_rare_event_that_is_stated_too_high_is_underconfident():
    assert "With 3% events and risks that are 1.4 times too high (5 000 rows)" in page(
        "docs/choosing.md"
    )
    rng = np.random.default_rng(0)
    true = rng.beta(3, 97, 5000)
    stated, labels = 1.4 * true, (rng.random(5000) < true).astype(int)
    for name in ("ecd", "brier", "spiegelhalter"):
        options = {"alternative": "greater", "n_resamples": 99, "rng": 1}
        assert caltest.test(stated, labels, name, **options).pvalue > 0.98
    over = caltest.test(stated, labels, tolerance=0, alternative="over", n_resamples=99, rng=1)
    assert over.pvalue == 0.01


# ------------------------------------------------------------------ signs alone


def signs_alone(sums, draws, rng):
    """The p-value of a sum over clusters by random signs, two-sided."""
    turned = np.abs((2 * rng.integers(0, 2, (draws, len(sums))) - 1) @ sums)
    return (1 + np.count_nonzero(turned >= abs(sums.sum()) - 1e-9)) / (draws + 1)


def test_signs_alone_fail_where_few_clusters_count(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from validation.rare_clusters import SHARED, draw

    design, rejected = SHARED["weights 1, 30, 1000 (20), .05"], 0
    for seed in range(300):
        data = draw(design, 1.0, np.random.SeedSequence([5, seed]))
        errors = data.options["weights"] * (data.labels - data.probs)
        sums = np.bincount(data.options["clusters"], errors)
        rejected += signs_alone(sums, 199, np.random.default_rng(seed)) <= 0.05
    assert rejected / 300 > 0.3


@pytest.mark.level
def test_the_table_of_effective_clusters():
    """Of G clusters K have the event: signs of these and of the others are two binomial numbers."""
    found = re.search(
        r"^\| effective clusters \|(.*)\|\n.*\n((?:\|.*\n){3})", page(CLUSTERS), re.MULTILINE
    )
    told = [[float(x) for x in line.strip("| \n").split("|")[1:]] for line in found[2].splitlines()]
    rng, p, sets, draws = np.random.default_rng(1), 0.01, 3000, 999
    v = p * (1 - p)
    for column, effective in enumerate(map(float, found[1].split("|"))):
        clusters = round(effective * (1 - 3 * v) / v)  # (Σ E S²)² / Σ E S⁴
        events = rng.binomial(clusters, p, sets)[:, None]
        signed = [2 * rng.binomial(n, 0.5, (sets, draws)) - n for n in (events, clusters - events)]
        reach = np.abs((1 - p) * signed[0] - p * signed[1]) >= np.abs(events - clusters * p) - 1e-9
        pvalues = (1 + np.count_nonzero(reach, axis=1)) / (draws + 1)
        for level, row in zip((0.05, 0.01, 0.001), told, strict=True):
            error = (row[column] * (1 - row[column]) * (1 / sets + 1 / 6000)) ** 0.5
            assert np.mean(pvalues <= level + 1e-12) == pytest.approx(row[column], abs=4 * error + 5e-4)


@pytest.mark.level
def test_rates_of_forecasts_in_time_are_those_of_the_page():
    text, rng, shown = page("docs/order.md"), np.random.default_rng(1), {"np": np, "xlogy": xlogy}
    exec(re.search(r"def ratios.*?\n\n", text, re.DOTALL)[0], shown)
    found = [shown["ratios"](hits * 1, 0.01) for hits in rng.random((20_000, 250)) < 0.01]
    rates = 100 * np.mean(np.array(found) > chi2.isf(0.05, [1, 1, 2]), axis=0)
    told = re.search(r"([\d.]+)% of years of 250.* in ([\d.]+)% for ind.* in ([\d.]+)% for both", text)
    assert [float(each) for each in told.groups()] == pytest.approx(rates, rel=0.15, abs=0.1)
    yellow, red = binom.sf([4, 9], 250, 0.01)
    assert f"yellow or red in {yellow:.1%} of years, red in {red:.2%}" in text
    p, y, rejected = np.full((300, 250), 0.4), np.zeros((300, 251), bool), 0
    for t, u in enumerate(rng.random((250, 300))):
        p[:, t] += 0.2 * y[:, t]
        y[:, t + 1] = u < p[:, t]
    for chances, events in zip(p, y[:, 1:], strict=True):
        pairs = [(x[..., 1:] & x[..., :-1]).sum(-1) for x in (rng.random((199, 250)) < chances, events)]
        rejected += (pairs[0] >= pairs[1]).sum() < 10
    (told,) = re.findall(r"(\d+)% would be rejected at 5%", text)
    assert rejected / 300 == pytest.approx(int(told) / 100, abs=0.1)
