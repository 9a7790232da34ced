"""What leaves the command line: files whole or not at all, its streams, and the exit status."""

import json
import os
import re
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hostile import NAMES, assert_fit
from support import command as run
from support import some_fast

import caltest
from caltest.cli._commands import OPTIONS, _configured
from caltest.cli._options import Config
from caltest.exceptions import InputError
from caltest.files.writing import write_whole
from caltest.report.formats import markdown
from caltest.report.summary import sentence

CALTEST = [sys.executable, "-m", "caltest"]
OUTPUTS = {"--report": ".html", "--markdown": ".md", "--json": ".json", "--junit": ".xml"}
QUICK = ["--seed", "1", "--jobs", "1"]
#: Commands that write a picture, as quick as can be.
PICTURED = {
    "bounds": ["--resamples", "99"],
    "power": ["--n", "40", "--datasets", "5", "--resamples", "19", "--bias", "0.5"],
}
PICTURES = (".png", ".pdf", ".svg")


def shell(*arguments, **options):
    done = subprocess.run([*CALTEST, *map(str, arguments)], capture_output=True, **options)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def table(name, rows=80):
    rng = np.random.default_rng(1)
    p = rng.random(rows)
    label = rng.random(rows) < p**3
    columns = {"other": 1 - p, name: p, "label": np.where(label, name, "other")}
    return pd.DataFrame(columns | {f"group {name}": np.where(np.arange(rows) % 2, name, "b")})


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table("cat").drop(columns="group cat").to_csv("d.csv", index=False)
    return tmp_path


def contents():
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


# --- every command, every output, every name


def _file(name, of, number=1):
    """A file whose name is as bad as what it holds."""
    path = Path(f"{name.replace('/', '|')[:60]} {number}.csv")
    of.to_csv(path, index=False)
    return str(path)


EVERY_COMMAND = {
    "test": ["--resamples", "19", "--seed", "1"],
    "estimate": [],
    "compare": [],
    "audit": ["--resamples", "99", "--seed", "1", "--min-rows", "20", "--statistic", "ks"],
    **PICTURED,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_what_is_printed_of_hostile_names(command, name):
    frame = table(name).drop(columns=f"group {name}")
    files = [_file(name, frame, number) for number in range(2 if command == "compare" else 1)]
    result = run(command, *files, *EVERY_COMMAND[command])
    assert result.exit_code in (0, 1), result.output
    assert_fit(result.output, 400)
    wrong = run(command, *files, "--label", name)
    assert (wrong.exit_code, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert_fit(wrong.stderr, 510)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_every_report_of_hostile_names(name):
    frame = table("cat").rename(columns={"group cat": "group"}).replace({"group": {"b": name}})
    arguments = ["audit", _file(name, frame), "--group", "group", *EVERY_COMMAND["audit"]]
    files = [word for option, suffix in OUTPUTS.items() for word in (option, f"out{suffix}")]
    assert run(*arguments, *files).exit_code in (0, 1)
    for option, suffix in OUTPUTS.items():
        printed = run(*arguments, option, "-")
        assert printed.stdout_bytes == Path(f"out{suffix}").read_bytes()
        assert_fit(printed.stderr)
    assert_fit(Path("out.md").read_text(encoding="utf-8"), 10**5)
    ElementTree.parse("out.xml")
    json.loads(Path("out.json").read_text())


@pytest.mark.parametrize("command", EVERY_COMMAND)
@pytest.mark.parametrize("typed", [["x\n::error::y.csv", "b", "c"], ["--\x1b[2J\n::error::"]])
def test_what_the_parser_says(command, typed):
    result = run(command, "d.csv", *typed)
    assert (result.exit_code, result.stdout) == (2, "")
    assert_fit(result.stderr)
    assert len(result.stderr.splitlines()) <= 5
    result = run("x\n::error::y")
    assert result.exit_code == 2
    assert_fit(result.stderr)


def test_the_command_in_a_report_can_be_repeated():
    name = "a\n'\\::error::\u202e.csv"
    Path("d.csv").rename(name)
    run("audit", name, *EVERY_COMMAND["audit"], "--markdown", "a.md")
    text = Path("a.md").read_text(encoding="utf-8")
    (command,) = [each for each in text.split("\n") if each.startswith("caltest audit")]
    line, env = ["bash", "-c", f"printf '%s\\0' {command}"], {**os.environ, "LC_ALL": "C.UTF-8"}
    words = subprocess.run(line, stdout=subprocess.PIPE, check=True, env=env).stdout
    assert words.decode().split("\0")[2] == name


# --- standard output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "suffix", "encoding"),
    [("--report", ".html", "latin-1"), ("--json", ".json", "latin-1"), ("--junit", ".xml", "utf-16")],
)
def test_data_is_utf_8_whatever_the_terminal_is(option, suffix, encoding):
    table("Käse → 🙂").drop(columns="group Käse → 🙂").to_csv("d.csv", index=False)
    arguments = ["audit", "d.csv", *EVERY_COMMAND["audit"]]
    run(*arguments, option, f"out{suffix}")
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*CALTEST, *arguments, option, "-"], capture_output=True, env=env)
    assert done.stdout == Path(f"out{suffix}").read_bytes()


