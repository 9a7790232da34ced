"""The rule that the fuzzing tests hold every case to, and the hunt for cases that break it.

The rule: whatever a public function or a command is given, there is a result, or one `InputError` (exit
status 2) of one visible line. No other exception, no warning, no word on standard output that nobody
asked for, no hang; what was given stays as it was, and no file is left behind or half-written.

A case is source code, so that a failure can be run as it is printed.
"""

import contextlib
import faulthandler
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
import unicodedata
import warnings
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

import hypothesis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

import caltest

PACKAGE = str(Path(caltest.__file__).parent)
LONGEST_MESSAGE = 500
CPU_SECONDS, WALL_SECONDS = 10, 40  # of one case: work, and waiting for what never comes
LAST_SECONDS = 150  # what hangs for so long in compiled code, ends the process
MEMORY = 3 * 2**30  # bytes that a case may take beyond what the process has
SHRINK_SECONDS = 4  # spent on making one reproduction small


class Broken(AssertionError):  # noqa: N818 -- it is read as "the case is"
    """A case broke the rule."""

    def __init__(self, what, place, detail=""):
        super().__init__(f"{what} at {place}\n{detail}")
        self.what, self.place, self.detail = what, place, detail

    @property
    def key(self):
        """What makes two failures the same one."""
        return f"{self.what} at {self.place}"


class Unusable(Exception):  # noqa: N818 -- likewise
    """The case cannot be made here; it says nothing of the package."""


class TookTooLong(BaseException):
    """Raised by a signal, and not caught by `except Exception`."""


class Case(Protocol):
    """What can be run, and printed."""

    def run(self):
        """Return whether there was a result; else it was refused. Raise `Broken` or `Unusable`."""


# --- limits


@contextlib.contextmanager
def limits():
    """Stop what takes too long or too much memory."""

    def stop(_, frame):
        if frame is None or "hypothesis" not in frame.f_code.co_filename:  # its hook of the collector
            raise TookTooLong

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(each, stop) for each in (signal.SIGPROF, signal.SIGALRM)]
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError):  # no /proc, or a limit that is lower
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    # No signal ends compiled code that waits for a pipe; somebody who opens its other end does.
    pipes = [path.absolute() for path in Path().iterdir() if path.is_fifo()]
    release = threading.Timer(WALL_SECONDS + 1, _open_for_a_moment, [pipes])
    if pipes:
        release.start()
    faulthandler.dump_traceback_later(LAST_SECONDS, exit=True, file=sys.__stderr__)
    # Again some seconds later, should somebody have swallowed the first.
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS, 5)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS, 5)
    try:
        yield
    finally:
        release.cancel()
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        for each, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(each, handler)


def _open_for_a_moment(pipes):
    for path in pipes:
        os.close(os.open(path, os.O_RDWR))


# --- where something happened, and what it says


def place_of(frames):
    """Return the innermost line of the package, or else of anything."""
    found = traceback.extract_tb(frames)
    ours = [each for each in found if each.filename.startswith(PACKAGE)]
    if not found:
        return "?"
    last = (ours or found)[-1]
    return f"{_short(last.filename)}:{last.lineno} ({last.name})"


def in_package(frames):
    return any(each.filename.startswith(PACKAGE) for each in traceback.extract_tb(frames))


def _short(file):
    for root, name in ((PACKAGE, "caltest"), (str(Path(__file__).parent), "tests")):
        if file.startswith(root):
            return name + file[len(root) :]
    return re.sub(r".*(site-packages|lib/python3\.\d+)/", "", file)


def invisible(text):
    """Return the characters that a terminal obeys or hides, rather than shows."""
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return sorted({each for each in text if each != "\n" and unicodedata.category(each) in hidden})


def check_words(text, what, place):
    if found := invisible(text):
        raise Broken(f"{what} has invisible characters", place, f"{found!r} in {text[:300]!r}")


def check_message(message, place, sentence=True):
    """One line for people."""
    if len(message) > LONGEST_MESSAGE:
        raise Broken(f"message of more than {LONGEST_MESSAGE} characters", place, message[:300])
    if not message.strip() or "\n" in message or "\r" in message:
        raise Broken("message is not one line", place, repr(message))
    check_words(message, "message", place)
    if sentence and not message.endswith((".", "?")):
        raise Broken("message is no sentence", place, message)


# --- that what was given is as it was


def _text(value):
    try:
        return repr(value)
    except ValueError:  # there are numbers of thousands of digits in it
        return type(value)


