"""The page as a browser shows it: Chromium, without a screen and without a network."""

import os
import shutil
from itertools import pairwise

import audits
import pytest
from playwright.sync_api import sync_playwright

from caltest import report

pytestmark = pytest.mark.slow

WIDE, LAPTOP, PHONE = (1280, 1000), (1366, 768), (390, 844)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

HEADINGS = "[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => Number(h.tagName[1]))"
TABLES = """[...document.querySelectorAll('table.data')].map(table => ({
    caption: table.caption ? table.caption.innerText.trim() : '',
    heads: [...table.querySelectorAll('th')].map(head => [head.scope, head.innerText.trim()]),
    columns: table.tHead.rows[0].cells.length,
    rows: [...table.tBodies[0].rows].map(row => [row.cells.length, row.cells[0].tagName]),
    region: table.parentElement.getAttribute('role') + table.parentElement.tabIndex,
}))"""
OVERFLOWING = """[...document.querySelectorAll('body *')].filter(each =>
    !each.closest('.scroll') && !each.matches('.skip') && each.getClientRects().length > 0
    && each.getBoundingClientRect().right > document.documentElement.clientWidth + 1
).map(each => each.tagName + ' ' + each.className)"""
UNNAMED = """[...document.querySelectorAll('svg, img')].filter(each =>
    each.getAttribute('aria-hidden') !== 'true' && !(each.getAttribute('role') === 'img'
    && (each.getAttribute('aria-label') || '').trim())
    && !each.closest('[aria-hidden=true]') && !each.parentElement.closest('svg')).length"""
OVERLAPPING = """[...document.querySelectorAll('svg')].flatMap(svg => {
    if (!svg.checkVisibility()) return []
    const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()])
    return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
        p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2
    ).map(([b]) => a + ' | ' + b))
})"""
CLIPPED = """[...document.querySelectorAll('figure svg text')].filter(text => {
    if (!text.checkVisibility()) return false
    const p = text.getBoundingClientRect(), q = text.ownerSVGElement.getBoundingClientRect()
    return p.left < q.left - 1 || p.right > q.right + 1 || p.top < q.top - 1 || p.bottom > q.bottom + 1
}).map(text => text.textContent)"""
CROSSED = """[...document.querySelectorAll('svg')].flatMap(svg => {
    const lines = [...svg.querySelectorAll('path.labels, path.threshold')]
    return [...svg.querySelectorAll('text')].filter(text => lines.some(line => {
        const p = text.getBoundingClientRect(), q = line.getBoundingClientRect()
        return p.left < q.right && q.left < p.right && p.top < q.bottom - 2 && q.top < p.bottom - 2
    })).map(text => text.textContent)
})"""
COLOURS = """['--wrong', '--data'].map(name => {
    const probe = document.body.appendChild(document.createElement('i'))
    probe.style.color = 'var(' + name + ')'
    return getComputedStyle(probe).color
}).concat(getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color)"""


@pytest.fixture(scope="module")
def chromium():
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = f"no browser; install one of {', '.join(NAMES)} to open reports in it"
        if os.environ.get("CALTEST_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """Return a function that opens an audit's report; in the end nothing may have gone wrong."""
    contexts, asked, said = [], [], []

    def open_report(audit, size=WIDE, **options):
        path = tmp_path / "report.html"
        report.save(audit, path, title="A model", command="caltest audit predictions.csv")
        context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield open_report
    assert asked == [(tmp_path / "report.html").as_uri()] * len(contexts)
    assert said == []
    for context in contexts:
        context.close()


AUDITS = {
    "group": lambda: audits.binary(materiality=0.02),
    "classes": audits.audit,
    "fine": lambda: audits.binary(0.0),
    "within": lambda: audits.binary(0.0, materiality=0.3),
    "small": lambda: audits.slope(materiality=0.05),
    "rare": audits.rare,
    "tolerance": lambda: audits.audit(tolerance=0.02, correction="holm", null_distribution=None),
    "close": lambda: audits.audit(statistic=8.6),  # to where it is rejected
    "closer": lambda: audits.audit(statistic=0.3),
    "hostile": lambda: audits.audit(audits.HOSTILE, audits.HOSTILE),
    "hostile groups": lambda: audits.binary(columns=(audits.HOSTILE[0], audits.HOSTILE[10])),
    "many": lambda: audits.audit([f"c{k}" for k in range(1000)], [f"g{k}" for k in range(300)]),
    "real": lambda: audits.real(
        "naive_bayes", n_resamples=199, lenses=("canonical", "top_label", "classwise")
    ),
}


@pytest.fixture(scope="module", params=AUDITS)
def audit(request):
    return AUDITS[request.param]()


def test_structure_is_right_for_a_screen_reader(visit, audit):
    page = visit(audit)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    headings = page.evaluate(HEADINGS)
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.title().endswith(": A model")
    tables = page.evaluate(TABLES)
    assert len(tables) >= 2
    for table in tables:
        assert table["caption"]
        assert table["region"] == "region0"  # a keyboard can scroll it
        assert all(
            scope in ("col", "row") and (text or scope == "row") for scope, text in table["heads"]
        )
        assert {tuple(row) for row in table["rows"]} == {(table["columns"], "TH")}
    assert page.evaluate("document.querySelectorAll('svg').length") >= 3
    assert page.evaluate(UNNAMED) == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))
    wanted = page.evaluate(
        "[...document.querySelectorAll('[aria-labelledby]')].flatMap(each =>"
        " each.getAttribute('aria-labelledby').split(' '))"
        ".concat([...document.querySelectorAll('a')].map(each => each.hash.slice(1)))"
    )
    assert set(wanted) <= set(ids)


