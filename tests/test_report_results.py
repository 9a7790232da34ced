"""Pages of results that are no audits: a picture, and all that their summaries say."""

import html
from pathlib import Path

import numpy as np
import pytest
from support import command

import caltest
from caltest.exceptions import InputError

RNG = np.random.default_rng(0)
PROBS = RNG.uniform(0.05, 0.95, 400)
LABELS = (RNG.random(400) < PROBS).astype(int)

pytestmark = pytest.mark.usefixtures("pictures")


@pytest.fixture(scope="module")
def compared():
    """Two models, of which one is too high, and has a name that is no HTML."""
    return caltest.compare({"old": PROBS, "<b>new</b>": np.minimum(PROBS + 0.1, 1.0)}, LABELS)


@pytest.mark.slow
def test_a_comparison_is_a_page_with_its_picture(compared, tmp_path):
    caltest.report.save(compared, tmp_path / "page.html", title="Two models", date="today")
    page = Path(tmp_path, "page.html").read_text(encoding="utf-8")
    assert "<title>No clear difference: Two models</title>" in page
    assert page.count("<svg") == 2
    assert "<b>new</b>" not in page
    told = html.unescape(page)
    of = compared._page()
    assert all(f'<th scope="row">{name}</th><td>{text}</td>' in told for name, text in of.rows)
    assert all(told.count(each) == 1 for each in (*of.blocks, *of.notes) if isinstance(each, str))
    assert f"caltest {caltest.__version__}</p>" in page
    assert caltest.report.to_html(compared) == caltest.report.to_html(compared)


def test_other_results_have_pages_too():
    assert "<svg" in caltest.report.to_html(caltest.test(PROBS, LABELS, "ks", n_resamples=39, rng=0))
    planned = caltest.report.to_html(caltest.plan(PROBS, materiality=0.05))  # there is no picture
    assert "<svg" not in planned
    assert "<h1>Plan of an audit</h1>" in planned


def test_pages_only(compared, tmp_path):
    with pytest.raises(InputError, match=r"a Comparison is written as a web page only; .*\.html"):
        caltest.report.save(compared, tmp_path / "page.md")
    with pytest.raises(InputError, match=r"give what caltest\.audit, or another"):
        caltest.report.to_html(3)


@pytest.mark.slow
def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("compare", "--example", "digits")
    done = command(*asked, "--report", "page.html")
    assert done.exit_code == 0, done.output
    assert Path("page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    wrong = command(*asked, "--report", "page.md")
    assert wrong.exit_code == 2
    assert "give a file name that ends in .html or .htm" in wrong.output
