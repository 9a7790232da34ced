import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import command as run
from support import strict_json

import caltest
from caltest import cli
from caltest.datasets import digits_models, load_digits_predictions
from caltest.estimation import FUNCTIONS
from caltest.exceptions import InputError
from caltest.lenses import LENSES
from caltest.nulls import NULLS
from caltest.options import COMMANDS
from caltest.pvalues import CORRECTIONS
from caltest.statistics.table import TABLE

CALTEST = [sys.executable, "-m", "caltest"]
CLASSES = ["ant", "bee", "cat"]
QUICK = ["--resamples", "99", "--seed", "1"]


def write(path: Path, probs: np.ndarray, labels: np.ndarray, name: str = "label") -> Path:
    table = pd.DataFrame(probs, columns=CLASSES)
    table[name] = np.array(CLASSES)[labels]
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Predictions of 200 rows and 3 classes: labels drawn from them, and the same sharpened."""
    folder = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), size=200)
    labels = (rng.random((200, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    sharp = probs**4 / (probs**4).sum(axis=1, keepdims=True)
    write(folder / "calibrated.csv", probs, labels)
    write(folder / "sharp.csv", sharp, labels)
    write(folder / "verdict.csv", probs, labels, name="verdict")
    write(folder / "short.csv", 0.9 * probs, labels)
    return folder


# --- what is right


def test_not_rejected_is_0(folder):
    result = run("test", folder / "calibrated.csv", *QUICK)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith("\nNo miscalibration found at alpha = 0.05 (exit status 0).\n")


def test_rejected_is_1(folder):
    result = run("test", folder / "sharp.csv", *QUICK)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.endswith("\nMiscalibration found at alpha = 0.05 (exit status 1).\n")


def test_the_output_is_the_summary_and_the_decision(folder):
    table = pd.read_csv(folder / "sharp.csv")
    result = caltest.test(table[CLASSES], table["label"], n_resamples=99, rng=1)
    text, _, decision = run("test", folder / "sharp.csv", *QUICK).stdout.rpartition("\n\n")
    assert text == result.summary().replace("caltest.audit", "caltest audit")
    assert len(decision.splitlines()) == 1


def test_json_is_the_result_the_level_and_the_source(folder):
    file = folder / "sharp.csv"
    table = pd.read_csv(file)
    expected = caltest.test(table[CLASSES], table["label"], n_resamples=99, rng=1)
    printed = strict_json(run("test", file, *QUICK, "--alpha", "0.1", "--json").stdout)
    assert printed["file"] == str(file)
    assert printed["example"] is None
    assert printed["alpha"] == 0.1
    assert printed["rejected"] is True
    assert printed["statistic"] == pytest.approx(expected.statistic, rel=1e-12)  # last digits of pandas
    assert printed["pvalue"] == expected.pvalue
    assert set(expected.to_dict()) < set(printed)


def test_the_default_statistic_goes_with_the_null(folder):
    file = folder / "sharp.csv"
    printed = strict_json(run("test", file, *QUICK, "--json").stdout)
    assert printed["name"] == "omnibus"
    assert [part["name"] for part in printed["parts"]][1:3] == ["skce_uq", "ecd"]
    assert strict_json(run("test", file, "--null", "moments", "--json").stdout)["name"] == "skce_uq"
    assert (
        strict_json(run("test", file, *QUICK, "--tolerance", "0.1", "--json").stdout)["name"] == "scan"
    )


def test_the_options_reach_the_test(folder):
    printed = strict_json(
        run(
            *("test", folder / "verdict.csv", "--label", "verdict", "--statistic", "skce_ul"),
            *("--null", "normal", "--lens", "top_label", "--alternative", "greater", "--json"),
            *("--jobs", "1"),
        ).stdout
    )
    assert (printed["name"], printed["null"]) == ("skce_ul", "normal")
    assert printed["alternative"] == "greater"
    assert "top" in str(printed["lens"]).lower()


def test_the_seed_repeats_the_numbers(folder):
    first, second = (run("test", folder / "calibrated.csv", *QUICK, "--json") for _ in range(2))
    assert first.stdout == second.stdout


def test_jobs_do_not_change_the_numbers(folder):
    one, two = (
        run("test", folder / "calibrated.csv", *QUICK, "--json", "--jobs", n) for n in ("1", "2")
    )
    assert one.stdout == two.stdout


def test_example():
    result = run("test", "--example", "digits:naive_bayes", "--null", "moments", "--json")
    printed = strict_json(result.stdout)
    digits = load_digits_predictions("naive_bayes")
    assert result.exit_code == 1
    assert (printed["file"], printed["example"]) == (None, "digits:naive_bayes")
    assert printed["n_samples"] == 1797
    expected = caltest.estimate(digits.probs, digits.labels)
    assert printed["statistic"] == pytest.approx(expected, rel=1e-12)


def test_estimate_prints_the_number(folder):
    table = pd.read_csv(folder / "sharp.csv")
    result = run("estimate", folder / "sharp.csv", "--statistic", "skce_b")
    assert (result.exit_code, result.stderr) == (0, "")
    expected = caltest.estimate(table[CLASSES], table["label"], "skce_b")
    of = "; a calibrated model with these predictions: about"
    assert result.stdout.startswith(f"Squared kernel calibration error: {expected:.4g}{of}")
    binned = run("estimate", folder / "sharp.csv", "--statistic", "ece", "--lens", "top_label").stdout
    assert binned.startswith("ECE (15 bins, lens top_label) 0.2")


@pytest.mark.slow
def test_estimate_json(folder):
    file = folder / "sharp.csv"
    result = run("estimate", file, "--lens", "top_label", "--statistic", "skce_uq", "--json")
    found = strict_json(result.stdout)
    value = caltest.test(
        *(pd.read_csv(file)[each] for each in (CLASSES, "label")),
        statistic="skce_uq",
        lens="top_label",
        rng=0,
        n_resamples=99,
    )
    assert found.pop("calibrated") == pytest.approx(value.null_distribution.mean(), rel=1e-12)
    assert found.pop("parameters") == value.to_dict()["parameters"]
    assert found == {
        "file": str(file),
        "example": None,
        "name": "skce_uq",
        "lens": "top_label",
        "statistic": pytest.approx(value.statistic, rel=1e-12),
        "warnings": [],
        "premises": [],
    }


def test_json_writes_infinity_as_a_string(monkeypatch):
    monkeypatch.setattr("caltest.testing.estimate", lambda *_, **__: -math.inf)
    result = run("estimate", "--example", "digits:naive_bayes", "--json")
    assert strict_json(result.stdout)["statistic"] == "-inf"


# --- what is wrong


def fails(*arguments: str | Path) -> str:
    """Return the message: one sentence on standard error, nothing on standard output."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
    return result.stderr.removeprefix("Error: ").rstrip("\n")


