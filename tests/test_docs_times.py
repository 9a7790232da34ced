"""Times on the pages of the documentation are those that were measured."""

import re

import pytest
from pages import of_source

pytestmark = [of_source, pytest.mark.usefixtures("from_the_root")]


def test_numbers_on_pages_are_those_of_the_results(tmp_path):
    from validation.benchmarks import store
    from validation.benchmarks.pages import rewritten

    store.times(tmp_path).put(
        run="now",
        what="SKCE_uq, TV",
        by="caltest",
        n=10_000,
        m=10,
        jobs=1,
        best_s=0.2468,
        memory_mb=1234,
    )
    store.loops(tmp_path).put(run="now", loop="cityblock", one="a coordinate", m=10, compiled_ns=0.2051,
                              plain_ns=123.0, plain="cdist", load=0.1)  # fmt: skip
    case = "SKCE_uq, TV, n = 10 000, m = 10"
    text = (
        f"It takes <!-- time: {case} -->?<!-- --> and <!-- memory: {case} -->?<!-- -->; of two cores "
        f"<!-- time: {case}, 2 workers -->3 s<!-- -->.\n"
        "<!-- loop: cityblock, m = 10 --><!-- -->\n<!-- table: loops --><!-- -->\n"
    )
    found, missing = rewritten(text, tmp_path)
    shown = re.sub("<!--.*?-->", "", found)
    assert shown.startswith("It takes 0.25 s and 1.2 GB; of two cores not measured.\n0.21 ns\n")
    assert "| `cityblock` | a coordinate | 0.21 (123) | cdist |" in shown
    assert missing == [f"time: {case}, 2 workers"]
    assert rewritten(found, tmp_path) == (found, missing)
    with pytest.raises(ValueError, match="there is no speed to show"):
        rewritten("<!-- speed: of light -->1<!-- -->", tmp_path)


def test_the_pages_show_what_was_measured():
    """If not: ``python -m validation.benchmarks --table`` writes them again."""
    from validation.benchmarks.__main__ import RESULTS
    from validation.benchmarks.pages import MARK, pages, rewritten
    from validation.benchmarks.table import written

    assert (RESULTS / "benchmarks.md").read_text(encoding="utf-8") == written(RESULTS)
    assert {page.name for page in pages()} >= {"choosing.md", "engine.md", "scale.md"}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        assert rewritten(text, RESULTS)[0] == text, page.name
        assert not re.search(r"<!-- (?!\w+: |-->|= |end |text |studies )", MARK.sub("", text)), (
            page.name
        )


def test_marks_on_pages_name_what_is_measured():
    from validation.benchmarks.cases import cases
    from validation.benchmarks.growth import SERIES
    from validation.benchmarks.loops import LOOPS
    from validation.benchmarks.pages import MARK, pages
    from validation.benchmarks.store import MACHINE

    names = {"time": {str(case) for case in cases()}, "exponent": {each.what for each in SERIES}}
    names["memory"], names["machine"], names["table"] = (
        names["time"],
        set(MACHINE),
        {"loops", "aims", "growth"},
    )
    names["loop"] = {f"{name}, m = {m}" for name, loop in LOOPS.items() for m in loop.classes}
    names["plain"] = names["loop"]
    marks = [mark for page in pages() for mark in MARK.findall(page.read_text(encoding="utf-8"))]
    assert len(marks) > 20
    assert [mark for _, kind, mark, *_ in marks if mark not in names[kind]] == []


@pytest.mark.parametrize("name", ["choosing.md", "extend/engine.md"])
def test_no_time_stands_beside_the_marks(name):
    from validation.benchmarks.pages import DOCS, MARK

    text = MARK.sub("", (DOCS / name).read_text(encoding="utf-8"))
    assert re.findall(r"[\d.]+ (?:s|ms|ns|seconds|minutes)\b", text) == []
