"""What is written when the site is built: reports that pages show, and a table of times.

And in what is read, numbers are kept whole: "10 000" and "3 ms" are not broken over two lines.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from docutils import nodes
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
BENCHMARKS = DOCS.parent / "validation" / "results" / "benchmarks.md"

_COMMAND = re.compile(r"^caltest (audit .*--report report.html)$", flags=re.MULTILINE)
#: Spaces inside a number, and between a number and its unit.
_INSIDE = re.compile(r"(?<=\d) (?=\d{3}\b)|(?<=\d) (?=(?:ms|s|kB|MB|GB|TB)\b)|(?<=\d) (?=· 10)")
_TITLE = re.compile(r'"sphx-glr-thumbnail-title">(.*?)</div>')
_TO_PAGE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]*\.md)(?:#[^)]*)?\)")
_AS_TYPED = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)

_NO_TIMES = """# Time, memory and growth

`python -m validation.benchmarks` writes `validation/results/benchmarks.md`, which is shown here; it has
not been run.
"""


def write_benchmarks(app: Sphinx) -> None:
    """Show the table of the benchmarks as a page of the site."""
    text = BENCHMARKS.read_text(encoding="utf-8") if BENCHMARKS.exists() else _NO_TIMES
    page = DOCS / "generated" / "benchmarks.md"
    page.parent.mkdir(exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def write_reports(app: Sphinx, exception: Exception | None) -> None:
    """Make the reports that pages show, by the Python and the command of the page."""
    if exception is not None or app.builder.format != "html":
        return
    pages = ("audit", slice(1), _COMMAND), ("reports", slice(None), None)
    for name, blocks, pattern in pages:
        page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        made = "\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[blocks])
        calls = [["-c", made]]
        if pattern is not None:
            calls += [["-m", "caltest", *shlex.split(each)] for each in pattern.findall(page)]
        with TemporaryDirectory() as folder:
            for arguments in calls:
                run = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True)
                if run.returncode not in (0, 1) or (arguments[0] == "-c" and run.returncode):
                    raise RuntimeError(f"{name}.md: {run.stderr.decode()}")
            for path in Path(folder).glob("report*.html"):
                (Path(app.outdir) / path.name).write_bytes(path.read_bytes())


def keep_to_the_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Leave the text of links to pages of the repository that the site does not have."""
    folder = (Path(app.srcdir) / docname).parent

    def plain(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target == BENCHMARKS:
            return f"[{link[1]}](/generated/benchmarks.md)"
        return link[0] if target.is_relative_to(app.srcdir) else link[1]

    source[0] = _TO_PAGE.sub(plain, source[0])


def keep_numbers_whole(app: Sphinx, doctree: nodes.document) -> None:
    """Put spaces that do not break into numbers, but for code and formulas."""
    for text in list(doctree.findall(nodes.Text)):
        whole = _INSIDE.sub("\N{NO-BREAK SPACE}", text)
        if whole != text and not isinstance(text.parent, _AS_TYPED):
            text.parent.replace(text, nodes.Text(whole))


def describe_thumbnails(app: Sphinx, doctree: nodes.document) -> None:
    """Give every thumbnail of the gallery's index the title under it as its text."""
    untold: list[nodes.image] = []
    for node in doctree.findall(lambda each: isinstance(each, nodes.image | nodes.raw)):
        if isinstance(node, nodes.image):
            untold += [] if node.get("alt") else [node]
        elif untold and (title := _TITLE.search(node.astext())):
            untold.pop(0)["alt"] = unescape(title[1])


def setup(app: Sphinx) -> dict[str, bool]:
    """Write before the pages are read, and after they are written."""
    app.connect("builder-inited", write_benchmarks)
    app.connect("source-read", keep_to_the_site)
    app.connect("doctree-read", keep_numbers_whole)
    app.connect("doctree-read", describe_thumbnails)
    app.connect("build-finished", write_reports)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
