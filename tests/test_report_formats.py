import json
import re
import stat
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import audits
import jsonschema
import pytest

from caltest import InputError, auditing, report
from caltest.files.writing import write_whole
from caltest.report import formats
from caltest.report.formats import markdown
from caltest.text import audit as words
from caltest.text.advice import advice
from caltest.text.audit import finding_of_rest

FORMATS = {
    ".html": report.to_html,
    ".md": report.to_markdown,
    ".json": report.to_json,
    ".xml": report.to_junit,
}


@pytest.fixture(scope="module")
def found():
    """A real audit with findings, with groups."""
    return audits.real("random_forest", n_resamples=399)


@pytest.fixture(scope="module")
def impossible():
    """A real audit in which what was called impossible came true: some numbers are infinite."""
    return audits.real("naive_bayes", n_resamples=99)


@pytest.fixture(scope="module")
def tolerant():
    """A real audit with a tolerance."""
    return audits.real("random_forest", tolerance=0.02, lenses=("top_label",), n_resamples=199)


@pytest.mark.slow
def test_schema_describes_real_audits(found, impossible, tolerant):
    schema = report.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    made = (audits.binary(0.0), audits.slope(materiality=0.05), audits.rare(materiality_ratio=1.2))
    cumulative = audits.slope()
    view = audits.path(cumulative.views[0], 0.02)
    drawn = replace(cumulative, views=(view,), checks=(replace(cumulative.checks[0], view=view),))
    for audit in (found, impossible, tolerant, drawn, *made):
        data = json.loads(report.to_json(audit), parse_constant=pytest.fail)
        check.validate(data)
        check.validate(audit.to_dict(draws=True))
        assert data["checks"][0]["view"] < len(data["views"])
    assert json.loads(report.to_json(impossible))["statistic"] == "inf"
    assert json.loads(report.to_json(tolerant))["tolerance"] == 0.02


@cache
def validator():
    return jsonschema.validators.validator_for(report.schema())(report.schema())


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(new=1),
        lambda data: data["views"][0].update(new=1),
        lambda data: data["checks"][0].update(new=1),
        lambda data: data["skipped"][0].pop("rows"),
        lambda data: data.pop("headline"),
        lambda data: data.update(verdict="wrong"),
        lambda data: data["views"][1]["parts"][0].update(new=1),
        lambda data: data["views"][1]["parts"][0].pop("low"),
        lambda data: data["views"][1]["histogram"].update(new=1),
        lambda data: data["rests"][0]["group"]["conditions"][0].update(new=1),
        lambda data: data["rests"][0].pop("error"),
        lambda data: data.update(materiality=0),
        lambda data: data.update(pvalue=0.0),
        lambda data: data.update(pvalue="nan"),
        lambda data: data["checks"][0].update(expected=[1.0]),
        lambda data: data["checks"][0].update(expected=[1.0, 2.0, 3.0]),
        lambda data: data["views"][0].update(direction="both"),
        lambda data: data["views"][0].update(error=2.0),
    ],
)
def test_schema_refuses_what_it_does_not_name(spoil):
    data = json.loads(report.to_json(audits.binary()))
    assert validator().is_valid(data)
    spoil(data)
    assert not validator().is_valid(data)


def test_every_description_of_the_schema_is_a_sentence_and_every_definition_is_used():
    text = json.dumps(report.schema())
    for name in report.schema()["$defs"]:
        assert f'"#/$defs/{name}"' in text
    for description in re.findall(r'"description": "((?:[^"\\]|\\.)*)"', text):
        assert description.endswith(".")


@pytest.mark.slow
def test_junit_counts_and_names_the_findings(found):
    for audit in (found, audits.audit(), audits.audit(wrong=False)):
        (suite,) = ElementTree.fromstring(report.to_junit(audit))
        cases = suite.findall("testcase")
        failed = [case.find("failure") for case in cases if case.find("failure") is not None]
        left = [rest for rest in audit.rests if rest.found]
        assert int(suite.get("tests")) == len(cases) == audit.n_checks + len(audit.skipped)
        assert int(suite.get("failures")) == len(failed) == len(audit.found) + len(left)
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) == 1
        assert suite.get("errors") == "0"
        told = [words.finding(check, audit) for check in audit.found]
        told_of_rests = [finding_of_rest(rest, audit) for rest in left]
        assert [each.get("message") for each in failed] == told + told_of_rests
        for check, message in zip(audit.found, told, strict=True):
            if check.view.event:
                assert re.search(r"predicted [\d.]+%, observed [\d.]+%", message)
                assert re.search(r"[\d.]+ (points too low to|and) [\d.]+ points too", message)
        assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
        properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
        assert float(properties["pvalue"]) == audit.pvalue
        assert properties["seed"] == "1"
        assert suite.find("testcase/skipped").get("message") == audit.skipped[0].reason


