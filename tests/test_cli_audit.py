"""`caltest audit`: what it prints and writes, when it fails, and that nothing is left half-done."""

import html
import json
import re
import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from support import command

import caltest
from caltest.cli._commands import command_line
from caltest.exceptions import InputError
from caltest.files import read_with_groups

CLASSES = ["ant", "bee", "cat"]
QUICK = ["--resamples", "99", "--seed", "1"]
SMALL = ["--lens", "top_label", "--statistic", "ks", *QUICK]
OUTPUTS = {
    "--report": "report.html",
    "--markdown": "report.md",
    "--json": "report.json",
    "--junit": "junit.xml",
}
EVERY_OUTPUT = [word for pair in OUTPUTS.items() for word in pair]


run = partial(command, "audit")


def table(seed: int, rows: int = 400) -> pd.DataFrame:
    """Predictions of three classes, sharpened in the south, and two columns of groups."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(3), size=rows)
    labels = (rng.random((rows, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    region = rng.choice(["north", "south"], rows)
    power = np.where(region == "south", 4.0, 1.0)[:, None]
    said = truth**power / (truth**power).sum(axis=1, keepdims=True)
    frame = pd.DataFrame(said, columns=CLASSES)
    return frame.assign(label=np.array(CLASSES)[labels], region=region, age=rng.choice([4, 30], rows))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with predictions: of a calibrated model, and of one wrong in the south."""
    monkeypatch.chdir(tmp_path)
    both = table(1)
    both.to_csv("wrong.csv", index=False)
    both.to_parquet("wrong.parquet")
    both.drop(columns=["region", "age"]).to_csv("plain.csv", index=False)
    north = table(2, 1000).query("region == 'north'")
    north.drop(columns=["region", "age"]).to_csv("right.csv", index=False)
    return tmp_path


GROUPS = ["--group", "region", "--group", "age"]


def listing():
    return sorted((path.as_posix(), path.read_bytes()) for path in Path().rglob("*") if path.is_file())


# --- what is printed


@pytest.mark.slow
def test_rejected_is_1(here):
    result = run("wrong.csv", *GROUPS, *SMALL)
    assert result.exit_code == 1
    assert result.stderr == ""
    assert result.stdout.endswith("\n\nError found, p = 0.01 (exit status 1).\n")


def test_not_rejected_is_0(here):
    result = run("right.csv", *QUICK)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.endswith("\n\nNo error found, p = 0.57 (exit status 0).\n")


@pytest.mark.slow
def test_a_finding_may_be_let_pass(here):
    result = run("plain.csv", *SMALL, "--fail-on", "never")
    assert result.exit_code == 0
    assert result.stdout.endswith("\nError found, p = 0.01 (exit status 0, by --fail-on never).\n")
    assert run("plain.csv", *SMALL, "--fail-on", "found").exit_code == 1


@pytest.mark.slow
def test_the_summary_is_the_audit_of_the_same_call(here):
    sample, groups = read_with_groups("wrong.csv", groups=["region", "age"])
    options = {"lenses": ["top_label", "class:bee"], "statistics": ["ks", "ecd"], "n_resamples": 799}
    options |= {"alpha": 0.1, "min_rows": 60, "correction": "holm", "rng": 3}
    expected = caltest.audit(sample.rows, sample.labels, groups=groups, **options)
    result = run(
        *("wrong.csv", *GROUPS, "--lens", "top_label", "--lens", "class:bee", "--statistic", "ks"),
        *("--statistic", "ecd", "--alpha", "0.1", "--min-rows", "60", "--correction", "holm"),
        *("--seed", "3", "--resamples", "799", "--jobs", "1"),
    )
    typed = expected.summary().replace("to_frame()", "--report").replace("(mater", "(--mater")
    assert result.stdout.split()[: len(typed.split())] == typed.split()


@pytest.mark.slow
def test_a_tolerance(here):
    small, large = (
        run("plain.csv", "--lens", "top_label", "--tolerance", error, *QUICK)
        for error in ("0.01", "0.9")
    )
    assert (small.exit_code, large.exit_code) == (1, 0)