LEAVING = {
    "help": (["--help"], "stdout"),
    "help of a command": (["audit", "--help"], "stdout"),
    "version": (["--version"], "stdout"),
    "nothing": ([], "stderr"),
    "wrong option": (["test", "--foo"], "stderr"),
    "wrong file": (["test", "missing.csv"], "stderr"),
    "rejected": (["test", "d.csv", "--resamples", "99", "--seed", "1"], "stdout"),
    "data": (["estimate", "d.csv", "--json"], "stdout"),
    "report": (["audit", "d.csv", *EVERY_COMMAND["audit"], "--markdown", "-"], "stdout"),
    "notes of a report": (["audit", "d.csv", *EVERY_COMMAND["audit"], "--markdown", "-"], "stderr"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "stream", "both"),
    [
        *((*leaving, False) for leaving in LEAVING.values()),
        *((*LEAVING[each], True) for each in ("nothing", "rejected", "report")),
    ],
)
def test_a_reader_that_leaves_is_never_a_rejection(arguments, stream, both):
    reader, writer = os.pipe()
    os.close(reader)
    streams = dict.fromkeys(["stdout", "stderr"], writer if both else subprocess.PIPE)
    done = subprocess.run([*CALTEST, *arguments], **{**streams, stream: writer})
    os.close(writer)
    assert done.returncode == 141
    assert not done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(("arguments", "stream"), LEAVING.values(), ids=LEAVING)
def test_a_full_disk_is_never_a_rejection(arguments, stream):
    with Path("/dev/full").open("w") as full:
        streams = dict.fromkeys(["stdout", "stderr"], subprocess.PIPE)
        done = subprocess.run([*CALTEST, *arguments], **{**streams, stream: full})
    assert done.returncode == 2
    message = b"Error: the output cannot be written: No space left on device.\n"
    assert done.stderr == (message if stream == "stdout" else None)


# --- files: whole, or not at all


@pytest.mark.slow
@pytest.mark.parametrize("suffix", PICTURES)
@pytest.mark.parametrize("command", PICTURED)
@pytest.mark.parametrize("link", ["symbolic", "hard", "to a link", "itself"])
def test_a_picture_never_replaces_the_input(command, suffix, link):
    output = Path(f"p{suffix}")
    if link == "symbolic":
        output.symlink_to("d.csv")
    elif link == "hard":
        output.hardlink_to("d.csv")
    elif link == "to a link":
        Path("other").symlink_to("d.csv")
        output.symlink_to("other")
    else:
        Path("d.csv").rename(output)
        Path("d.csv").symlink_to(output)
    before = Path("d.csv").read_bytes()
    result = run(command, "d.csv", *PICTURED[command], *QUICK, "--plot", output)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: --plot is {output}, which is the file that is read (d.csv); " + (
        "give another file.\n"
    )
    assert Path("d.csv").read_bytes() == before


@pytest.mark.parametrize(("option", "suffix"), OUTPUTS.items())
def test_a_report_never_replaces_what_is_read(option, suffix):
    Path("caltest.toml").write_text("seed = 1\n")
    for read in ("d.csv", "caltest.toml"):
        output = Path(f"{read}{suffix}")
        output.hardlink_to(read)
        result = run("audit", "d.csv", "--config", "caltest.toml", option, output)
        assert result.exit_code == 2
        assert f"which is the file that is read ({read})" in result.stderr


def _little_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "old"), [(".png", None), (".svg", b"old")])
def test_a_picture_under_a_limit_of_size_leaves_nothing(suffix, old):
    picture = Path(f"p{suffix}")
    if old:
        picture.write_bytes(old)
    before = contents()
    arguments = ["bounds", "d.csv", *PICTURED["bounds"], *QUICK]
    status, out, error = shell(*arguments, "--plot", picture, preexec_fn=_little_room)
    assert (status, contents()) == (2, before)
    assert out == run(*arguments).stdout
    assert f"Error: {picture} cannot be written: File too large" in error