#: What Jenkins' junit-10.xsd allows, of what may be here: attributes, those of them required, children.
JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname",
         "id", "package", "file", "log", "url"},
        {"name", "tests", "failures", "errors"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, {"name", "value"}, set()),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"name"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set(), set()),
    "skipped": ({"type", "message"}, set(), set()),
    "system-out": (set(), set(), set()),
}  # fmt: skip
#: In the order that readers ask for who are stricter (Ant's, Surefire's).
ORDER = ["properties", "testcase", "system-out", "system-err"]


@pytest.mark.parametrize(
    "audit",
    [audits.audit(), audits.audit(wrong=False), replace(audits.audit(), impossible=2)],
    ids=["wrong", "right", "impossible"],
)
def test_junit_is_as_jenkins_reads_it(audit):
    root = ElementTree.fromstring(report.to_junit(audit))
    assert root.tag == "testsuites"
    for element in root.iter():
        allowed, required, children = JUNIT[element.tag]
        assert required <= set(element.attrib) <= allowed, element.tag
        assert {child.tag for child in element} <= children, element.tag
        for name in ("tests", "failures", "errors", "skipped"):
            assert element.get(name, "0").isdecimal()
    for suite in root:
        places = [ORDER.index(child.tag) for child in suite]
        assert places == sorted(places)
        assert len(suite.findall("properties")) == len(suite.findall("system-out")) == 1


def test_junit_has_a_name_for_every_case():
    made = audits.audit(wrong=False)
    pairs = [
        ("a", "b = c"), ("a = b", "c"), ("'a = b'", "c"), ("a", "b\nc"), ("a", "b\\nc"), ("a =", "b"),
        ("a", "= b"), ("a", "b: ecd"), ("a", "b"),
    ]  # fmt: skip
    views = tuple(replace(made.views[1], group=audits.group(pair)) for pair in pairs)
    checks = tuple(
        replace(made.checks[0], view=view, statistic=name, found=False)
        for view in views
        for name in ("ecd", "ecd: ecd", "'ecd: ecd'")
    )
    skipped = (auditing.Skipped("a = b = c", 7, "small"), auditing.Skipped("a = b = c", 7, "small"))
    audit = replace(made, views=views, checks=checks, skipped=skipped)
    cases = list(ElementTree.fromstring(report.to_junit(audit)).iter("testcase"))
    names = {(case.get("classname"), case.get("name")) for case in cases}
    assert len(names) == len(cases) == len(checks) + 2
    assert "a = b = c (7 rows) [2]" in {name for _, name in names}


@pytest.mark.parametrize(
    "name",
    [
        "www.evil.com", "(www.evil.com)", "_WWW.evil.com", "https://evil.com", "HTTP://evil.com",
        "ftp://evil.com", "@someone", "me@evil.com", "#12", "GH-12", "!12",
    ],
)  # fmt: skip
def test_no_name_becomes_a_link_in_markdown(name):
    text = markdown(name)
    assert not re.search(r"www\.|://|@\w|#\d|gh-\d|!\d", text, re.IGNORECASE)
    assert text.replace("\N{WORD JOINER}", "").replace("\\", "") == name
    made = audits.audit(("cat", name, "dog"), ("north", name))
    written = report.to_markdown(replace(made, warnings=(f"see {name}.",)), title=name)
    prose = re.sub(r"(`+).+?\1", "", written, flags=re.DOTALL)
    assert not re.search(r"www\.|://|@\w|#\d|gh-\d|!\d", prose, re.IGNORECASE)


BEGINS = {
    "material": (lambda: audits.binary(materiality=0.02), "## ▲ Material error: "),
    "undecided": (
        lambda: audits.binary(-0.05, materiality=0.06),
        "## ◐ Not shown to be within 6 points: ",
    ),
    "found": (audits.binary, "## ◆ Error found: "),
    "within": (lambda: audits.binary(0.0, materiality=0.3), "## ● Within your limit of 30 points: "),
    "not found": (lambda: audits.binary(0.0), "## ○ No error found: "),
}


@pytest.mark.slow
@pytest.mark.parametrize("verdict", BEGINS)
def test_a_report_begins_with_its_verdict(verdict):
    make, begins = BEGINS[verdict]
    audit = make()
    assert audit.verdict == verdict
    assert report.to_markdown(audit).startswith(begins)