def test_what_to_leave_out_is_named_as_it_was_typed(here):
    pd.DataFrame({"p": [0.2, 0.8] * 30, "label": [0, 1] * 30, "c": range(60)}).to_csv("p.csv")
    done = run("p.csv", "--columns", "p", "--tolerance", "0.1", "--sampling-rate", "0=0.5")
    assert done.exit_code == 2
    assert "leave out --tolerance; keep --sampling-rate." in done.stderr
    for allowed in (("--tolerance", "0.1"), ("--rounding", "0.1")):
        done = run("p.csv", "--columns", "p", "--clusters", "c", "--statistic", "scan", *allowed)
        assert done.exit_code == 2
        assert "only means are tested" in done.stderr
        assert "leave out --statistic, or give --statistic citl." in done.stderr


def test_the_example():
    assert run("--example", "digits:random_forest", *SMALL).exit_code == 1


@pytest.mark.slow
def test_files_of_every_kind(here):
    frame = table(1)
    probs = frame[CLASSES].to_numpy()
    labels = frame["label"].map(CLASSES.index).to_numpy()
    np.savez("wrong.npz", probs=probs, y=labels, classes=CLASSES, region=frame["region"].tolist())
    frame.drop(columns="age").to_parquet("wrong.parquet")
    frame.drop(columns="age").to_csv("wrong.csv", index=False)
    grouped = ["--group", "region", "--lens", "top_label", *QUICK]
    printed = {run(f"wrong.{kind}", *grouped).stdout for kind in ("csv", "parquet", "npz")}
    printed.add(run("wrong.csv", "--columns", "ant,bee,cat", "--label", "label", *grouped).stdout)
    assert len(printed) == 1


def test_json_on_standard_output(here):
    result = run("plain.csv", *SMALL, "--json", "-", "--report", "report.html")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["rejected"] is True
    assert result.stderr == ("Written: report.html.\nError found, p = 0.01 (exit status 1).\n")


@pytest.mark.slow
def test_what_takes_long_is_announced(here, monkeypatch):
    assert run("plain.csv", *SMALL).stderr == ""
    monkeypatch.setattr("caltest._parallel.LONG", 1e-9)
    assert re.fullmatch(
        r"Note: an audit of 400 rows takes about 0 seconds on \d+ workers?; "
        r"fewer draws \(--resamples\), groups or statistics take less\.\n",
        run("plain.csv", *SMALL).stderr,
    )


# --- what is written


@pytest.mark.slow
def test_every_output_is_written_and_named(here):
    before = {name for name, _ in listing()}
    result = run("wrong.csv", *GROUPS, *QUICK, *EVERY_OUTPUT)
    assert result.stdout.endswith(
        "\n\nWritten: report.html, report.md, report.json, junit.xml.\n"
        "Error found, p = 0.01 (exit status 1).\n"
    )
    assert {name for name, _ in listing()} - before == set(OUTPUTS.values())
    page = Path("report.html").read_text(encoding="utf-8")
    command = "caltest audit wrong.csv --group region --group age --resamples 99 --seed 1"
    assert command in page
    assert command in Path("report.md").read_text(encoding="utf-8")
    assert "wrong.csv" in re.search("<title>(.*)</title>", page)[1]
    written = json.loads(Path("report.json").read_text())
    suite = ElementTree.parse("junit.xml").getroot().find("testsuite")
    assert written["seed"] == 1
    assert int(suite.get("failures")) > 0
    assert len(suite.findall("testcase")) == int(suite.get("tests"))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(here):
    arguments = ["wrong.csv", *GROUPS, *QUICK, *EVERY_OUTPUT]
    first = run(*arguments, "--jobs", "1").stdout, listing()
    assert (run(*arguments, "--jobs", "2").stdout, listing()) == first


@pytest.mark.slow
def test_without_a_seed_the_command_in_the_report_repeats_the_numbers(here):
    first = run("plain.csv", "--resamples", "99", "--json", "report.json")
    seed = json.loads(Path("report.json").read_text())["seed"]
    again = run("plain.csv", "--resamples", "99", "--seed", seed)
    shown = again.stdout.removesuffix("Error found, p = 0.01 (exit status 1).\n")
    assert first.stdout.startswith(shown)
    other = run("plain.csv", "--resamples", "99", "--markdown", "report.md")
    (command,) = re.findall("(caltest audit .* --seed [0-9]+)", Path("report.md").read_text())
    repeated = run(*shlex.split(command)[2:], "--markdown", "again.md")
    assert Path("again.md").read_bytes() == Path("report.md").read_bytes()
    assert other.stdout.replace("report.md", "again.md") == repeated.stdout


