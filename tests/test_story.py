"""What an audit says is decided once: text, reports, pictures and the command line render it."""

import ast
import html
import json
import re
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.special import expit, logit

import caltest
from caltest import auditing, predictive, report
from caltest.story import Finding, Step, Story
from caltest.text.advice import advice

ROOT = Path(caltest.__file__).parent
FIELDS = {field.name for each in (Finding, Step, Story, auditing.Rest) for field in fields(each)}
FIELDS = (FIELDS | {"error", "proved", "side", "most", "sized", "named", "rejected"}) - {
    "of", "part", "lens", "group", "parent", "predicted", "observed", "rows", "unfollowed", "kind",
}  # fmt: skip


def compared(tree):
    """The fields of the story that are compared with anything but codes and None, by line."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        operands = [node.left, *node.comparators]
        codes = [
            (isinstance(each, ast.Constant) and (each.value is None or isinstance(each.value, str)))
            or (isinstance(each, ast.Tuple) and all(isinstance(e, ast.Constant) for e in each.elts))
            for each in operands
        ]  # fmt: skip
        if any(codes):
            continue
        parts = [each for operand in operands for each in ast.walk(operand)]
        names = [each.attr for each in parts if isinstance(each, ast.Attribute)]
        if any(isinstance(each, ast.Name) and each.id == "self" for each in parts):
            continue  # a picture's own numbers
        yield from ((node.lineno, name) for name in names if name in FIELDS)


@pytest.mark.parametrize("room", ["text", "report", "plots", "cli"])
def test_who_renders_a_story_decides_nothing(room):
    found = [
        (path.name, *each)
        for path in (ROOT / room).rglob("*.py")
        for each in compared(ast.parse(path.read_text()))
    ]
    assert found == []


def test_a_comparison_of_a_field_is_seen():
    for text, seen in (
        ("view.error > limit", True),
        ("story.verdict == 'within'", False),
        ("finding.place in ('beyond', 'likely')", False),
        ("finding.side is None", False),
        ("max(0, view.proved) < 1", True),
    ):
        assert bool([*compared(ast.parse(text))]) == seen


# ------------------------------------------------------------------ what leads, and what to do


def audited(n, beta, error, groups=None, seed=0, **options):
    """An audit of predictions from a beta law whose truth is lower by error(rows)."""
    rng = np.random.default_rng(seed)
    p = rng.beta(*beta, n)
    columns = {
        name: rng.choice(list(values), n, p=shares) for name, (values, shares) in (groups or {}).items()
    }
    y = (rng.random(n) < np.clip(p - error(p, columns), 0.0, 1.0)).astype(int)
    options = {"groups": columns or None, "n_resamples": 199, "rng": 0} | options
    return caltest.audit(p, y, **options)


def both(name, value):
    return lambda p, g: np.where((g["region"] == name) & (g["sex"] == value), -0.22, -0.03)


HALF = {"region": ("nsew", None), "sex": ("fm", None)}
BANK = {"region": ("ew", [0.7, 0.3]), "product": ("al", [0.8, 0.2])}
CASES = {
    # What is wrong where, with the limit; then verdict, subject, whole, headline, advice.
    "the worst slice leads, inside the whole": (
        (3000, (3, 5), both("s", "f"), HALF), 0.02, "material", "region = s, sex = f", None,
        r"about \S+ percentage points too low overall, and 19 points too low where region is s and sex",
        "Recalibrate for that group alone|What stays beyond your limit",
    ),
    "an error whose interval reaches inside is likely": (
        (10_000, (2, 18), lambda p, g: -0.07 * (g["region"] == "w") * (g["product"] == "l"), BANK),
        0.05, "likely", "region = w, product = l", None,
        r"\d percentage points too low where region is w and",
        "estimated to be beyond your limit of 5 points",
    ),
    "errors of opposite sign are both said": (
        (9000, (3, 7), lambda p, g: np.select([g["g"] == "a", g["g"] == "b"], [-0.05, 0.18], 0.0),
         {"g": ("abc", [0.6, 0.1, 0.3])}), 0.02, "material", "g = b", None,
        r"1\d percentage points too high where g is b, and \d points too low where g is a", "Do not",
    ),
    "advice leaves the limit met": (
        (3000, (3, 5), lambda p, g: p - expit(0.7 * logit(p) + 0.3), None), 0.02, "material", "", None,
        r"points too low\.$", r"\(Platt scaling\).*alone would leave \S+ points too low, beyond",
    ),
    "right": ((20_000, (2, 18), lambda p, g: 0.0 * p, {"g": ("abc", None)}), 0.02, "within", None, None,
              r"^Every average error is shown to be within your limit of 2 points\.$", "as they are"),
    "few rows": (
        (3000, (2, 18), lambda p, g: 0.0 * p, {"g": ("abc", None)}), 0.02, "undecided", None, None,
        r"^No error was found\. To show all averages to be within 2 points takes about [\d,]+ rows",
        "Not settled is not wrong",
    ),
    "a shape inside the limit": (
        (20_000, (2, 2), lambda p, g: 0.03 * np.sin(2 * np.pi * p), None), 0.03, "within", "", None,
        r"wrong, but on average by less than your limit of 3 points", "as they are"),
    "no limit": ((3000, (3, 5), lambda p, g: 0.1 + 0.0 * p, None), None, "found", "", None,
                 r"about 1\d percentage points too high\.$|about 9 percentage", "Decide how large"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_leads_is_beyond_and_advised(case):
    given, limit, verdict, subject, _, headline, step = CASES[case]
    audit = audited(*given, materiality=limit)
    lead, advised = audit.story.subject, " ".join(advice(audit))
    label = "" if lead is None or lead.of.group is None else lead.of.group.label
    assert (audit.verdict, label) == (verdict, subject or "")
    assert re.search(headline, audit.headline)
    assert re.search(step, advised)
    assert audit.fails() == (verdict in ("material", "likely", "found"))
    for said in (str(audit), report.to_markdown(audit), report.to_html(audit)):
        assert audit.headline in " ".join(html.unescape(re.sub(r"<[^>]+>|\\", "", said)).split())


# ------------------------------------------------------------------ one story of every kind


def simulated(kind, seed):
    """An audit of predictions that are right, or wrong in a slice; in some, another group is too."""
    rng = np.random.default_rng(seed)
    n = 1200 if kind in ("members", "times") else 3000
    groups = {"region": rng.choice([*"nsew"], n), "sex": rng.choice([*"fm"], n)}
    slice_ = (groups["region"] == "s") & ((groups["sex"] == "f") | (seed % 2 == 0))
    by = (0.25, -0.12, 0.0)[seed % 3] * slice_ - 0.06 * (groups["region"] == "n") * (seed > 3)
    options = {"materiality": (0.02, 0.1, None, 0.08, 0.05, 0.02)[seed], "groups": groups}
    p, z = rng.beta(3, 5, n), rng.normal(size=n)
    y, outcomes = (rng.random(n) < p - by).astype(int), z + (1.0 + 2.0 * by) * rng.normal(size=n)
    if kind == "clusters":
        options["clusters"] = np.arange(n) // 8
        y = np.where(rng.random(n) < 0.3, (rng.random(n // 8).repeat(8) < p - by).astype(int), y)
    elif kind == "weights":
        options["weights"] = rng.choice([0.5, 1.0, 2.0], n)
    elif kind == "classes":
        p, y = np.c_[1.0 - p, 0.7 * p, 0.3 * p], y * (1 + (rng.random(n) < 0.3))
    elif kind == "numbers":
        p, y = predictive.Normal(z, sd=1.0), outcomes
    elif kind == "members":
        p, y = predictive.Members(z[:, None] + rng.normal(size=(n, 15))), outcomes
    elif kind == "times":
        rate, times, ends = 0.08 * np.exp(0.5 * z), np.arange(1.0, 11.0), rng.exponential(20.0, n)
        happens = rng.exponential(np.exp(4.0 * by) / rate)
        p = predictive.Survival(survival=np.exp(-rate[:, None] * times), times=times)
        y, options["lenses"] = (np.minimum(happens, ends), happens <= ends), "until:5"
    return caltest.audit(p, y, n_resamples=99, rng=0, **options)


WORDS = {
    "material": "Material error", "likely": "Likely material", "within": "Within your limit",
    "undecided": "Not shown to be within", "found": "Error found", "not found": "No error found",
}  # fmt: skip
KINDS = ["classes", "groups", "clusters", "weights", "numbers", "members", "times"]


@pytest.mark.level
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_made_of_an_audit_says_one_thing(kind, seed):
    audit = simulated(kind, seed)
    told, junit = json.loads(report.to_json(audit)), report.to_junit(audit).partition("?>")[2]
    page, suite = report.to_html(audit), ElementTree.fromstring(junit)
    for said in (str(audit), report.to_markdown(audit), page, "".join(suite.itertext())):
        text = " ".join(html.unescape(re.sub(r"<[^>]+>|\\|\u2060", "", said)).split())
        assert audit.headline in text
        assert WORDS[audit.verdict] in text or said not in (str(audit), page)
    limit, found, views = audit.materiality or 0.0, audit.pvalue <= audit.alpha, told["views"]
    wholes = [each for each in (*views, *told["rests"]) if found and each["low"] is not None]
    proved = {id(each): max(each["low"], -each["high"]) for each in wholes}
    parts = [max(part["low"], -part["high"]) for view in views for part in view["parts"] if found]
    shown = [each for each in wholes if proved[id(each)] > 0.0]
    likely = [each for each in shown if abs(each["predicted"] - each["observed"]) > limit]
    beyond = [each for each in shown if proved[id(each)] > limit]
    far = bool(beyond) or max(parts, default=0.0) > limit
    stopped = "found" * found if not limit else "material" if far else "likely" * bool(likely)
    assert (audit.verdict if audit.fails() else "") == stopped
    assert (audit.fails(), told["verdict"]) == (int(suite.get("failures")) > 0, audit.verdict)
    subject = told["story"]["subject"]
    if subject and subject["kind"] == "mean":
        shown = [each for each in shown if each["adjusted_pvalue"] <= audit.alpha]
        pool = [each for each in beyond or likely or shown if "lens" in each and "parts" in each]
        assert views[subject["view"]] == max(pool, key=lambda view: proved[id(view)])
        assert '<tr class="hit">' in page
    assert found == (subject is not None)
