"""Make the README's badges from pyproject.toml and the version: ``python docs/badges.py``.

They are files of the repository, so that pages that are read from a disk fetch nothing.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "_static"
LETTER, SPACE = 6.6, 8  # width of a letter of 11 px, and what is left beside a word

BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
<title>{name}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#0b5a94"/>
<path d="M3 0H{split}V20H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0" fill="#4b5560"/>
<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{first}" y="14" textLength="{name_length}">{name}</text>
<text x="{second}" y="14" textLength="{value_length}">{value}</text>
</g></svg>
"""


def facts() -> dict[str, str]:
    """Return what the badges say."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = (ROOT / "caltest" / "_version.py").read_text(encoding="utf-8")
    pythons = [
        found[1] for each in project["classifiers"] if (found := re.search(r":: (3\.\d+)$", each))
    ]
    version = re.search(r'"(.*)"\n$', code)
    assert version
    return {"version": version[1], "python": " | ".join(pythons)}


def badge(name: str, value: str) -> str:
    """Draw a badge."""
    lengths = [round(LETTER * len(text)) for text in (name, value)]
    split, rest = (length + 2 * SPACE for length in lengths)
    return BADGE.format(
        name=name, value=value, width=split + rest, split=split, first=split / 2,
        second=split + rest / 2, name_length=lengths[0], value_length=lengths[1],
    )  # fmt: skip


def main() -> None:
    """Write them."""
    for name, value in facts().items():
        (FOLDER / f"{name}.svg").write_text(badge(name, value), encoding="utf-8")


if __name__ == "__main__":
    main()