def test_a_file_that_cannot_be_written_at_last_does_not_hide_the_finding(here, monkeypatch):
    def full(*_):
        raise InputError("report.md cannot be written: No space left on device.")

    monkeypatch.setattr("caltest.cli._commands.write_whole", full)
    result = run("plain.csv", *SMALL, "--markdown", "report.md")
    assert result.exit_code == 2
    assert result.stdout.endswith(
        "\nError found, p = 0.01 (exit status 2, for not all could be written).\n"
    )
    assert "Written" not in result.stdout
    assert result.stderr == "Error: report.md cannot be written: No space left on device.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_the_status_that_is_printed_is_the_status(here):
    result = run("plain.csv", *SMALL, "--json", "/dev/full", "--report", "report.html")
    assert result.exit_code == 2
    assert "(exit status 2, for not all could be written)." in result.stdout
    assert "(exit status 1" not in result.stdout
    assert result.stderr.startswith("Error: /dev/full cannot be written: No space left on device;")
    assert not Path("report.html").exists()


# --- options from a file


@pytest.mark.slow
def test_options_from_pyproject_toml(here):
    Path("pyproject.toml").write_text(
        "[tool.caltest]\ngroup = ['region']\ncolumns = ['ant', 'bee', 'cat']\nlens = 'top_label'\n"
        "statistic = 'ks'\nresamples = 99\nreport = 'report.html'\nseed = 1\n"
    )
    result = run("wrong.csv", "--group", "age")
    columns = ("--columns", "ant,bee,cat")
    typed = run("wrong.csv", *columns, "--group", "age", *SMALL, "--config", "/dev/null")
    summary = typed.stdout.partition("\n\nError found")[0]
    assert result.stdout == (
        "Set by pyproject.toml [tool.caltest], which may change the exit status: columns is ant, bee, "
        "cat (by default all others); lens is top_label (by default several); statistic is ks (by "
        "default several); resamples is 99 (by default 999); seed is 1 (by default random).\n"
        f"{summary}\n\nOptions from pyproject.toml [tool.caltest]: columns, lens, statistic, "
        "resamples, report, seed.\nWritten: report.html.\nError found, p = 0.01 (exit status 1).\n"
    )
    command = "caltest audit wrong.csv --columns ant,bee,cat --group age --lens top_label --statistic"
    assert f"{command} ks --resamples 99 --seed 1" in Path("report.html").read_text(encoding="utf-8")


def test_options_from_a_named_file(here):
    Path("caltest.toml").write_text("alpha = 0.2\nresamples = 9\nfail-on = 'never'\n")
    result = run(*("plain.csv", "--lens", "top_label", "--statistic", "ks", "--config", "caltest.toml"))
    assert result.exit_code == 0
    assert "\nOptions from caltest.toml: alpha, resamples, fail-on.\n" in result.stdout
    assert "Error found, p = 0.1 (exit status 0" in result.stdout


# --- what is wrong


def fails(*arguments) -> str:
    """Return the message: one sentence on standard error, before any work; nothing else happens."""
    before = listing()
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert listing() == before
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
    return result.stderr.removeprefix("Error: ").rstrip("\n")


@pytest.fixture
def idle(monkeypatch):
    """No audit may begin."""

    def begun(*_, **__):
        raise AssertionError("too late")

    monkeypatch.setattr("caltest.auditing.audit", begun)
    monkeypatch.setattr("caltest.files.formats._lines", begun)


