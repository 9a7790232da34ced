"""Make the pictures that pages show: ``python docs/pictures.py``, or some: ``… where numbers README``.

A picture of a page, ``_static/pages/where.png``, is the file ``where.png`` that the Python of the page
writes, reduced to 64 colours, which makes it a third as large. The README's picture is the first screen
of the report that its first command writes; it needs Playwright and a Chromium.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "_static" / "pages"
WIDTH, HEIGHT = 1280, 1052


def shown(page: Path) -> list[str]:
    """Return the names of the pictures that a page shows and its Python writes."""
    return re.findall(r"\]\((?:\.\./)*_static/pages/([\w-]+\.png)\)", page.read_text(encoding="utf-8"))


def draw(page: Path) -> None:
    """Run the Python of a page, and keep its pictures."""
    code = "\n".join(
        re.findall(r"^```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    )
    with TemporaryDirectory() as folder:
        (Path(folder) / "page.py").write_text(code, encoding="utf-8")
        subprocess.run([sys.executable, "page.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for name in shown(page):
            with Image.open(Path(folder) / name) as picture:
                few = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
            few.save(PICTURES / name, optimize=True)


def photograph() -> None:
    """Make the README's picture."""
    from playwright.sync_api import sync_playwright

    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    command = re.search(r"caltest (audit .*)", readme)
    assert command
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        (Path(folder) / "docs").symlink_to(DOCS)
        words = shlex.split(command[1])
        subprocess.run([sys.executable, "-m", "caltest", *words], cwd=folder, check=True)
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((Path(folder) / "report.html").as_uri())
        page.screenshot(path=DOCS / "_static" / "report.png")
        browser.close()


def main(asked: list[str]) -> None:
    """Make those that are asked for, or all."""
    for page in sorted(DOCS.rglob("*.md")):
        if shown(page) and (not asked or page.stem in asked):
            draw(page)
    if not asked or "README" in asked:
        photograph()


if __name__ == "__main__":
    main(sys.argv[1:])
