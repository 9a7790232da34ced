"""Every call of the record returns the numbers that are recorded."""

from itertools import groupby

import pytest
from record import CALLS, WORKERS, differences, made, recorded, tolerance

RECORD = recorded()

#: Calls by the beginning of their names, such as `test/skce_uq`.
GROUPS = {
    "/".join(group): list(names)
    for group, names in groupby(sorted(CALLS), lambda name: name.split("/")[:2])
}

#: A call of every kind that shares its work among workers.
SHARED = [
    "test/omnibus/monte_carlo/middle", "test/skce_uq/monte_carlo/middle", "test/ckce/monte_carlo/m3",
    "test/ecd/monte_carlo/large", "test/function/options/own", "audit/checks/group",
    "bounds/amounts/m3", "compare/skce_uq", "power/temperature", "squared_error/m3",
    "files/scan/long/ecd",
]  # fmt: skip


def test_the_record_is_of_these_calls():
    assert list(RECORD) == list(CALLS)


@pytest.mark.parametrize(
    ("old", "new", "different"),
    [
        (0.5, 0.5 + 1e-14, 0),
        (0.5, 0.5 + 1e-11, 1),
        (1e-20, 1.1e-20, 1),
        ([1.0, 1e-14], [1.0, 2e-14], 0),  # one scale
        ({"a": 1.0, "b": 1e-14}, {"a": 1.0, "b": 2e-14}, 1),  # one each
        ({"a": [1, None]}, {"a": [2, None]}, 1),
        ({"a": "nan"}, {"a": 0.0}, 1),
        ({"a": 1.0}, {"b": 1.0}, 2),
        ([1.0], [1.0, 2.0], 1),
    ],
)
def test_what_differs_is_told(old, new, different):
    assert len(list(differences(old, new, 1e-12))) == different


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=() if group.startswith("test/") else pytest.mark.slow)
        for group in GROUPS
    ],
)
def test_numbers_are_those_recorded(group):
    different = {
        name: found
        for name in GROUPS[group]
        if (found := list(differences(RECORD[name], made(name), tolerance(name))))
    }
    assert not different


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_two_workers_change_no_number(name, monkeypatch):
    monkeypatch.setitem(WORKERS, "n_jobs", 2)
    assert not list(differences(RECORD[name], made(name), tolerance(name)))