FOUND_EARLY = {
    "nothing": ([], "nothing to read: give a FILE"),
    "missing": (["missing.csv"], "missing.csv: there is no such file"),
    "file and example": (["wrong.csv", "--example", "digits:naive_bayes"], "both FILE"),
    "group of an example": (["--example", "digits:naive_bayes", "--group", "region"],
        "--group is for a file, and --example is given; leave it out."),
    "level": (["wrong.csv", "--alpha", "1.5"], "--alpha is 1.5; give a level between 0 and 1"),
    "resamples": (["wrong.csv", "--resamples", "0"], "--resamples is 0; give a positive whole"),
    "rows": (["wrong.csv", "--min-rows", "-3"], "--min-rows is -3; give a positive whole number."),
    "jobs": (["wrong.csv", "--jobs", "0"], "--jobs is 0; give how many workers"),
    "fail on": (["wrong.csv", "--fail-on", "always"],
        "there is no gate 'always'; choices: material, likely, undecided, found, never."),
    "no folder": (["wrong.csv", "--report", "no/report.html"],
        "--report is no/report.html, which cannot be written: No such file or directory"),
    "a folder": (["wrong.csv", "--report", "."], "--report is ., which cannot be written: it is no"),
    "suffix": (["wrong.csv", "--report", "report.pdf"],
        "--report is report.pdf; give a file name that ends in .html or .htm."),
    "suffixes mixed up": (["wrong.csv", "--junit", "a.json"], "--junit is a.json; give a file name"),
    "twice": (["wrong.csv", "--json", "-", "--markdown", "-"],
        "--markdown is -, and another option is too; give another file."),
    "link to itself": (["wrong.csv", "--report", "loop.html"],
        "--report is loop.html, which cannot be written: Too many levels of symbolic links; give"),
    "config": (["wrong.csv", "--config", "no.toml"], "no.toml: there is no such file"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "message"), FOUND_EARLY.values(), ids=FOUND_EARLY)
def test_what_is_wrong_is_found_before_any_work(here, idle, arguments, message):
    Path("loop.html").symlink_to("loop.html")
    assert fails(*arguments).startswith(message)


def test_the_input_is_not_overwritten(here, idle):
    Path("wrong.json").symlink_to("wrong.csv")
    assert fails("wrong.csv", "--json", "wrong.json") == (
        "--json is wrong.json, which is the file that is read (wrong.csv); give another file."
    )


FOUND_IN_THE_DATA = {
    "group": (["--group", "regoin"],
        r"^wrong.csv: there is no column 'regoin' .*did you mean 'region'.*'age'"),
    "label as group": (["--group", "label"], r"^wrong.csv: the column 'label' holds the labels"),
    "lens": (["--lens", "top_labl"], r"mean 'top_label'\? Choices: canonical, classwise, top_label"),
    "statistic": (["--statistic", "kss"], r"there is no statistic 'kss'; did you mean 'ks'"),
    "correction": (["--correction", "homl"], r"there is no correction 'homl'"),
    "tolerance": (["--tolerance", "2"], r"tolerance is 2.0"),
    "too few resamples": (["--resamples", "5"],
        r"^--resamples is 5, with which .* alpha = 0.05; give at least [0-9]+\.$"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), FOUND_IN_THE_DATA.values(), ids=FOUND_IN_THE_DATA)
def test_what_is_wrong_leaves_no_file(here, arguments, message):
    assert re.search(message, fails("wrong.csv", *GROUPS, *arguments, *EVERY_OUTPUT))


def test_a_column_that_is_no_probability_may_be_a_group(here):
    assert fails("wrong.csv", "--group", "age").endswith(
        "with --columns, or say what it is, with --group or --clusters."
    )


def test_groups_of_an_array(here):
    np.save("a.npy", np.column_stack([table(1)[CLASSES].to_numpy(), np.zeros(400)]))
    assert "an array has no names" in fails("a.npy", "--label=-1", "--group", "region")