@pytest.mark.slow
@pytest.mark.parametrize(("option", "suffix"), OUTPUTS.items())
def test_a_report_under_a_limit_of_size_leaves_nothing(option, suffix):
    before = contents()
    arguments = ["audit", "d.csv", *EVERY_COMMAND["audit"], option, f"out{suffix}"]
    status, _, error = shell(*arguments, preexec_fn=_little_room)
    assert (status, contents()) == (2, before)
    assert "cannot be written: File too large" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["test", "--seed", "x"], "--seed is 'x'; give a whole number."),
        (["test", "--seed", "-1"], "--seed is -1; give a whole number from 0 on."),
        (["test", "--resamples", "1.5"], "--resamples is '1.5'; give a whole number."),
        (["audit", "--alpha", "5%"], "--alpha is '5%'; give a number."),
        (["test", "--qqqq"], "no such option: --qqqq; see caltest test --help."),
        (["--qqqq"], "no such option: --qqqq; see caltest --help."),
        (["nope"], "no such command 'nope'; see caltest --help."),
        (["test", "a.csv", "b.csv"], "a.csv and 1 more: these are several files, and no logs.*"),
        (["list", "a", "b"], "got unexpected extra argument.*b.*; see caltest list --h.*"),
        (["test", "--lens", "a", "--lens=b"], "--lens is given 2 times; give it once."),
        (["audit", *["--group", "a", "--label", "y"] * 2], "--label is given 2 times; give it once."),
        (["test", "--seed"], "option '--seed' requires an argument; see caltest.* --help."),
    ],
)
def test_what_is_typed_wrong_is_answered_in_one_line(words, message):
    found = run(*words)
    assert found.exit_code == 2
    assert re.fullmatch(f"Error: {message}\n", found.stderr), found.stderr


