"""The built site: every link leads somewhere, nothing comes from a network, the search finds.

CALTEST_SITE names the folder; without it there is nothing to look at. Chromium opens the pages from the
disk, as a reader without a network does.
"""

import inspect
import os
import re
import shutil
import zlib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import sync_playwright

import caltest

SITE = Path(os.environ.get("CALTEST_SITE", "nowhere")).resolve()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SITE.is_dir(), reason="CALTEST_SITE names no built site"),
]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PAGES = (
    "index", "start", "audit", "choosing", "reading", "sizes", "compare", "glossary", "validation",
    "theory/exact", "theory/kernel", "theory/many", "generated/benchmarks", "genindex", "gallery/index",
    "generated/reference/index", "generated/reference/caltest.audit",
)  # fmt: skip
#: Wider than the screen, and not inside something that scrolls.
OVERFLOWING = """[...document.querySelectorAll('article *')].filter(each => {
    for (let up = each; up; up = up.parentElement)
        if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(up).overflowX)) return false
    return each.getBoundingClientRect().right > document.documentElement.clientWidth + 1
}).map(each => each.tagName + ' ' + each.textContent.slice(0, 60))"""


class Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] or "" for key in ("id", "name") if key in values}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        if tag in ("img", "script", "iframe", "source") and values.get("src"):
            self.loaded.append(values["src"] or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values["href"] or "")


@cache
def parsed(path):
    return Page(path)


def paths():
    return sorted(SITE.rglob("*.html"))


def missing(path, links):
    """Return the links of a page that lead nowhere inside the site."""
    found = []
    for link in links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
        if not target.is_file():
            found.append(link)
        elif parts.fragment and target.suffix == ".html":
            anchor = unquote(parts.fragment)
            if anchor not in parsed(target).anchors:
                found.append(link)
    return found


def test_a_broken_link_would_be_found():
    index = SITE / "index.html"
    assert missing(index, ["nowhere.html", "index.html#nowhere", "start.html"]) == [
        "nowhere.html", "index.html#nowhere",
    ]  # fmt: skip


def test_links_lead_somewhere():
    assert len(paths()) > 40
    assert {str(path): wrong for path in paths() if (wrong := missing(path, parsed(path).links))} == {}


def test_nothing_comes_from_a_network():
    for path in paths():
        loaded = parsed(path).loaded
        assert not [each for each in loaded if urlsplit(each).netloc], path
        assert missing(path, loaded) == []


def test_every_public_name_is_in_the_reference():
    content = (SITE / "objects.inv").read_bytes()
    text = zlib.decompress(content[content.index(b"zlib.\n") + 6 :]).decode()
    told = {line.split()[0] for line in text.splitlines()}
    homes = {f"caltest.{name}": getattr(caltest, name) for name in caltest.__all__ if name[0] != "_"}
    modules = {name: value for name, value in homes.items() if inspect.ismodule(value)}
    assert set(homes) <= told
    for home, module in modules.items():
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            again = [each for each, known in homes.items() if known is value]
            assert f"{home}.{name}" in told or again, f"{home}.{name}"
    assert len(told) > 400


