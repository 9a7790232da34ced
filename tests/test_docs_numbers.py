"""What docs/numbers.md shows is what happens."""

import re

import pytest
from pages import follow, page

import caltest
from caltest.lenses import LENSES, find_lens
from caltest.statistics import DENSITY_STATISTICS, STATISTICS


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    follow("docs/numbers.md")


def test_names_in_its_tables_exist():
    named = set(re.findall(r'`"([a-z_0-9:.]+)"`', page("docs/numbers.md")))
    lenses = {name for name in named if ":" in name or name in LENSES}
    kinds = {name.partition(":")[0] + (":" if ":" in name else "") for name in lenses}
    elsewhere = {"entry:", "pair:", "ranks:", "until:"}
    of_numbers = {name for name, of in LENSES.items() if getattr(of, "of_numbers", False)}
    assert kinds == of_numbers - elsewhere
    assert all(find_lens(name) for name in lenses)
    assert named - lenses <= {*STATISTICS, *DENSITY_STATISTICS}
    times = set(re.findall(r'"([a-z_0-9]+)"', page("docs/times.md")))
    assert {*DENSITY_STATISTICS} <= named | times
    for name in re.findall(r"`caltest\.predictive\.(\w+)\(", page("docs/numbers.md")):
        assert hasattr(caltest.predictive, name)