def test_nothing_but_tables_scrolls_sideways(visit, audit):
    page = visit(audit)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    for width, height in (WIDE, (768, 1024), PHONE, (320, 640)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVERFLOWING) == []
        assert page.evaluate(OVERLAPPING) == []
        assert page.evaluate(CLIPPED) == []
        assert page.evaluate(CROSSED) == []


def test_the_answer_is_on_the_first_screen(visit, audit):
    page = visit(audit, LAPTOP)
    for what, share in ((".headline", 0.35), (".next", 1.0)):
        box = page.locator(what).bounding_box()
        assert box["y"] + box["height"] < share * LAPTOP[1]


@pytest.mark.parametrize("name", ["group", "classes", "fine", "within", "small", "rare"])
def test_the_answer_is_one_screen_and_one_sheet(visit, name):
    page = visit(AUDITS[name]())
    box = page.locator(".lead").bounding_box()  # p-values may stand beneath
    assert box["y"] + box["height"] <= WIDE[1]
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 688, "height": 1017})  # of A4 in pixels, without its margins
    assert page.locator("article").bounding_box()["height"] <= 1017


def test_on_a_phone_advice_comes_first_and_p_values_stay(visit):
    page = visit(AUDITS["group"](), PHONE)
    order = [
        page.locator(what).bounding_box()["y"]
        for what in (".next", ".lead", ".second", "section.evidence")
    ]
    assert order == sorted(order)
    row = page.locator("#checks ~ .scroll tbody tr").first
    for place in range(4):  # what, by which check, whether found, adjusted p
        box = row.locator("th, td").nth(place).bounding_box()
        assert box["x"] + box["width"] <= PHONE[0]


def test_nothing_is_missing_without_the_script(visit):
    page = visit(audits.audit(), java_script_enabled=False)
    assert page.locator(".tools, thead button").count() == 0
    assert "about 12 percentage points too low" in page.locator(".headline").inner_text()
    rows = page.locator("#checks ~ .scroll tbody tr")
    assert rows.count() == 22
    assert all(rows.nth(k).is_visible() for k in range(22))
    page.locator("summary").first.click()
    assert page.locator("details").first.get_by_role("table").is_visible()


def test_tables_are_sorted_and_filtered(visit):
    page = visit(audits.audit())
    table = page.locator("#checks ~ .scroll table")
    rows = table.locator("tbody tr")
    head = table.locator("thead th", has_text="Rows")
    head.get_by_role("button").click()
    counts = [
        int(text.replace(",", "")) for text in table.locator("tbody td:nth-child(5)").all_inner_texts()
    ]
    assert counts == sorted(counts)
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    tools = page.locator("#checks ~ .tools")
    tools.get_by_role("searchbox").fill("bird")
    assert tools.get_by_role("status").inner_text() == "2 of 22 rows"
    assert all("bird" in text for text in rows.filter(visible=True).all_inner_texts())
    tools.get_by_role("searchbox").fill("")
    tools.get_by_role("checkbox").check()
    assert tools.get_by_role("status").inner_text() == "6 of 22 rows"
    assert all("found" in text for text in rows.filter(visible=True).all_inner_texts())


def test_a_script_in_a_name_does_not_run(visit):
    page = visit(audits.audit(audits.HOSTILE, audits.HOSTILE))
    assert page.locator("script").count() == 1
    assert page.evaluate("typeof alerted") == "undefined"


def test_a_keyboard_gets_to_the_findings(visit):
    page = visit(audits.audit())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the findings"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    page.wait_for_url("**/report.html#main")


def test_light_and_dark_differ_and_paper_is_light(visit):
    light = visit(audits.audit(), color_scheme="light").evaluate(COLOURS)
    page = visit(audits.audit(), color_scheme="dark")
    assert all(one != other for one, other in zip(light, page.evaluate(COLOURS), strict=True))
    page.emulate_media(media="print")
    assert page.evaluate(COLOURS)[2:] == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]


def test_a_picture_is_drawn_in_both_schemes(visit):
    bright = visit(audits.audit(), color_scheme="light").locator("figure svg").first.screenshot()
    dark = visit(audits.audit(), color_scheme="dark").locator("figure svg").first.screenshot()
    assert len(bright) > 3000
    assert bright != dark


def test_paper_has_no_tools(visit):
    page = visit(audits.audit())
    assert page.locator(".tools").first.is_visible()
    page.emulate_media(media="print")
    assert not page.locator(".tools").first.is_visible()
    assert not page.locator("svg.wide").first.is_visible()
    assert page.locator("svg.narrow").first.is_visible()
    assert len(page.pdf(format="A4")) > 20_000
