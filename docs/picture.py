"""Make the README's picture, the first screen of the report of its first command.

``python docs/picture.py``; it needs Playwright and a Chromium on the path.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "_static" / "report.png"
WIDTH, HEIGHT = 1280, 1052

readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
command = re.search(r"caltest (audit --example .*)", readme)[1]
with TemporaryDirectory() as folder, sync_playwright() as driver:
    subprocess.run([sys.executable, "-m", "caltest", *shlex.split(command)], cwd=folder, check=True)
    browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto((Path(folder) / "report.html").as_uri())
    page.screenshot(path=PICTURE)
    browser.close()
