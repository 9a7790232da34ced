"""Files that a command writes: checked before the work, and all of them or none."""

import io
import os
import socket
import stat
from pathlib import Path

import pytest
from support import command

from caltest.exceptions import InputError
from caltest.files.writing import write_whole

TAKEN = "missing.csv: there is no such file; check the path."


def said(*words):
    """What is said of outputs, before the input is looked for, and nothing is changed."""
    before = listing()
    found = command("audit", "missing.csv", *words)
    assert (found.exit_code, found.stdout, listing()) == (2, "", before)
    return found.stderr.removeprefix("Error: ").rstrip("\n")


def listing():
    return sorted((path, path.lstat().st_size) for path in Path().rglob("*"))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.json").write_text("{}")
    (tmp_path / "folder.html").mkdir()
    return tmp_path


def test_what_may_be_written(here):
    (here / "old.json").write_text("old")
    (here / "link.json").symlink_to("old.json")
    for path in ("new.HTM", "new.html", "-"):
        assert said("--report", path, "--json", "old.json") == TAKEN
    assert said("--json", "link.json") == TAKEN
    assert said("--json", f"{'é' * 120}.json") == TAKEN


def test_what_is_refused(here):
    (here / "loop.html").symlink_to("loop.html")
    suffix = "give a file name that ends in"
    assert said("--report", "a.json") == f"--report is a.json; {suffix} .html or .htm."
    assert said("--json", "a") == f"--json is a; {suffix} .json."
    for option, path, why in (
        ("--json", "no/a.json", "No such file or directory"),
        ("--report", "folder.html", "it is no file"),
        ("--report", "loop.html", "Too many levels of symbolic links"),
    ):
        refused = f"{option} is {path}, which cannot be written: {why}; give another file."
        assert said(option, path) == refused
    for path in ("x.html", "-"):
        again = said("--report", path, "--json", path)
        assert again == f"--report is {path}, and another option is too; give another file."


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
    assert said("--json", "/dev/null") == TAKEN
    write_whole({Path("/dev/null"): "gone"})
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["r.html", "link.html"])
def test_a_pipe_that_nobody_reads_is_not_waited_for(here, name):
    os.mkfifo("r.html")
    Path("link.html").symlink_to("r.html")
    assert said("--report", name).startswith(
        f"--report is {name}, which cannot be written: it is a pipe from which nobody"
    )
    with pytest.raises(InputError, match="it is a pipe from which nobody reads"):
        write_whole({Path(name): "new"})
    reader = os.open("r.html", os.O_RDONLY | os.O_NONBLOCK)
    assert said("--report", name) == TAKEN
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
    assert said("--report", path) == TAKEN
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

    class Full(io.BufferedWriter):
        def write(self, data):
            if bytes(data) == b"second":
                raise error
            return super().write(data)

    monkeypatch.setattr(os, "fdopen", lambda file, mode: Full(io.FileIO(file, mode)))
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


def test_a_long_name(here):
    path = Path(f"{'é' * 120}.json")
    write_whole({path: "new"})
    assert path.read_text() == "new"


def test_a_page_does_not_replace_the_state_that_it_is_about(tmp_path):
    state = tmp_path / "state.html"
    result = command("monitor", state, tmp_path / "batch.csv", "--report", state)
    assert result.exit_code == 2
    assert "which is the file that is read" in result.stderr
