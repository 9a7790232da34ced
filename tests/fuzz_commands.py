"""Strategies of command lines: all commands, with options of which none, one or two are hostile."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import typer
from fuzz_files import files, toml
from fuzzing import (
    WALL_SECONDS,
    Broken,
    Unusable,
    check_message,
    check_pvalues,
    check_words,
    close_figures,
    new_folder,
    place_of,
    tree,
    warned,
    watched,
    write_files,
)
from hypothesis import strategies as st
from typer.testing import CliRunner

import caltest
from caltest.cli import app
from caltest.estimation import FUNCTIONS
from caltest.nulls import NULLS
from caltest.statistics import STATISTICS

NOT_REJECTED, REJECTED, WRONG = 0, 1, 2
#: Which commands test, and exit with 1 if they reject.
TESTING = {"test", "audit"}

#: Right values, by option; of the others any word is tried.
_RIGHT: Mapping[str, list[str]] = {
    "--label": ["label", "label", "label", "g"],
    "--columns": ["a,b", "a", '"a",b', "b,a", "a,b,c", "a,b,label"],
    "--group": ["g", "label", "a"],
    "--statistic": list(STATISTICS),
    "--null": list(NULLS),
    "--lens": [
        "top_label", "class:a", "class:1", "top:2", "sorted", "canonical", "classwise", "class:b",
    ],
    "--approximation": ["nystrom", "fourier", "auto"],
    "--alternative": ["greater", "less", "two-sided", "over", "under"],
    "--functions": [*FUNCTIONS, "all", "binning,temperature"],
    "--pvalue": ["held_out", "none"],
    "--correction": ["holm", "none", "fdr_bh", "westfall_young"],
    "--regularization-scaling": ["usual", "published"],
    "--fail-on": ["reject", "never"],
    "--target": ["a", "0", "1"],
    "--report": ["out.html", "out/x.html"],
    "--markdown": ["out.md"],
    "--junit": ["out.xml"],
    "--plot": ["out.png", "out.svg", "out.pdf"],
    "--config": ["pyproject.toml", "own.toml"],
    "--example": ["digits:naive_bayes", "digits"],
    "--seed": ["1", "0", str(2**70)],
    "--n": ["5", "9"],
    "--datasets": ["2"],
    "--min-n": ["2", "5"],
    "--max-n": ["8", "12"],
    "--folds": ["2", "3"],
    "--rank": ["1", "4"],
    "--size": ["3", "5"],
    "--classes": ["2", "3"],
    "--min-rows": ["1", "2", "5"],
}  # fmt: skip
_NUMBERS = ["0.05", "0.1", "0.5", "0.95", "1", "2", "0"]
#: What every draw has, so that it is quick.
_ALWAYS: Mapping[str, list[str]] = {
    "test": ["--resamples=19"], "audit": ["--resamples=99", "--min-rows=4"], "estimate": [],
    "estimate-error": ["--resamples=19", "--folds=2", "--functions=binning"], "compare": [],
    "bounds": ["--resamples=99"], "power": ["--resamples=19", "--datasets=2"],
}  # fmt: skip

HOSTILE = [
    "", " ", "-", "--", "-1", "0", "1.5", "nan", "inf", "-inf", "1e400", "9" * 30, "9" * 5000,
    "-" + "9" * 5000, "x", "bonferonni", "\x1b[31m", "\u202e", "a\nb", "a\r\nb", "\0", "\udcff",
    "x" * 100_000, "true", "None", ",", ",,", '"', '"a', "a,a", "a" * 300 + ".html", "/", ".",
    "..", "../up.json", "nothing/out.html", "nothing/out.png", "d.csv", "/dev/full", "/dev/null",
    "/proc/self/x.json", "out.JSON", "out.json", "\x1b.html", "a\nb.png", "link.png", "link.json",
    "folder.html", "0x10", "1_0", "1e3", "٣", "½", "class:", "class:²", "class:\x1b",
    "top:" + "9" * 5000, "top:0", "--help", "%s", "{0}", "$(ls)", "é", "e\u0301", "digits:",
    "digits:\x1b", "1e-320", "0.5000000000000001", "-0.0", "1", "2", "=1+1", "<b>", "NUL.html",
    ".html", ".png", "~", "out.html/", "label", "g", "ECE", " ece", "ece,ks", "2147483648",
    "9223372036854775808",
]  # fmt: skip


@cache
def _commands():
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def _options(command):
    """Return the options, and whether they take a value."""
    options = [each for each in _commands()[command].params if each.opts[0].startswith("-")]
    return {each.opts[0]: not each.is_flag for each in options if each.name != "help"}


@dataclass(frozen=True)
class Command:
    """A command line, in a folder with files.

    Attributes
    ----------
    words
        After "caltest".
    files
        Names and expressions of what is in the folder.
    elsewhere
        Run it in a process of its own.
    stopped
        By which signal, and after how many seconds, which may be while the program starts.
    """

    words: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    elsewhere: bool = False
    stopped: tuple[str, float] | None = None

    def __repr__(self):
        written = [f"write({name!r}, {source})" for name, source in self.files]
        signalled = "{} after {} s: ".format(*self.stopped) if self.stopped else ""
        return "\n".join([*written, f"{signalled}caltest {' '.join(map(_shown, self.words))}"])

    def run(self):
        """See `Case`."""
        with new_folder() as folder:
            write_files(folder, self.files)
            before = tree(folder)
            status, out, err, place = self._run_elsewhere() if self.elsewhere else self._run_here()
            after = tree(folder)
            self._check(status, out, err, place)
            self._check_files(status, before, after)
            return status != WRONG

    def _run_here(self):
        place = f"caltest {self._name}"
        result = None
        with watched(place), warned(place):
            try:
                result = CliRunner().invoke(app, list(self.words), prog_name="caltest")
            finally:
                close_figures()
        if result is None:
            raise Broken("InputError leaves the command", place)
        error = result.exception
        if error is not None and not isinstance(error, SystemExit):
            raise Broken(type(error).__name__, place_of(error.__traceback__), str(error)[:300])
        while error is not None:  # exit statuses are raised while the error is handled
            if isinstance(error, caltest.InputError):
                place = place_of(error.__traceback__)
            error = error.__context__
        return result.exit_code, result.stdout, result.stderr, place

    def _run_elsewhere(self):
        command = [sys.executable, "-m", "caltest", *self.words]
        # -m would look in the folder first
        environment = {
            **os.environ,
            "PYTHONSAFEPATH": "1",
            "PYTHONPATH": str(Path(caltest.__file__).parents[1]),
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        try:
            process = subprocess.Popen(command, env=environment, **pipes)  # type: ignore[call-overload]
        except (ValueError, OSError) as error:  # the system has no such words
            raise Unusable from error
        with process:
            try:
                if self.stopped is not None:
                    time.sleep(self.stopped[1])
                    process.send_signal(getattr(signal, self.stopped[0]))
                both = process.communicate(timeout=WALL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Broken("it takes too long", f"caltest {self._name}") from None
        out, err = (each.decode("utf-8", "surrogateescape") for each in both)
        return process.returncode, out, err, f"caltest {self._name} (process)"

    @property
    def _name(self):
        return self.words[0] if self.words and self.words[0] in _commands() else "…"

    def _check(self, status, out, err, place):
        ends = {NOT_REJECTED, REJECTED, WRONG}
        if self._ended_by_its_signal(status):  # at any time, so also with all of its work done
            if "Traceback (most recent call last)" in err:
                raise Broken(*_bug(err, status, place))
            return
        if "Traceback (most recent call last)" in err or status not in ends:
            raise Broken(*_bug(err, status, place))
        if status == REJECTED and self._name not in TESTING:
            raise Broken("exit status 1 of what does not test", place, out[:200])
        check_words(out, "standard output", place)
        if status != WRONG:
            check_words(err, "standard error", place)
            if "--json" in self.words and self._name != "audit" and "--help" not in self.words:
                _check_json(out, place)
            return
        lines = [line for line in err.splitlines() if line and not line.startswith("Options from ")]
        if len(lines) != 1 or not lines[0].startswith("Error: "):
            raise Broken("exit status 2 without its one line", place, err[-300:])
        check_message(lines[0].removeprefix("Error: "), place)

    def _ended_by_its_signal(self, status):
        if self.stopped is None:
            return False
        number = int(getattr(signal, self.stopped[0]))
        return status in (-number, 128 + number)

    def _check_files(self, status, before, after):
        place = f"caltest {self._name}"
        named = {
            os.path.normpath(word.partition("=")[2] if word.startswith("--") else word)
            for word in self.words
        }
        configured = "".join(source for name, source in self.files if name.endswith(".toml"))
        for name, content in after.items():
            if before.get(name) == content:
                continue
            if name in before:
                raise Broken("an input is changed", place, name)
            if name not in named and name not in configured:
                raise Broken("a file is left behind", place, name)
            if status not in (NOT_REJECTED, REJECTED) and not self._ended_by_its_signal(status):
                raise Broken("a file is written though something is wrong", place, name)
            _check_written(Path(name), place)
        if gone := before.keys() - after.keys():
            raise Broken("an input is gone", place, str(gone))


def _shown(word):
    return shlex.quote(word) if word.isprintable() else f"$'{ascii(word)[1:-1]}'"


def _bug(err, status, place):
    """Tell which exception a traceback is of, and where it was raised."""
    lines = re.findall(r'File ".*?/(caltest/[^"]+)", line (\d+), in (\w+)', err)
    kinds = re.findall(
        r"^(?:\w+\.)*(\w+(?:Error|Exception|Exit|Warning|Interrupt|Arrow\w+))\b", err, re.MULTILINE
    )
    where = "{}:{} ({})".format(*lines[-1]) if lines else place
    if not kinds:
        signalled = f" ({signal.Signals(-status).name})" if status < 0 else ""
        return f"exit status {status}{signalled}", where, err[-300:]
    return f"exit status {status}, {kinds[-1]}", where, err.strip()[-300:]


def _check_json(out, place):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    try:
        found = json.loads(out, parse_constant=refuse)
    except ValueError as error:
        raise Broken("--json does not write JSON", place, f"{error}: {out[:200]}") from error
    check_pvalues(found, place)


def _check_written(path, place):
    """See that a file is whole."""
    content = path.read_bytes()
    ends = {
        ".html": b"</html>", ".htm": b"</html>", ".png": b"IEND\xaeB`\x82", ".pdf": b"%%EOF",
        ".svg": b"</svg>",
    }  # fmt: skip
    kind = path.suffix.lower()
    try:
        if kind in ends and not content.rstrip().endswith(ends[kind]):
            raise ValueError("its end is missing")
        if kind == ".json":
            _check_json(content.decode(), place)
        if kind == ".xml":
            ElementTree.fromstring(content)
        if kind == ".md":
            check_words(content.decode(), "Markdown", place)
    except (ValueError, ElementTree.ParseError) as error:
        raise Broken(f"a {kind} file is not whole", place, str(error)) from error


# --- strategies

_ODD = {
    "link.png": "link('d.csv')", "link.json": "link('d.csv')", "folder.html": "folder",
    "up.json": "b'{}'",
}  # fmt: skip


@st.composite
def command_lines(draw, elsewhere=False):
    """Draw a command line with files."""
    command = draw(st.sampled_from([*_ALWAYS, "test", "audit", "audit"]))
    name, content = draw(files(right=draw(st.sampled_from([True, True, True, True, False]))))
    found = {name: content}
    words = [f"./{name}" if name.startswith("-") else name]
    if command == "compare":
        words = draw(
            st.sampled_from([["d2.csv", name], ["d2.csv", "d3.csv"], [name, f"./{name}"], [name], []])
        )
        found["d2.csv"], found["d3.csv"] = ("csv(table(24))", "csv(table(24, seed=1))")
    if draw(st.sampled_from([False] * 15 + [True])):
        words = [
            "--example",
            "digits" if command == "compare" else "digits:naive_bayes",
            "--statistic=ece",
        ]
    elif "groups" in content:
        words += {"audit": ["--group=g"]}.get(command, ["--columns=a,b"])
    if command == "audit" and draw(st.sampled_from([True, False, False])):
        found[draw(st.sampled_from(["pyproject.toml", "own.toml"]))] = draw(toml())
    if draw(st.booleans()):
        found = {**_ODD, **found}
    words += _ALWAYS[command]
    if draw(st.sampled_from([True, True, True, False])):
        words.append("--jobs=1")
    words += _drawn_options(draw, _options(command))
    odd = [[*words, *words], words[1:], [*words, "--nothing"], [*words, draw(st.sampled_from(HOSTILE))]]
    line = [command, *draw(st.sampled_from([words] * 60 + odd))]
    others = [[*words, command], [command[:-1], *words], words, [draw(st.sampled_from(HOSTILE))]]
    return Command(tuple(draw(st.sampled_from([line] * 60 + others))), tuple(found.items()), elsewhere)


def _drawn_options(draw, takes):
    """Draw options, of which none, one or two have a hostile value."""
    names = draw(st.lists(st.sampled_from(sorted(takes.keys() - {"--example"})), max_size=4))
    wrong = draw(st.sampled_from([0, 0, 1, 1, 2]))
    words = []
    for i, option in enumerate(names):
        if not takes[option]:
            words.append(option)
            continue
        right = _RIGHT.get(option, ["out.json"] if option == "--json" else _NUMBERS)
        value = draw(st.sampled_from(HOSTILE if i < wrong else right))
        words += (
            [f"{option}={value}"] if draw(st.booleans()) or value.startswith("-") else [option, value]
        )
    return words


@st.composite
def read_files(draw):
    """Draw a command that only reads a file, mostly a damaged one."""
    name, content = draw(files())
    command = draw(st.sampled_from(["test", "estimate", "audit", "bounds"]))
    others = ["--label=label", "--columns=a,b", "--statistic=ece", "--statistic=ks", "--label=1"]
    more = draw(st.sampled_from([[], [], *([each] for each in others)]))
    if "groups" in content:
        more = [*more, "--group=g" if command == "audit" else "--columns=a,b"]
    if command == "bounds":
        more = [each for each in more if "statistic" not in each]
    return Command((command, f"./{name}", *_ALWAYS[command], "--jobs=1", *more), ((name, content),))


def processes():
    """Draw command lines for processes of their own."""
    return command_lines(elsewhere=True)


def stopped():
    """Draw command lines that a signal ends, most of them while the program starts."""
    how = st.tuples(
        st.sampled_from(["SIGINT", "SIGINT", "SIGTERM", "SIGHUP"]),
        st.integers(0, 40).map(lambda n: n / 20),
    )
    return st.tuples(processes(), how).map(lambda drawn: replace(drawn[0], stopped=drawn[1]))
