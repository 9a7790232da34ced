"""The formats of a report, by the suffix of its file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from caltest._arguments import arguments
from caltest._visible import quoted
from caltest._writing import write_whole
from caltest.auditing.result import Audit
from caltest.exceptions import InputError
from caltest.report import junit
from caltest.report._templates import render
from caltest.report.summary import summarise

#: The suffixes of every format, the usual one first.
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "html": (".html", ".htm"),
    "markdown": (".md", ".markdown"),
    "json": (".json",),
    "junit": (".xml",),
}

#: How a report of every format begins.
_BEGINNINGS: Mapping[str, re.Pattern[bytes]] = {
    "html": re.compile(
        rb'<!doctype html>.{0,2000}?<meta name="generator" content="caltest ', re.DOTALL
    ),
    "markdown": re.compile("## (✗ Rejected|○ Not rejected): ".encode()),
    "json": re.compile(rb'\{\s*"caltest":\s*"'),
    "junit": re.compile(rb'<\?xml [^>]*\?>\s*<testsuites name="caltest"'),
}


@arguments()
def to_html(audit: Audit, *, title: str | None = None, command: str | None = None) -> str:
    """Return an audit as one page that needs nothing else: no network, no script, no other file.

    Parameters
    ----------
    audit
        What :func:`caltest.audit` found.
    title
        What the report is about, a model's name for instance. Default: "Calibration audit".
    command
        The shell command that repeats the audit, shown beside the Python call. Default: none.

    Returns
    -------
    str
        HTML, for light and dark screens, phones and paper. Of more than 200 hypotheses the strongest
        are shown and the others counted; :func:`to_json` has all.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> page = caltest.report.to_html(audit, title="Random forest")
    >>> "<title>Rejected: Random forest</title>" in page
    True
    """
    return render("report.html.j2", summarise(audit, title=title, command=command))


@arguments()
def to_markdown(audit: Audit, *, title: str | None = None, command: str | None = None) -> str:
    """Return an audit as Markdown, for a comment on a pull request or the summary of a job.

    Parameters
    ----------
    audit, title, command
        As in :func:`to_html`.

    Returns
    -------
    str
        Markdown as GitHub and GitLab show it: the verdict, the worst findings, what is proved, what
        repeats it. It stays short, however many hypotheses there are.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> print(caltest.report.to_markdown(audit, title="Random forest").splitlines()[0])
    ## ✗ Rejected: Random forest
    """
    return render("report.md.j2", summarise(audit, title=title, command=command))


@arguments()
def to_json(audit: Audit) -> str:
    """Return an audit as strict JSON, which :func:`schema` describes.

    Parameters
    ----------
    audit
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
def to_junit(audit: Audit) -> str:
    """Return an audit as JUnit's XML, which continuous integration shows as tests.

    Parameters
    ----------
    audit
        What :func:`caltest.audit` found.

    Returns
    -------
    str
        XML: one test suite with a test case for every hypothesis. A finding is a failure, and what was
        not looked at is skipped, each with the reason.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    >>> caltest.report.to_junit(audit).count("<testcase") == len(audit.checks)
    True
    """
    return junit.document(audit)


@arguments()
def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of :func:`to_json`.

    Returns
    -------
    dict
        It allows nothing that it does not name, so that a reader may rely on it.

    Examples
    --------
    >>> from caltest.report import schema
    >>> schema()["title"]
    'Calibration audit'
    """
    text = files("caltest.report").joinpath("audit.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@arguments()
def save(
    audit: Audit,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    command: str | None = None,
) -> None:
    """Write a report in the format that the file's suffix names.

    Parameters
    ----------
    audit
        What :func:`caltest.audit` found.
    path
        File to write: ``.html`` or ``.htm``, ``.md`` or ``.markdown``, ``.json``, or ``.xml`` (JUnit).
        An old file is replaced when the new one is complete, and stays as it is if anything goes
        wrong.
    title, command
        As in :func:`to_html`; JSON and XML have neither.

    Raises
    ------
    InputError
        If it is no path, the suffix is another one, or the file cannot be written.

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
    try:
        target = Path(path)
    except TypeError as error:
        raise InputError(
            f"the report is to be written to {quoted(path)}, which is no path; give the name of a file."
        ) from error
    by_suffix = {suffix: kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes}
    kind = by_suffix.get(target.suffix.lower())
    if kind is None:
        raise InputError(
            f"the report is to be written to {quoted(str(path))}, which does not tell its format; give "
            f"a file that ends in {', '.join(by_suffix)}."
        )
    write_whole({target: rendered(audit, kind, title=title, command=command)})


def rendered(
    audit: Audit, kind: str, *, title: str | None, command: str | None, gate: str | None = None
) -> str:
    """Return a report in a format of :data:`SUFFIXES`.

    ``gate`` is a sentence of what lets more pass than the defaults; it stands first in the report, and
    in JSON among the warnings.
    """
    if kind in ("html", "markdown"):
        template = "report.html.j2" if kind == "html" else "report.md.j2"
        return render(template, summarise(audit, title=title, command=command, gate=gate))
    if gate is not None:
        audit = replace(audit, warnings=(gate, *audit.warnings))
    return to_json(audit) if kind == "json" else to_junit(audit)


def is_report(path: Path, kind: str) -> bool:
    """Whether a file is an older report of a format, or empty: nothing is lost if it is replaced.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(4096)
    return not start or _BEGINNINGS[kind].match(start) is not None
