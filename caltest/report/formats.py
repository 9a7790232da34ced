"""Report formats, by file suffix: HTML, Markdown, JSON and JUnit XML."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from caltest._arguments import OneOf, arguments
from caltest._numbers import confidence_text, counted, in_unit_of, points
from caltest._version import __version__
from caltest._visible import line, quoted, visible, visible_page
from caltest.auditing.result import Audit, FailOn, gate_of
from caltest.auditing.story import slices_of
from caltest.exceptions import InputError
from caltest.files.writing import write_whole
from caltest.report.charts import drawn
from caltest.report.summary import first_screen, name, sentence, summarise
from caltest.results import Result
from caltest.text import OF_FILE
from caltest.text import audit as words
from caltest.text.captions import chance_note
from caltest.text.vocabulary import lens_name, lenses_of, limit, unpromised

#: Suffixes of each format, the usual one first.
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "html": (".html", ".htm"),
    "markdown": (".md", ".markdown"),
    "json": (".json",),
    "junit": (".xml",),
}

_TEMPLATES = {"html": "report.html.j2", "markdown": "report.md.j2"}

_FILTERS = chance_note, counted, lenses_of, limit, name, points, sentence
_MORE_FILTERS = unpromised, visible, visible_page

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_LIST = re.compile(r"^(\s*\d*)([-+.)])")
# Mentions and links on web sites: @name, #1, !1, GH-1, www.name.org, https://…
_LINKED = re.compile(r"([@#!](?=\w)|(?<![^\W_])(?:GH-(?=\d)|www(?=\.))|:(?=//))", re.IGNORECASE)
_WORD_JOINER = "\N{WORD JOINER}"  # invisible: a mention or link broken by it stays text


_ANY = OneOf("caltest.results:Result", "give what caltest.audit, or another function, returns")


@arguments(audit=_ANY)
def to_html(
    audit: Audit | Result,
    *,
    title: str | None = None,
    command: str | None = None,
    date: str | None = None,
) -> str:
    """Return an audit as one page that needs nothing else: no network, no other file.

    Parameters
    ----------
    audit : Audit, or another result
        What :func:`caltest.audit` found; or another result, such as that of :func:`caltest.compare`,
        whose page has its picture and its summary.
    title : str, optional
        What the report is about, such as the name of a model. Default None: "Calibration audit", or the
        kind of result.
    command : str, optional
        The shell command that repeats the audit, shown beside the Python call.
    date : str, optional
        When the audit was made, as text. Default None: no date, so the same audit gives the same bytes.

    Returns
    -------
    str
        HTML, for light and dark screens, phones and paper. Its one script sorts and filters tables, and
        nothing is missing without it. If there are more than 300 hypotheses, the strongest are shown
        and the others counted; :func:`to_json` has all.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> page = caltest.report.to_html(audit, title="Random forest")
    >>> "<title>Error found: Random forest</title>" in page
    True
    """
    if isinstance(audit, Audit):
        return rendered(audit, "html", title=title, command=command, date=date)
    before = OF_FILE.set(True)
    try:
        page = audit._page()
    finally:
        OF_FILE.reset(before)
    about = {"title": visible(title or page.about), "command": command, "date": date}
    template = _environment().get_template("result.html.j2")
    drawings = [(title, drawn(picture, title)) for title, picture in getattr(audit, "pictures", ())]
    picture = None if drawings else _drawn(audit)
    return template.render(about, page=page, drawings=drawings, picture=picture, version=__version__)


def _drawn(result: Result) -> str | None:
    """Return the picture of a result as self-contained SVG; None if it has none."""
    import matplotlib as mpl

    try:
        display = result.plot()
    except InputError:
        return None
    written, figure = StringIO(), display.figure_
    with mpl.rc_context({"svg.hashsalt": "caltest", "svg.fonttype": "path"}):
        options: Any = {"metadata": {"Date": None}, "bbox_inches": "tight", "transparent": True}
        figure.savefig(written, format="svg", **options)
    figure.clear()
    drawn = written.getvalue()
    return drawn[drawn.index("<svg") :]


@arguments()
def to_fragment(audit: Audit) -> str:
    """Return the first screen of a report as a piece of HTML, as notebooks show it.

    Parameters
    ----------
    audit : Audit
        What :func:`caltest.audit` found.

    Returns
    -------
    str
        HTML with its own style, which does not affect the rest of the page.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> caltest.report.to_fragment(audit).startswith('<div class="caltest">')
    True
    """
    return _environment().get_template("fragment.html.j2").render(first=first_screen(audit))


@arguments()
def to_markdown(
    audit: Audit, *, title: str | None = None, command: str | None = None, date: str | None = None
) -> str:
    """Return an audit as Markdown, for a comment on a pull request or the summary of a job.

    Parameters
    ----------
    audit : Audit, or another result
        As in :func:`to_html`.
    title, command, date : str, optional
        As in :func:`to_html`.

    Returns
    -------
    str
        Markdown as GitHub and GitLab show it: the verdict, the worst views with their intervals, what
        to do next, and the call that repeats it. It stays short, however many hypotheses there are.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> print(caltest.report.to_markdown(audit, title="Random forest").splitlines()[0])
    ## ◆ Error found: Random forest
    """
    return rendered(audit, "markdown", title=title, command=command, date=date)


@arguments()
def to_json(audit: Audit) -> str:
    """Return an audit as strict JSON, which :func:`schema` describes.

    Parameters
    ----------
    audit : Audit
        What :func:`caltest.audit` found.

    Returns
    -------
    str
        JSON in ASCII. A number that is not finite is the text "inf", "-inf" or "nan".

    Examples
    --------
    >>> import json
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> json.loads(caltest.report.to_json(audit))["rejected"]
    True
    """
    return json.dumps(audit.to_dict(), indent=2, allow_nan=False) + "\n"


@arguments()
@in_unit_of
def to_junit(audit: Audit, *, fail_on: FailOn | None = None) -> str:
    """Return an audit as JUnit's XML, which continuous integration shows as tests.

    Parameters
    ----------
    audit : Audit
        What :func:`caltest.audit` found.
    fail_on : {"material", "likely", "undecided", "found", "never"}, optional
        What fails, as in :meth:`caltest.Audit.fails`. Default None: as there.

    Returns
    -------
    str
        XML: one test suite with a test case for every hypothesis, and one for the limit, if there is
        one. If the gate fails, every finding is a failure; if it passes, findings stand in their cases
        as text. What was not looked at is skipped, with the reason.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> caltest.report.to_junit(audit).count("<testcase") == len(audit.checks)
    True
    """
    cases: list[SimpleNamespace] = []
    times: Counter[tuple[str, str]] = Counter()

    def case(of: str, name: str, told: str | None = None, bad: bool = True, **more: Any) -> None:
        """Add a test case; a repeated name is numbered."""
        of, name = visible(f"caltest.{of}"), visible(name)
        times[of, name] += 1
        number = f" [{times[of, name]}]" if times[of, name] > 1 else ""
        failure = told if fails and bad else None
        cases.append(SimpleNamespace(of=of, name=f"{name}{number}", failure=failure, told=told, **more))

    fails = audit.fails(fail_on)
    if audit.limit:
        chip, why = words.chip(audit)
        why = f"{why}. {words.supposed(audit)}".rstrip(" .")
        gates = {"undecided": "within", "likely": "not likely to be beyond"}
        asked = gates.get(gate_of(fail_on, True), "not shown to be beyond")
        name = f"average errors are {asked} {limit(audit)}"
        case("limit", name, f"{chip}: {why}", audit.verdict != "within")
    if audit.impossible:  # otherwise a rejection by such labels alone would pass
        why = f"{counted(audit.impossible, 'row')}: the observed label has predicted probability 0"
        case("labels", "no label has probability 0", why)
    for check in audit.checks:
        finding, group = words.finding(check, audit) if check.found else None, check.view.group
        where = f" in {group.column} = {group.value}" if group else ""
        name = f"{lens_name(check.view)}{where}: {check.statistic}"
        case(check.view.lens, name, finding, check=check)
    for rest in audit.rests:
        parent = rest.parent.label if rest.parent else "all rows"
        finding = words.finding_of_rest(rest, audit) if rest.found else None
        case(rest.lens, f"{parent} without {rest.group.label}: mean", finding)
    for of in slices_of(audit):
        case(of.lens, f"{of.rule}: slice by features", words.finding_of_rest(of, audit))
    for each in audit.skipped:
        rows = "" if each.rows is None else f" ({each.rows:,} rows)"
        case("skipped", f"{each.what}{rows}", skipped=each.reason)
    return _environment().get_template("junit.xml.j2").render(audit=audit, cases=cases)


@arguments()
def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of :func:`to_json`.

    Returns
    -------
    dict
        It allows nothing that it does not name, so readers may rely on it.

    Examples
    --------
    >>> from caltest.report import schema
    >>> schema()["title"]
    'Calibration audit'
    """
    text = files("caltest.report").joinpath("audit.schema.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


@arguments(audit=_ANY)
def save(
    audit: Audit | Result,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    command: str | None = None,
    date: str | None = None,
) -> None:
    """Write a report in the format that the file's suffix names.

    Parameters
    ----------
    audit : Audit, or another result
        What :func:`caltest.audit` found; or another result, as a web page.
    path : path
        File to write: ``.html`` or ``.htm``, ``.md`` or ``.markdown``, ``.json``, or ``.xml`` (JUnit).
        An old file is replaced when the new one is complete, and stays as it is if anything goes
        wrong.
    title, command, date : str, optional
        As in :func:`to_html`; JSON and XML have none.

    Raises
    ------
    InputError
        If it is not a path, the suffix is another one, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     caltest.report.save(audit, Path(folder) / "audit.html")
    ...     [file.name for file in Path(folder).iterdir()]
    ['audit.html']
    """
    target = Path(path)
    by_suffix = {suffix: kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes}
    if (kind := by_suffix.get(target.suffix.lower())) is None:
        found = f"the report is to be written to {quoted(str(path))}, which has no known format"
        raise InputError(f"{found}; give a file that ends in {', '.join(by_suffix)}.")
    if isinstance(audit, Audit):
        text = rendered(audit, kind, title=title, command=command, date=date)
    elif kind == "html":
        text = to_html(audit, title=title, command=command, date=date)
    else:
        do = "give a file that ends in .html"
        raise InputError(f"a {type(audit).__name__} is written as a web page only; {do}.")
    write_whole({target: text})


@in_unit_of
def rendered(
    audit: Audit, kind: str, *, gate: str | None = None, fail_on: FailOn | None = None, **told: Any
) -> str:
    """Return a report in a format of :data:`SUFFIXES`.

    ``gate`` is a sentence on settings that let more pass than the defaults; it comes first in the
    report, and in JSON among the warnings. ``told``: title, command and date, as in :func:`to_html`.
    """
    if kind in _TEMPLATES:
        report = summarise(audit, gate=gate, **told)
        template = _environment().get_template(_TEMPLATES[kind])
        # The page allows this script, by its hash, and no other.
        script = files("caltest.report").joinpath("templates", "tables.js").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
        return template.render(report=report, first=report.first, script=script, digest=digest)
    if gate is not None:
        audit = replace(audit, warnings=(gate, *audit.warnings))
    return to_json(audit) if kind == "json" else to_junit(audit, fail_on=fail_on)


# ------------------------------------------------------------------ HTML and Markdown


@cache
def _environment() -> Environment:
    """HTML is escaped automatically, whatever a template forgets; Markdown by its filters."""
    environment = Environment(
        loader=PackageLoader("caltest.report"),
        autoescape=lambda name: name is None or name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"markdown": markdown, "code": _code, "fenced": _fenced}
    environment.filters |= {"thousands": "{:,}".format, "confidence": confidence_text}
    environment.filters |= {each.__name__: each for each in (*_FILTERS, *_MORE_FILTERS)}
    return environment


def markdown(text: str) -> str:
    r"""Return a text that Markdown shows literally, without mentions or links.

    >>> print(markdown("a|b <c> *d*"))
    a\|b \<c\> \*d\*
    """
    escaped = _LIST.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", visible(text)))
    return _LINKED.sub(rf"\1{_WORD_JOINER}", escaped)


def _code(text: str) -> str:
    """Return a text as a Markdown code span that fits into a table."""
    shown = line(text).replace("|", "\\|")
    fence = "`" * (1 + _longest_run(shown))
    space = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) or not shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _fenced(text: str, language: str) -> str:
    """Return a Markdown code block."""
    fence = "`" * max(3, 1 + _longest_run(text))
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
