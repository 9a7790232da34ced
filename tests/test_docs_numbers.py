"""What docs/numbers.md shows is what happens."""

from __future__ import annotations

import re

from pages import follow, page

import caltest
from caltest.lenses import LENSES, find_lens
from caltest.statistics import DENSITY_STATISTICS, STATISTICS


def test_the_page_runs():
    follow("docs/numbers.md")


def test_names_in_its_tables_exist():
    named = set(re.findall(r'`"([a-z_0-9:.]+)"`', page("docs/numbers.md")))
    lenses = {name for name in named if ":" in name}
    assert {name.partition(":")[0] + ":" for name in lenses} == {
        name for name in LENSES if name not in ("top_label", "class:", "top:", "sorted")
    }
    assert all(find_lens(name) for name in lenses)
    assert named - lenses <= {*STATISTICS, *DENSITY_STATISTICS}
    assert {*DENSITY_STATISTICS} <= named
    for name in re.findall(r"`caltest\.predictive\.(\w+)\(", page("docs/numbers.md")):
        assert hasattr(caltest.predictive, name)
