"""Files that a command writes: checked before the work, and all of them or none."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from support import command

import caltest
from caltest.cli._output import check_outputs
from caltest.exceptions import InputError
from caltest.files.writing import write_whole

SUFFIXES = {"--report": (".html", ".htm"), "--json": (".json",)}


def refused(outputs, inputs=()) -> str:
    before = listing()
    with pytest.raises(InputError) as caught:
        check_outputs({key: Path(value) for key, value in outputs.items()}, SUFFIXES, inputs)
    assert listing() == before
    return str(caught.value)


def listing():
    return sorted((path, path.lstat().st_size) for path in Path().rglob("*"))


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
    write_whole({Path("a.html"): "é\n", Path("data.json"): "new"})
    assert (here / "a.html").read_bytes() == b"\xc3\xa9\n"
    assert [path.name for path, _ in listing()] == ["a.html", "data.json", "folder.html"]
    assert (here / "data.json").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="permissions and links")
def test_permissions_and_links_stay(here):
    (here / "data.json").chmod(0o640)
    (here / "link.json").symlink_to("data.json")
    write_whole({Path("link.json"): "new"})
    assert (here / "link.json").is_symlink()
    assert (here / "data.json").read_text() == "new"
    assert stat.S_IMODE((here / "data.json").stat().st_mode) == 0o640


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null")
def test_a_device_stays_a_device():
    check_outputs({"--json": Path("/dev/null")}, SUFFIXES, [])
    write_whole({Path("/dev/null"): "gone"})
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="permissions and links")
@pytest.mark.parametrize("suffix", [".html", ".md", ".json", ".xml", ".png", ".pdf", ".svg"])
def test_what_a_link_leads_to_is_kept_unless_it_is_of_ours(here, suffix):
    """A name that was not typed is no file that the user meant to replace."""
    place = {"--report": Path(f"r{suffix}")}
    place["--report"].symlink_to("target")
    check_outputs(place, {"--report": (suffix,)}, [])  # it leads to nothing yet
    for content in ("precious", '{"name": "x"}', "<html>", "\x89PNG\r\n"):
        Path("target").write_text(content, "latin-1")
        with pytest.raises(
            InputError, match=r"a link to .*/target, which caltest did not write; name that"
        ):
            check_outputs(place, {"--report": (suffix,)}, [])
    check_outputs({"--report": Path("target")}, {"--report": ("",)}, [])  # typed, it is meant
    Path("target").write_bytes(b"")
    check_outputs(place, {"--report": (suffix,)}, [])
    if suffix in (".png", ".pdf", ".svg"):
        plt.figure().savefig("target", format=suffix[1:])
    else:
        audit = caltest.audit([0.5, 0.25] * 20, [0, 1] * 20, n_resamples=99, rng=1, min_rows=5)
        caltest.report.save(audit, f"old{suffix}")
        Path(f"old{suffix}").replace("target")
    check_outputs(place, {"--report": (suffix,)}, [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["r.html", "link.html"])
def test_a_pipe_that_nobody_reads_is_not_waited_for(here, name):
    os.mkfifo("r.html")
    Path("link.html").symlink_to("r.html")
    said = refused({"--report": name})
    assert said.startswith(
        f"--report is {name}, which cannot be written: it is a pipe from which nobody"
    )
    with pytest.raises(InputError, match="it is a pipe from which nobody reads"):
        write_whole({Path(name): "new"})
    reader = os.open("r.html", os.O_RDONLY | os.O_NONBLOCK)
    check_outputs({"--report": Path(name)}, SUFFIXES, [])
    assert os.get_blocking(reader) is False
    with pytest.raises(BlockingIOError):  # it is open still: this is no end
        os.read(reader, 1)
    write_whole({Path(name): "new"})
    assert os.read(reader, 9) == b"new"
    os.close(reader)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="there is no /dev/fd")
def test_a_pipe_of_the_shell_is_written_to(here):
    """As of `--report >(cat)`: its name leads to no place."""
    reader, writer = os.pipe()
    path = Path(f"/dev/fd/{writer}")
    check_outputs({"--report": path}, SUFFIXES, [])
    write_whole({path: "new"})
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    os.close(writer)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no such sockets")
def test_a_socket_is_refused(here):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("r.html")
        with pytest.raises(InputError, match="cannot be written: it is a socket"):
            write_whole({Path("r.html"): "new"})


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_if_one_fails_all_stay_as_they_were(here, monkeypatch, error):
    before = listing()
    real = os.write

    def fails_late(file, data):
        if bytes(data) == b"second":
            raise error
        return real(file, data)

    monkeypatch.setattr(os, "write", fails_late)
    expected = InputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        write_whole({Path("data.json"): "new", Path("b.json"): "second"})
    assert listing() == before
    if expected is InputError:
        assert str(caught.value) == (
            "b.json cannot be written: No space left on device; give a file in a folder that exists "
            "and may be written to."
        )


def _fails_at(monkeypatch, method, count):
    """Let the method of a path fail when it is called for the last of so many times."""
    called = []
    real = getattr(Path, method)

    def late(self, *rest, **options):
        called.append(self)
        if len(called) == count:
            raise OSError(13, "Permission denied")
        return real(self, *rest, **options)

    monkeypatch.setattr(Path, method, late)


def test_the_file_that_fails_is_named_and_what_was_written_by_then(here, monkeypatch):
    _fails_at(monkeypatch, "replace", 2)
    with pytest.raises(InputError) as caught:
        write_whole({Path("a.json"): "new", Path("data.json"): "new", Path("c.json"): "new"})
    assert str(caught.value).startswith(
        "data.json cannot be written: Permission denied, but a.json had been written by then; "
    )
    assert Path("a.json").read_text() == "new"
    assert Path("data.json").read_text() == "{}"
    assert [path.name for path, _ in listing()] == ["a.json", "data.json", "folder.html"]


def test_if_the_first_cannot_be_put_in_place_it_is_named_and_nothing_changes(here, monkeypatch):
    before = listing()
    _fails_at(monkeypatch, "replace", 1)
    with pytest.raises(InputError, match=r"^a.json cannot be written: Permission denied; give"):
        write_whole({Path("a.json"): "new", Path("data.json"): "new"})
    assert listing() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_device_leaves_the_files_as_they_were():
    before = listing()
    with pytest.raises(InputError, match=r"^/dev/full cannot be written: No space left on device; "):
        write_whole({Path("/dev/full"): "new", Path("data.json"): "new"})
    assert listing() == before


def test_what_lies_beside_is_neither_followed_nor_overwritten(here, monkeypatch):
    monkeypatch.setattr("caltest.files.writing.uuid4", lambda: type("Known", (), {"hex": "known"}))
    (here / "victim").write_text("precious")
    (here / ".caltest-known.part").symlink_to("victim")
    with pytest.raises(InputError, match=r"^data.json cannot be written: File exists"):
        write_whole({Path("data.json"): "new"})
    assert (here / "victim").read_text() == "precious"
    assert (here / ".caltest-known.part").is_symlink()


def test_links_to_themselves_and_impossible_names(here):
    (here / "loop.html").symlink_to("loop.html")
    assert refused({"--report": "loop.html"}) == (
        "--report is loop.html, which cannot be written: Too many levels of symbolic links; give "
        "another file."
    )
    assert "null byte; give another file." in refused({"--report": "a\x00.html"})
    check_outputs({"--report": Path("new.html")}, SUFFIXES, [Path("loop.html"), Path("a\x00")])


def test_a_long_name(here):
    path = Path(f"{'é' * 120}.json")
    check_outputs({"--json": path}, SUFFIXES, [])
    write_whole({path: "new"})
    assert path.read_text() == "new"


def test_a_page_does_not_replace_the_state_that_it_is_about(tmp_path):
    state = tmp_path / "state.html"
    result = command("monitor", state, tmp_path / "batch.csv", "--report", state)
    assert result.exit_code == 2
    assert "which is the file that is read" in result.stderr
