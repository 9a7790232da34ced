"""What docs/ensembles.md and docs/posteriors.md show is what happens."""

import re

import pytest
from pages import follow, page

from caltest.lenses import LENSES, find_lens
from caltest.statistics import DENSITY_STATISTICS, STATISTICS

pytestmark = pytest.mark.usefixtures("pictures")
PAGES = ["docs/ensembles.md", "docs/posteriors.md"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    follow(name)


@pytest.mark.parametrize("name", PAGES)
def test_names_in_its_tables_exist(name):
    text = page(name)
    for lens in re.findall(r'lens="([^"]+)"', text):
        assert find_lens(lens) is not None
        assert lens.partition(":")[0] + ":" in LENSES
    named = set(re.findall(r'`"([a-z_]+)"`', "".join(re.findall(r"^\|.*\|$", text, re.M))))
    assert named <= {*STATISTICS, *DENSITY_STATISTICS}