@pytest.mark.slow
def test_markdown_of_a_real_audit(found):
    text = report.to_markdown(found, title="Forest", command="caltest audit")
    assert text.startswith("## ◆ Error found: Forest\n")
    (row,) = re.findall(r"^\| `Top class` \| 600 \|.*$", text, re.MULTILINE)
    assert re.search(r"◆ −[\d.]+ \| −[\d.]+ to −[\d.]+ \|", row)
    for sentence in (found.headline, words.assumes(found)):
        assert markdown(sentence) in text
    for sentence in advice(found):
        assert markdown(sentence) in text
    assert f"```python\n{found.call}\n```" in text
    assert "```sh\ncaltest audit\n```" in text
    assert "seed: `1`" in text
    assert "\n\n\n\n" not in text


def test_no_time_and_no_machine_in_a_report(found):
    for write in FORMATS.values():
        text = write(found)
        assert not re.search(r"\b20\d\d-\d\d", text)
        assert "/work" not in text
        assert "/tmp" not in text
        assert text.endswith("\n")


# --- files


@pytest.mark.parametrize("suffix", FORMATS)
def test_save_writes_what_the_suffix_names(suffix, tmp_path):
    audit = audits.audit()
    path = tmp_path / f"out{suffix}"
    path.write_text("old")
    path.chmod(0o640)
    report.save(audit, path)
    assert path.read_bytes().decode("utf-8") == FORMATS[suffix](audit)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    report.save(audit, str(tmp_path / f"new{suffix.upper()}"))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("suffixes", [(".html", ".htm"), (".md", ".markdown"), (".json",), (".xml",)])
def test_every_suffix_of_a_format_means_the_same(suffixes, tmp_path):
    audit = audits.audit()
    for suffix in suffixes:
        report.save(audit, tmp_path / f"out{suffix}")
        assert (tmp_path / f"out{suffix}").read_text(encoding="utf-8") == FORMATS[suffixes[0]](audit)


def test_save_hands_title_command_and_date_on(tmp_path):
    path = tmp_path / "a.html"
    report.save(audits.audit(), path, title="Cats", command="caltest audit x", date="4 May 2026")
    assert "<h1>Cats</h1>" in path.read_text(encoding="utf-8")
    assert "audited 4 May 2026" in path.read_text(encoding="utf-8")
    assert "audited" not in report.to_html(audits.audit(), title="Cats").split("</article>")[0]
    report.save(audits.audit(), tmp_path / "a.md", title="Cats", command="caltest audit x")
    assert "caltest audit x" in (tmp_path / "a.md").read_text(encoding="utf-8")


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    path.write_text("old")
    monkeypatch.setattr(formats, "to_json", lambda audit: "half \ud800")
    with pytest.raises(InputError, match="cannot be written"):
        report.save(audits.audit(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_save_says_what_is_wrong_with_a_path(tmp_path):
    with pytest.raises(InputError, match=r"ends in \.html, \.htm, \.md, \.markdown, \.json, \.xml\.$"):
        report.save(audits.audit(), tmp_path / "out.pdf")
    with pytest.raises(InputError, match="No such file or directory; give a file in a folder"):
        report.save(audits.audit(), tmp_path / "none" / "out.md")
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(InputError, match="it is no file"):
        report.save(audits.audit(), tmp_path / "folder.md")
    with pytest.raises(InputError, match="null character"):
        report.save(audits.audit(), "a\x00.md")
    (tmp_path / "loop.md").symlink_to("loop.md")
    with pytest.raises(InputError, match="Too many levels of symbolic links; give a file"):
        report.save(audits.audit(), tmp_path / "loop.md")


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path):
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")
    write_whole({tmp_path / "link.md": "new"})
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new"
    device = tmp_path / "null.md"
    device.symlink_to("/dev/null")
    write_whole({device: "gone"})
    assert stat.S_ISCHR((tmp_path / "null.md").stat().st_mode)


# --- colours


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_text_and_marks_stand_out_in_both_themes():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    page = report.to_html(audits.audit())
    themes = re.findall(r"((?: *--[a-z]+: #[0-9a-f]{6};\n){8,})", page)
    assert len(themes) == 2
    for theme in themes:
        colour = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", theme))
        for text in ("ink", "soft", "wrong", "data"):
            assert contrast(colour[text], colour["paper"]) >= 4.5, text
        for mark in ("wrong", "data", "ink"):
            for ground in ("paper", "corridor", "band"):
                assert contrast(colour[mark], colour[ground]) >= 3.0, (mark, ground)
        assert contrast(colour["soft"], colour["corridor"]) >= 4.5