@pytest.mark.parametrize(
    "arguments", [["--foo"], ["--alpha", "x"], ["--seed", "-1"], ["--resamples", "1.5"], ["a", "b"]]
)
def test_wrong_usage(here, arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_wrong_options_in_a_file(here, idle):
    Path("pyproject.toml").write_text("[tool.caltest]\nalhpa = 0.1\n")
    assert fails("wrong.csv").startswith(
        "pyproject.toml [tool.caltest]: there is no option 'alhpa'; did you mean 'alpha'? Choices: "
    )


# --- hostile files


EVIL = ['<script>alert("1")</script>', "a & b '\"", "🙂 été\u202e", "x" * 300, "]]>", "`|\n# head"]


def hostile(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.ones(len(EVIL)), rows)
    labels = (rng.random((rows, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    frame = pd.DataFrame(probs**3 / (probs**3).sum(axis=1, keepdims=True), columns=EVIL)
    frame["truth, or so"] = np.array(EVIL)[labels]
    frame['<b onclick="x">'] = rng.choice(EVIL, rows)
    frame["three hundred"] = [f"<i>{row % 300}</i>" for row in range(rows)]
    frame["alone"] = ["<u>one</u>", *["many"] * (rows - 1)]
    return frame


@pytest.mark.slow
def test_a_hostile_file(here):
    hostile().to_csv("a b';$(x).csv", index=False)
    names = ['<b onclick="x">', "three hundred", "alone"]
    groups = [word for name in names for word in ("--group", name)]
    arguments = ["a b';$(x).csv", "--label", "truth, or so", *groups, *QUICK]
    result = run(*arguments, *EVERY_OUTPUT)
    assert result.exit_code == 1, result.output
    page = Path("report.html").read_text(encoding="utf-8")
    for raw in ("<script>alert", "<b onclick", "<u>one", "<i>", "\u202e"):
        assert raw not in page
    ElementTree.parse("junit.xml")
    assert "<script>" in "".join(json.loads(Path("report.json").read_text())["classes"])
    (command,) = re.findall("<code>(caltest audit .*?)</code>", page, flags=re.DOTALL)
    assert shlex.split(html.unescape(command))[2:] == arguments


@pytest.mark.slow
def test_one_class_only(here):
    table(1).assign(label="ant").to_csv("one.csv", index=False)
    assert run("one.csv", *GROUPS, *QUICK, *EVERY_OUTPUT).exit_code == 1
    pd.DataFrame({"p": [1.0] * 100, "y": [1] * 100}).to_csv("sure.csv", index=False)
    result = run("sure.csv", *QUICK)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.stderr


# --- the program


def test_the_command_is_quoted_and_whole():
    asked = {
        "label": "-1",
        "columns": ("a", "b, c"),
        "group": ("my group",),
        "alpha": 0.1,
        "seed": 3,
        "report": Path("x.html"),
        "jobs": 2,
        "fail-on": "never",
    }
    assert command_line("audit", Path("-a.csv"), asked) == (
        "caltest audit ./-a.csv --label=-1 --columns 'a,\"b, c\"' --group 'my group' --alpha 0.1 "
        "--seed 3"
    )
    assert command_line("audit", None, {"example": "digits:x", "seed": 0}) == (
        "caltest audit --example digits:x --seed 0"
    )
    command_line("audit", Path("\udcff.csv"), {}).encode()


@pytest.mark.slow
def test_the_command_repeats_what_was_asked_whatever_a_configuration_says(here):
    run("plain.csv", *SMALL, "--alpha", "0.2", "--markdown", "report.md")
    (command,) = re.findall("(caltest audit .* --seed [0-9]+)", Path("report.md").read_text())
    Path("pyproject.toml").write_text(
        "[tool.caltest]\nalpha = 0.01\nstatistic = 'ecd'\nlens = 'classwise'\nresamples = 199\n"
    )
    run(*shlex.split(command)[2:], "--markdown", "again.md")
    assert Path("again.md").read_bytes() == Path("report.md").read_bytes()


def test_help_lists_what_there_is():
    words = " ".join(run("--help").stdout.split())
    assert "Exit status: 1 if what --fail-on names was found, 0 if not, 2 for wrong input." in words
    assert "[default: all but the label and the groups]" in words
    for option in OUTPUTS:
        about = words[words.index(f" {option} FILE ") :].removeprefix(f" {option} FILE ")
        assert "or -" in about[: about.index(" --")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_without_standard_error_the_output_is_the_same(here):
    command = shlex.join([sys.executable, "-m", "caltest", "audit", "plain.csv", *SMALL, "--json", "-"])
    done = subprocess.run(["sh", "-c", f"{command} 2>&-"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == run("plain.csv", *SMALL, "--json", "-").stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupted_is_130_and_leaves_no_file(here):
    script = (
        "import sys, time, caltest.auditing\n"
        "from caltest.cli import main\n"
        "def endless(*_, **__):\n"
        "    print('started', file=sys.stderr, flush=True)\n"
        "    time.sleep(60)\n"
        "caltest.auditing.audit = endless\n"
        "main()\n"
    )
    before = listing()
    with subprocess.Popen(
        [sys.executable, "-c", script, "audit", "right.csv", *EVERY_OUTPUT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr.readline() == b"started\n"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (130, b"", b"Interrupted.\n")
    assert listing() == before


@pytest.mark.slow
def test_with_a_limit_an_error_that_is_not_beyond_it_lets_pass():
    asked = ("--example", "digits:naive_bayes", "--lens", "top_label", "--resamples", 99, "--seed", 0)
    assert run(*asked).exit_code == 1
    assert run(*asked, "--materiality", 0.99).exit_code == 0
    assert run(*asked, "--materiality", 0.99, "--fail-on", "found").exit_code == 1