def fingerprint(value):
    """Return something that differs if the value was changed."""
    if isinstance(value, np.ndarray):
        mask = np.ma.getmaskarray(value).tobytes() if isinstance(value, np.ma.MaskedArray) else b""
        content = _text(value.tolist()) if value.dtype.hasobject else np.asarray(value).tobytes()
        flags = value.flags
        return str(value.dtype), value.shape, value.strides, flags.writeable, mask, content
    if isinstance(value, pd.DataFrame):
        columns = [fingerprint(value.iloc[:, i]) for i in range(value.shape[1])]
        return _text(value.columns), _text(list(value.columns)), _text(value.index), columns
    if isinstance(value, pd.Series | pd.Index):
        parts = (value.dtype, value.name, list(value), getattr(value, "index", 0))
        return tuple(map(_text, parts))
    if isinstance(value, pl.DataFrame):
        return _text(value.schema), _text(value.rows()) if value.width else ""
    if isinstance(value, pl.Series):
        return _text(value.dtype), value.name, _text(value.to_list())
    if isinstance(value, pa.Table | pa.RecordBatch):
        return _text(value.schema), [_text(column.to_pylist()) for column in value.columns]
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return _text(value.type), _text(value.to_pylist())
    if isinstance(value, dict):
        return [(fingerprint(key), fingerprint(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        if len(value) == 1 and isinstance(value[0], list):  # may be nested deeper than Python recurses
            return type(value), id(value[0])
        return type(value), [fingerprint(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, map(_text, value)))
    if isinstance(value, int | float | complex | str | bytes | type(None)):
        return type(value), value if value == value else "nan"
    return id(value)  # a generator is used up, and may be


def tree(folder):
    """Return all that is in a folder."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat().st_mode
        if path.is_symlink():
            content: object = str(path.readlink())
        else:
            content = path.read_bytes() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (state, content)
    return found


@contextlib.contextmanager
def new_folder():
    """Work in a folder that is new, with temporary files in it, so that whatever stays is seen."""
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        kept, tempfile.tempdir = tempfile.tempdir, str(place)
        stack.callback(setattr, tempfile, "tempdir", kept)
        stack.enter_context(contextlib.chdir(place))
        yield place


def write_files(folder, files):
    """Make files of expressions: bytes, or a function that makes something else of a path."""
    for name, source in files:
        content = evaluated(source)
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            content(path) if callable(content) else path.write_bytes(content)
        except (OSError, ValueError) as error:  # the file system has no such names
            raise Unusable from error


# --- results


def check_result(result, place):
    """Look at a result in every way in which it can be looked at."""
    repr(result)
    if isinstance(result, float) and np.isnan(result):
        raise Broken("a result that is no number", place, repr(result))
    if not type(result).__module__.startswith("caltest"):
        return
    for name in ("summary", "to_dict", "to_frame", "table", "pairs", "where"):
        method = getattr(result, name, None)
        if callable(method):
            shown = method()
            if name == "summary":
                check_words(shown, "summary()", place)
            if name == "to_dict":
                check_dict(shown, place)
    for name in ("probs", "truth"):
        numbers = getattr(result, name, None)
        if isinstance(numbers, np.ndarray) and np.isnan(numbers).any():
            raise Broken(f"NaN in {name}", place, repr(result)[:300])


def check_dict(shown, place):
    try:
        json.dumps(shown, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Broken("to_dict() is not strict JSON", place, str(error)) from error
    check_pvalues(shown, place)


def check_pvalues(node, place, inside=False):
    """Every p-value is above 0 and not above 1."""
    if isinstance(node, dict):
        for name, value in node.items():
            check_pvalues(value, place, "pvalue" in str(name) and "interval" not in str(name))
    elif isinstance(node, list | tuple):
        for value in node:
            check_pvalues(value, place, inside)
    elif inside and isinstance(node, int | float) and not 0 < node <= 1:
        raise Broken("a p-value outside (0, 1]", place, repr(node))


# --- cases in Python

_REFUSED = object()


@cache
def names():
    """Return what the source of a case may name."""
    import fuzz_files
    import fuzz_values

    return vars(fuzz_values) | vars(fuzz_files)


def evaluated(source):
    """Evaluate an expression of a case; what fails outside the package says nothing of it."""
    # What polars cannot raise it hands to a hook, and pytest's cannot write numbers of 5 000 digits.
    kept, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(source, names())
    except (Broken, caltest.InputError, KeyboardInterrupt, TookTooLong):
        raise
    except BaseException as error:  # what was a panic of polars is no Exception
        if in_package(error.__traceback__):
            raise
        raise Unusable(f"{source[:200]}: {error!r}") from error
    finally:
        sys.unraisablehook = kept


@dataclass(frozen=True)
class Call:
    """A call of a function.

    Attributes
    ----------
    function
        Expression.
    given
        Names ("" for one by position) and expressions of the arguments.
    files
        Names and expressions of what is in the folder.
    repeated
        Call it twice: the numbers are the same.
    """

    function: str
    given: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...] = ()
    repeated: bool = False

    def __repr__(self):
        arguments = ", ".join(f"{name}={value}" if name else value for name, value in self.given)
        return _with_files(self.files, f"{self.function}({arguments})")

    def run(self):
        """See `Case`."""
        with new_folder() as folder:
            write_files(folder, self.files)
            before = tree(folder)
            result = self._called()
            if tree(folder) != before:
                raise Broken("files changed", self.function, str(sorted(tree(folder))))
            if self.repeated and hasattr(result, "to_dict"):
                again = self._called()
                if again is _REFUSED or json.dumps(again.to_dict()) != json.dumps(result.to_dict()):
                    raise Broken("another result for the same seed", self.function)
            return result is not _REFUSED

    def _called(self):
        printed = io.StringIO()
        with (
            watched(self.function),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            function = evaluated(self.function)
            values = [(name, evaluated(source)) for name, source in self.given]
            before = fingerprint([value for _, value in values])
            try:
                with warned(self.function):
                    result = function(
                        *(value for name, value in values if not name),
                        **{name: value for name, value in values if name},
                    )
                    check_result(result, self.function)
            except AssertionError as error:
                if isinstance(error, Broken) or self.function != "caltest.assert_calibrated":
                    raise
                check_words(str(error), "assertion", self.function)
                result = None
            finally:
                close_figures()
                if fingerprint([value for _, value in values]) != before:
                    raise Broken("what was given is changed", self.function)
            if printed.getvalue():
                raise Broken("it prints", self.function, printed.getvalue()[:300])
            return result
        return _REFUSED


def close_figures():
    """Leave no figure behind; matplotlib is slow to import, and most cases do not."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@contextlib.contextmanager
def watched(what):
    """Turn whatever is no result and no good `InputError` into `Broken`; swallow good ones."""
    try:
        with limits():
            yield
    except caltest.InputError as error:
        check_message(str(error), place_of(error.__traceback__))
    except (Broken, Unusable, KeyboardInterrupt):
        raise
    except TookTooLong as error:
        raise Broken("it takes too long", place_of(error.__traceback__)) from None
    except TypeError as error:  # Python's own, of arguments that do not fit the signature
        if traceback.extract_tb(error.__traceback__)[-1].name not in ("checked", "_called", "<module>"):
            raise _broken_by(error) from error
    except BaseException as error:
        raise _broken_by(error) from error


def _broken_by(error):
    return Broken(type(error).__name__, place_of(error.__traceback__), str(error)[:300])


@contextlib.contextmanager
def warned(what):
    """No warning escapes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        place = f"{_short(each.filename)}:{each.lineno}"
        raise Broken(f"{each.category.__name__} ({str(each.message)[:60]})", place, what)


def _with_files(files, last):
    return "\n".join([f"write({name!r}, {source})" for name, source in files] + [last])


# --- the hunt


@dataclass
class Hunt:
    """What was run, and what broke.

    Attributes
    ----------
    found
        By what makes a failure distinct: the shortest case, and what happened.
    """

    found: dict[str, tuple[str, str]] = field(default_factory=dict)
    cases: int = 0
    unusable: int = 0
    results: int = 0
    seconds: float = 0.0

    def run(self, strategy, examples, seed):
        """Run so many cases; hypothesis stops soon after a failure, and is started again."""
        end, started = self.cases + examples, time.monotonic()
        while self.cases < end:
            known = len(self.found)
            self._round(strategy, end - self.cases, seed)
            seed += 1
            if len(self.found) == known:  # nothing new, so that it ran to its end
                break
        self.seconds += time.monotonic() - started

    def _round(self, strategy, examples, seed):
        known = frozenset(self.found)
        first: dict[str, float] = {}

        @hypothesis.seed(seed)
        @settings(settings.get_profile("fuzz"), max_examples=examples)
        @hypothesis.given(strategy)
        def hunt(case):
            broken = self._broken(case)
            if broken is None or broken.key in known:
                return
            shown = repr(case)
            if broken.key not in self.found or len(shown) < len(self.found[broken.key][0]):
                self.found[broken.key] = (shown, str(broken))
            if time.monotonic() - first.setdefault(broken.key, time.monotonic()) < SHRINK_SECONDS:
                raise _kind(broken.key)(broken.key)

        # All of it is in `found`; flaky is what we stopped to shrink.
        with contextlib.suppress(AssertionError, ExceptionGroup, hypothesis.errors.Flaky):
            hunt()

    def _broken(self, case):
        self.cases += 1
        try:
            self.results += case.run()
        except Broken as broken:
            return broken
        except Unusable:
            self.unusable += 1
        return None

    def report(self):
        """Return the counts, and every failure with its smallest case."""
        rate = self.cases / max(self.seconds, 1e-9)
        lines = [
            f"{self.cases} cases in {self.seconds:.0f} s, {rate:.0f} a second, {self.results} with a "
            f"result, {self.unusable} that could not be made: {len(self.found)} distinct failures"
        ]
        for key, (case, detail) in sorted(self.found.items()):
            said = detail.partition("\n")[2].strip()
            lines += ["", f"## {key}", *([f"   {said}"] if said else []), case]
        return "\n".join(lines)


@cache
def _kind(key):
    """One class a failure: hypothesis then minimises each by itself."""
    return type("Failure", (AssertionError,), {"__doc__": key})


# Hypothesis's own generator follows every case by up to five that repeat parts of it. Cases that are
# independent find three times as many failures in as many runs.
AVAILABLE_PROVIDERS["independent"] = HypothesisProvider

settings.register_profile(
    "fuzz",
    backend="independent",
    derandomize=False,  # every hunt has its seed
    database=None,
    deadline=None,  # `limits` stops a case, rather than complain when it is over
    report_multiple_bugs=True,
    phases=(Phase.generate, Phase.shrink),
    verbosity=Verbosity.quiet,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