@pytest.mark.parametrize("command", ["test", "estimate"])
def test_wrong_file(folder, command):
    for file, clue in {
        "missing.csv": "missing.csv",
        "verdict.csv": "label",
        "short.csv": "0.9",
    }.items():
        assert clue in fails(command, folder / file)


NOTED = {
    "a column that is not read": ({"age": 7}, "--columns p", "Columns not read: 'age'."),
    "weights of 0": ({"w": [0.0] + [1.0] * 59}, "--weights w",
        "Left out: 1 of 60 rows, whose weight is 0."),
    "logits": ({"p": 0.7}, "--logits",
        "One column of logits, made P(class 1) by the logistic function."),
    "no chance": ({"p": [0.0] + [0.5] * 59, "y": 1}, "",
        "had probability 0: that alone proves the model"),
    "rates": ({}, "--sampling-rate 1=0.5", "kept"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTED)
def test_an_estimate_notes_what_a_test_notes(case, tmp_path):
    columns, options, said = NOTED[case]
    rng, path = np.random.default_rng(0), tmp_path / "rows.csv"
    p = rng.random(60)
    pd.DataFrame({"p": p, "y": (rng.random(60) < p) * 1, **columns}).to_csv(path, index=False)
    asked = [path, "--statistic", "brier", *options.split()]
    found, of_test = (
        json.loads(run(*each, *asked, "--json").stdout)
        for each in (["estimate"], ["test", "--seed", 1])
    )
    notes = [each["seen"] for each in found["premises"]] + found["warnings"]
    assert {*of_test["warnings"], *(each["seen"] for each in of_test["premises"])} <= {*notes}
    assert said in " ".join(notes)
    shown = run("estimate", *asked).stderr.splitlines()
    assert [each for each in shown if not each.startswith("Note: ")] == []
    assert len(shown) == len(notes)
    assert said in " ".join(shown)


def test_unknown_names(folder):
    assert "skce_uq" in fails("test", folder / "sharp.csv", "--statistic", "skce_uk")
    assert "monte_carlo" in fails("test", folder / "sharp.csv", "--null", "monte_karlo")
    assert "top_label" in fails("test", folder / "sharp.csv", "--lens", "top_lable")
    assert "greater" in fails("test", folder / "sharp.csv", "--alternative", "graeter")
    assert "label" in fails("test", folder / "sharp.csv", "--label", "lable")


def test_impossible_pair_lists_the_possible(folder):
    assert "monte_carlo" in fails("test", folder / "sharp.csv", "--null", "normal")


@pytest.mark.parametrize("alpha", ["0", "1", "-0.1", "nan", "5"])
def test_alpha_must_be_a_level(folder, alpha):
    message = fails("test", folder / "sharp.csv", f"--alpha={alpha}")
    assert message == f"--alpha is {float(alpha)}; give a level between 0 and 1, such as 0.05."


def test_too_few_resamples(folder):
    assert fails("test", folder / "sharp.csv", "--resamples", "18") == (
        "--resamples is 18, with which no p-value is below 0.0526, so that nothing is ever rejected "
        "at level 0.05; give --resamples 19 or more."
    )
    assert run("test", folder / "sharp.csv", "--resamples", "19").exit_code in (0, 1)


def test_resamples_of_a_null_that_draws_nothing_do_not_matter(folder):
    few = ["--resamples", "1", "--null", "moments"]
    assert run("test", folder / "sharp.csv", *few).exit_code == 1


def test_no_jobs(folder):
    assert fails("test", folder / "sharp.csv", "--jobs", "0") == (
        "--jobs is 0; give how many workers, or -1 for all cores."
    )


@pytest.mark.parametrize("command", ["test", "estimate", "bounds", "estimate-error", "audit"])
def test_too_many_jobs(folder, command):
    asked = fails(command, folder / "sharp.csv", "--jobs", "99999999999999")
    assert asked.startswith("--jobs is 99999999999999; give how many workers (at most 1,024)")


def test_file_or_example():
    assert fails("test") == "nothing to read: give a FILE, or --example digits:naive_bayes."
    assert fails("test", "a.csv", "--example", "digits:naive_bayes") == (
        "both FILE (a.csv) and --example (digits:naive_bayes) are given; give one."
    )
    assert fails("test", "--label", "y", "--example", "digits:naive_bayes") == (
        "--label is for a file, and --example is given; leave it out."
    )


def test_unknown_example():
    everything = ", ".join(f"digits:{model}" for model in digits_models())
    assert fails("test", "--example", "digits:naive_bays") == (
        "there is no example 'digits:naive_bays'; did you mean 'digits:naive_bayes'? "
        f"Choices: {everything}."
    )


@pytest.mark.parametrize(
    "arguments", [["--foo"], ["--resamples", "0"], ["--seed", "-1"], ["--seed", "x"], ["a", "b"]]
)
def test_wrong_usage(arguments):
    result = run("test", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_a_bug_is_not_a_rejection(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("caltest.testing.test", broken)
    result = run("test", "--example", "digits:naive_bayes")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "ZeroDivisionError: oops" in result.stderr
    assert result.stderr.endswith("please report it with the lines above.\n")


def test_an_input_error_is_a_sentence(monkeypatch):
    def refuse(*_, **__):
        raise InputError("The moon is not full.")

    monkeypatch.setattr("caltest.testing.estimate", refuse)
    assert fails("estimate", "--example", "digits:naive_bayes") == "The moon is not full."


# --- the program


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal_and_has_every_option(name):
    lines = run(name, "--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 160
    named = {line.split()[0].removeprefix("--") for line in lines if re.match("  (--)?[A-Za-z]", line)}
    assert named >= {*COMMANDS[name], "help"}
    assert not re.search(r"\.\.\.|<", run("--help").stdout.partition("Commands:")[2])


LISTED = {
    "statistics": TABLE,
    "lenses": ["canonical", "classwise", *LENSES],
    "nulls": NULLS,
    "corrections": ["westfall_young", *CORRECTIONS],
    "functions": FUNCTIONS,
}


@pytest.mark.parametrize("what", LISTED)
def test_what_there_is_can_be_listed(what):
    shown = run("list", what).stdout
    assert {*re.findall(r"^  ([a-z]\S*) +\S", shown, re.MULTILINE)} == {*LISTED[what]}


def test_an_unknown_list_is_answered_with_the_closest():
    assert "there is no list 'lense'; did you mean 'lenses'?" in fails("list", "lense")


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal")
@pytest.mark.parametrize(("variable", "mark"), [("CI", "\x1b[1;31m"), ("NO_COLOR", "")])
def test_on_a_terminal_lines_fit_and_the_verdict_stands_out(folder, monkeypatch, variable, mark):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"COLUMNS": "60", "TERM": "xterm", variable: "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["caltest", "test", str(folder / "sharp.csv"), *QUICK])
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as terminal, monkeypatch.context() as here:
        here.setattr(sys, "stdout", terminal)
        with pytest.raises(SystemExit):
            cli.main()
        shown = os.read(leader, 100_000).decode().splitlines()
    os.close(leader)
    assert shown[-1].startswith(f"{mark}Miscalibration found")
    assert max(len(re.sub(r"\x1b\S*?m", "", line)) for line in shown) <= 60


def test_version():
    assert run("--version").stdout == f"caltest {caltest.__version__}\n"


@pytest.mark.slow
def test_plots_are_not_loaded_for_a_test(folder):
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from caltest.cli import app\n"
        f"arguments = ['test', {str(folder / 'sharp.csv')!r}, '--resamples', '19']\n"
        "print(CliRunner().invoke(app, arguments).exit_code)\n"
        "print(*{'matplotlib', 'statsmodels'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n\n"


@pytest.mark.slow
def test_a_reader_that_leaves_is_not_a_rejection(folder):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*CALTEST, "estimate", folder / "sharp.csv"], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_said(folder):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*CALTEST, "estimate", folder / "sharp.csv"], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert done.stderr == b"Error: the output cannot be written: No space left on device.\n"


def working(*lines):
    """The arguments of a process that runs the command `test`, whose work is these lines."""
    body = "".join(f"    {line}\n" for line in lines)
    script = (
        "import ctypes, signal, sys, time, caltest.testing\n"
        "from caltest.cli import main\n"
        f"def work(*_, **__):\n{body}"
        "caltest.testing.test = work\n"
        "main()\n"
    )
    return [sys.executable, "-c", script, "test", "--example", "digits:naive_bayes"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupted_is_130():
    endless = working("print('started', file=sys.stderr, flush=True)", "time.sleep(60)")
    with subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"started\n"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (130, b"", b"Interrupted.\n")


@pytest.mark.slow
def test_plain_ascii_output_is_possible(folder):
    done = subprocess.run(
        [*CALTEST, "test", folder / "calibrated.csv", *QUICK],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_a_tolerance(folder):
    small, large = (
        run("test", folder / "sharp.csv", "--tolerance", error, *QUICK, "--json")
        for error in ("0.01", "0.9")
    )
    assert (small.exit_code, large.exit_code) == (1, 0)
    assert json.loads(small.stdout)["name"] == "scan"
    refused = run("test", folder / "sharp.csv", "--tolerance", "0.01", "--statistic", "skce_uq")
    assert refused.exit_code == 2
    assert "scan" in refused.stderr


def test_a_column_whose_name_has_a_line_break(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"a\nb",c,label\n' + "0.25,0.75,c\n" * 9 + '0.5,0.5,"a\nb"\n')
    wrong = run("test", path, "--columns", "a\nb,c")
    assert wrong.exit_code == 2
    assert "; put one with a line break in double quotes." in wrong.stderr
    assert run("test", path, "--columns", '"a\nb",c', "--resamples", "19").exit_code in (0, 1)
