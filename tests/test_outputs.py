"""Files that a command writes: checked before the work, and all of them or none."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from caltest.cli._outputs import check_outputs, write_files
from caltest.exceptions import InputError

SUFFIXES = {"--report": (".html", ".htm"), "--json": (".json",)}


def refused(outputs, inputs=()) -> str:
    before = listing()
    with pytest.raises(InputError) as caught:
        check_outputs({key: Path(value) for key, value in outputs.items()}, SUFFIXES, inputs)
    assert listing() == before
    return str(caught.value)


def listing():
    return sorted((path, path.stat().st_size) for path in Path().rglob("*"))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.json").write_text("{}")
    (tmp_path / "folder.html").mkdir()
    return tmp_path


def test_a_check_changes_nothing(here):
    (here / "old.json").write_text("old")
    before = listing()
    check_outputs({"--report": Path("new.HTM"), "--json": Path("old.json")}, SUFFIXES, [])
    check_outputs({"--report": Path("new.html"), "--json": Path("-")}, SUFFIXES, [Path("data.json")])
    assert listing() == before


def test_what_is_refused():
    assert refused({"--report": "a.json"}) == (
        "--report is a.json; give a file name that ends in .html or .htm."
    )
    assert refused({"--json": "a"}) == "--json is a; give a file name that ends in .json."
    assert refused({"--json": "no/a.json"}) == (
        "--json is no/a.json, and there is no folder no; make it first."
    )
    assert refused({"--report": "folder.html"}) == (
        "--report is folder.html, which is a folder; give a file in it."
    )
    assert refused({"--json": "data.json"}, [Path("data.json").resolve()]).startswith(
        "--json is data.json, which is the file that is read ("
    )
    assert "File name too long; give another" in refused({"--json": f"{'a' * 300}.json"})


def test_one_file_for_two_outputs():
    assert _twice("x.html", "./folder.html/../x.html") == (
        "--json is folder.html/../x.html, which is that of --report too; give another file."
    )
    assert _twice("-", "-") == "--json is -, which is that of --report too; give another file."


def _twice(first, second):
    with pytest.raises(InputError) as caught:
        check_outputs(
            {"--report": Path(first), "--json": Path(second)},
            {"--report": (".html",), "--json": (".html",)},
            [],
        )
    return str(caught.value)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_takes_no_files():
    assert refused({"--json": "/proc/a.json"}).startswith(
        "--json is /proc/a.json, which cannot be written: "
    )


def test_files_are_written_and_nothing_else(here):
    write_files({Path("a.html"): "é\n", Path("data.json"): "new"})
    assert (here / "a.html").read_bytes() == b"\xc3\xa9\n"
    assert [path.name for path, _ in listing()] == ["a.html", "data.json", "folder.html"]
    assert (here / "data.json").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="permissions and links")
def test_permissions_and_links_stay(here):
    (here / "data.json").chmod(0o640)
    (here / "link.json").symlink_to("data.json")
    write_files({Path("link.json"): "new"})
    assert (here / "link.json").is_symlink()
    assert (here / "data.json").read_text() == "new"
    assert stat.S_IMODE((here / "data.json").stat().st_mode) == 0o640


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null")
def test_a_device_stays_a_device():
    check_outputs({"--json": Path("/dev/null")}, SUFFIXES, [])
    write_files({Path("/dev/null"): "gone"})
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_if_one_fails_all_stay_as_they_were(here, monkeypatch, error):
    before = listing()
    opened = []
    real = Path.open

    def fails_late(self, *rest, **options):
        opened.append(self)
        if len(opened) == 2:
            raise error
        return real(self, *rest, **options)

    monkeypatch.setattr(Path, "open", fails_late)
    expected = InputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        write_files({Path("data.json"): "new", Path("b.json"): "new"})
    assert len(opened) == 2
    assert listing() == before
    if expected is InputError:
        assert str(caught.value) == "b.json cannot be written: No space left on device."


def test_a_long_name(here):
    path = Path(f"{'é' * 120}.json")
    check_outputs({"--json": path}, SUFFIXES, [])
    write_files({path: "new"})
    assert path.read_text() == "new"