def test_another_thread_may_write():
    thread = threading.Thread(target=write_whole, args=({Path("a.json"): "new"},))
    thread.start()
    thread.join()
    assert Path("a.json").read_text() == "new"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_of_new_and_of_replaced_files(mask):
    Path("old.png").write_bytes(b"old")
    Path("old.png").chmod(0o604)
    before = os.umask(mask)
    try:
        write_whole({Path("old.png"): b"new", Path("new.png"): b"new"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path("new.png").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE(Path("old.png").stat().st_mode) == 0o604


@pytest.mark.slow
@pytest.mark.parametrize("path", [None, 3, ["a.html"]])
def test_save_says_what_is_no_path(path):
    digits = caltest.datasets.load_digits_predictions("random_forest")
    audit = caltest.audit(digits.probs, digits.labels, lenses="top_label", n_resamples=99, rng=1)
    with pytest.raises(InputError, match=r"^path is .*; give the path of a file"):
        caltest.report.save(audit, path)


# --- configurations of someone else


def configured(text, folder="."):
    Path(folder, "pyproject.toml").write_text(f"[tool.caltest]\n{text}\n")


SET = {
    "fail-on = 'never'": "fail-on is never (by default found)",
    "alpha = 0.001": "alpha is 0.001 (by default 0.05)",
    "tolerance = 0.3": "tolerance is 0.3 (by default none)",
    "min-rows = 500": "min-rows is 500 (by default 50)",
    "resamples = 99": "resamples is 99 (by default 999)",
    "sampling-rate = '0=0.5'": "sampling-rate is 0=0.5 (by default none)",
    "correction = 'holm'": "correction is holm (by default westfall_young)",
    "min-rows = 10": "min-rows is 10 (by default 50)",
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "said"), SET.items(), ids=SET)
def test_what_a_configuration_sets_is_said_first_and_in_every_report(text, said):
    configured(text)
    arguments = ["audit", "d.csv", "--seed", "1", "--statistic", "ks"]
    if "alpha" in text:
        arguments += ["--resamples", "1999"]
    if "tolerance" in text:
        arguments = ["audit", "d.csv", "--seed", "1"]
    place = "pyproject.toml [tool.caltest]"
    sentence = f"Set by {place}, which may change the exit status: {said}."
    written = [word for option, suffix in OUTPUTS.items() for word in (option, f"out{suffix}")]
    assert run(*arguments, *written).stdout.startswith(f"{sentence}\n")
    assert sentence in Path("out.html").read_text(encoding="utf-8").partition("<section")[0]
    assert markdown(sentence) in Path("out.md").read_text(encoding="utf-8").partition("###")[0]
    assert json.loads(Path("out.json").read_text())["warnings"][0] == sentence
    assert sentence in Path("out.xml").read_text(encoding="utf-8")
    assert run(*arguments, "--json", "-").stderr.startswith(f"{sentence}\n")
    name, _, value = text.partition(" = ")
    assert "Set by" not in run(*arguments, f"--{name}", value.strip("'")).stdout


def test_what_is_the_default_is_not_mentioned():
    configured(
        "alpha = 0.05\nmin-rows = 50\nresamples = 999\nfail-on = 'found'\nintersections = 2\njobs = 1\n"
        "title = 't'\ndate = 'd'\ncorrection = 'westfall_young'\njson = 'a.json'\nmarkdown = 'a.md'\n"
        "report = 'a.html'\njunit = 'a.xml'\nevent = 'cat'"
    )
    result = run("audit", "d.csv", "--seed", "1", "--lens", "top_label")
    assert result.stdout.startswith("No error found"), result.output


#: What may change the exit status.
_HARMFUL = sorted(name for name, option in OPTIONS.items() if not option.harmless)


@pytest.mark.parametrize("option", _HARMFUL)
def test_any_other_option_of_a_parent_folder_is_said_first(option, monkeypatch):
    """A weight of 0 in the rows that are wrong, other labels, …: all move exit status 1 to 0."""
    several = option in ("group", "columns", "lens", "statistic", "sampling-rate")
    value = ("a" * 3000,) if several else "b" * 3000
    loaded = Config(Path("pyproject.toml"), "p" * 3000, {"columns": ("a" * 3000,), option: value})
    said = sentence(_configured(loaded))
    assert f"{option} is " in said
    assert said.endswith(").")
    assert "Set by ppp" in said
    every = _configured(Config(None, "p" * 3000, dict.fromkeys(OPTIONS, "x" * 99)))
    assert all(f"{each} is " in sentence(every) for each in _HARMFUL)


def test_weights_of_a_parent_folder_do_not_open_the_gate_unseen(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    p = np.tile([0.3, 0.6], 300)
    y = (rng.random(600) < np.where(np.arange(600) < 200, 0.95, p)).astype(int)
    (tmp_path / "data").mkdir()
    frame = pd.DataFrame({"p": p, "label": y, "w": (np.arange(600) >= 200).astype(int)})
    frame.to_csv(tmp_path / "data" / "d.csv", index=False)
    monkeypatch.chdir(tmp_path / "data")
    options = ["audit", "d.csv", "--columns", "p", "--seed", "1", "--statistic", "citl"]
    options += ["--resamples", "99"]
    assert run(*options).exit_code == 1
    (tmp_path / "pyproject.toml").write_text("[tool.caltest]\nweights = 'w'\n")
    result = run(*options)
    assert result.exit_code == 0
    first = result.stdout.partition("\n")[0]
    assert first.startswith("Set by ")
    said = "[tool.caltest], which may change the exit status: weights is w (by default none)."
    assert first.endswith(f"pyproject.toml {said}")


# --- interruptions, dates


@pytest.mark.parametrize("module", some_fast(["typer", "narwhals", "matplotlib"], "typer"))
def test_an_interruption_of_imports_is_quiet(module, tmp_path):
    """Before the command line is loaded, and while a command loads what it needs."""
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / f"{module}.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    )
    path = os.pathsep.join([str(tmp_path / "stub"), str(Path(caltest.__file__).parent.parent)])
    arguments = ["power", "d.csv", *PICTURED["power"], "--plot", "a.png"]
    done = shell(*arguments, env={**os.environ, "PYTHONPATH": path})
    assert done[0] == 130
    assert "Traceback" not in done[2]
    assert not Path("a.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", [*PICTURED, "audit"])
def test_a_date_that_is_none_is_refused_before_anything_is_imported(command, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "abc")
    said = "variable SOURCE_DATE_EPOCH is 'abc'; set it to whole seconds since 1970, or unset it."
    assert shell(command, "d.csv") == (2, "", f"Error: the environment {said}\n")


@pytest.mark.slow
@pytest.mark.parametrize("given", ["0", "x", "99999", "-1", "1.5", " 2"])
@pytest.mark.parametrize("command", ["test", "estimate", "audit", "plan"])
def test_threads_that_are_none_are_refused(command, given, monkeypatch):
    said = f"variable NUMBA_NUM_THREADS is '{given}'; set it to a whole number from 1 to 9999, or unset"
    monkeypatch.setenv("NUMBA_NUM_THREADS", given)
    assert shell(command, "d.csv") == (2, "", f"Error: the environment {said} it.\n")


@pytest.mark.slow
@pytest.mark.parametrize("given", ["", "0"])
def test_an_empty_date_is_none_given(given, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    found = run("test", "--example", "digits:naive_bayes", "--resamples", "99")
    assert (found.exit_code, found.stderr) == (1, "")