@pytest.fixture(scope="module")
def chromium():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        if os.environ.get("CALTEST_BROWSER") == "required":
            pytest.fail("no browser")
        pytest.skip("no browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Return a function that opens a page of the site; in the end nothing may have gone wrong."""
    contexts, said = [], []

    def open_page(name, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("requestfailed", lambda request: said.append(request.url))
        opened.goto(f"{SITE.as_uri()}/{name}.html")
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


#: What is searched for, and the page that must come first, or None where any will do.
SEARCHES = {
    "ECE": "caltest.statistics.ECE",
    "Brier": "caltest.statistics.Brier",
    "Hosmer": "caltest.statistics.HosmerLemeshow",
    "Spiegelhalter": "caltest.statistics.Spiegelhalter",
    "audit": "caltest.audit",
    "ReliabilityDisplay": "caltest.ReliabilityDisplay",
    **dict.fromkeys(
        [
            "skce_uq", "tolerance", "Westfall", "clusters", "weights", "materiality", "isotonic",
            "glossary",
        ]
    ),
    **dict.fromkeys(["JUnit", "PyTorch", "Parquet", "overconfident", "power", "certificate"]),
}  # fmt: skip


@pytest.mark.parametrize("query", SEARCHES)
def test_the_search_finds(visit, query):
    opened = visit("index")
    box = opened.locator("input[name=q]").first
    box.fill(query)
    box.press("Enter")
    first = opened.locator("#search-results ul.search li a").first
    first.wait_for(timeout=20_000)
    assert opened.locator("#search-results ul.search li").count() >= 1
    first.click()
    opened.wait_for_load_state()
    assert re.search(query.split("_")[0], opened.locator("article").inner_text(), re.IGNORECASE)
    if SEARCHES[query] is not None:
        assert urlsplit(opened.url).path.endswith(f"/{SEARCHES[query]}.html")


def test_formulas_are_set(visit):
    opened = visit("theory/exact")
    opened.wait_for_selector("mjx-container svg", timeout=20_000)
    opened.wait_for_function("document.querySelectorAll('.math:not(:has(mjx-container))').length == 0")
    assert opened.locator("mjx-container").count() > 40
    assert opened.locator("mjx-merror, [data-mjx-error]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_a_phone(visit, name, scheme):
    opened = visit(name, width=390, color_scheme=scheme)
    if name.startswith("theory"):
        opened.wait_for_selector("mjx-container svg", timeout=20_000)
    assert opened.evaluate(OVERFLOWING) == []
    assert opened.evaluate("document.documentElement.scrollWidth") <= 391


@pytest.mark.parametrize("name", ["start", "audit", "index", "theory/kernel"])
def test_nothing_is_cut_on_a_wide_screen(visit, name):
    opened = visit(name)
    if name.startswith("theory"):
        opened.wait_for_selector("mjx-container svg", timeout=20_000)
    cut = """[...document.querySelectorAll('article pre, article div.math')].filter(each =>
        each.scrollWidth > each.clientWidth + 1).map(each => each.textContent.slice(0, 200))"""
    assert opened.evaluate(cut) == []


def test_numbers_are_not_broken_over_lines():
    text = (SITE / "generated" / "benchmarks.html").read_text(encoding="utf-8")
    cells = re.findall(r"<td><p>([^<]*)</p></td>", text)
    assert "10\N{NO-BREAK SPACE}000" in cells
    assert not [each for each in cells if re.search(r"\d (\d{3}\b|ms|s\b|MB)", each)]


def test_thumbnails_have_words():
    text = (SITE / "gallery" / "index.html").read_text(encoding="utf-8")
    told = re.findall(r'<img alt="([^"]*)"[^>]*thumb', text)
    assert len(told) == len(list((SITE / "gallery").glob("plot_*.html")))
    assert all(" " in each for each in told)


def test_pages_have_titles_of_their_own():
    titles = [re.search("<title>(.*?)</title>", path.read_text(encoding="utf-8"), re.DOTALL)[1]
              for path in (SITE / "index.html", SITE / "start.html")]  # fmt: skip
    assert len(set(titles)) == 2


def test_pictures_are_there(visit):
    for name in ("validation", "gallery/index", "gallery/plot_1_reliability"):
        opened = visit(name)
        opened.evaluate("document.querySelectorAll('img').forEach(each => each.loading = 'eager')")
        opened.wait_for_function("[...document.images].every(each => each.complete)")
        assert opened.evaluate("document.querySelectorAll('article img').length") > 0
        assert opened.evaluate("[...document.images].every(each => each.naturalWidth > 100)")


def test_the_report_is_in_its_frame(visit):
    frame = visit("reports").frame_locator("iframe.report").first
    assert "percentage points too high" in frame.locator("body").inner_text()
