"""What a study is, the files it leaves, and modules that are run by a command line of their own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from validation._cells import Options, Table
from validation._study import REFERENCE, ROOT


@dataclass(frozen=True)
class Command:
    """A part of a module with a command line of its own, and the files that it leaves.

    Attributes
    ----------
    module, part
        Its name in this package, and its first argument; "": it has no parts.
    leaves
        The files it writes, in either mode.
    quick, full
        More arguments of either mode.
    reference
        Whether it needs the reference data.
    alone
        In a process of its own, for it measures that of which it is the only one.
    """

    module: str
    part: str
    leaves: tuple[str, ...]
    quick: str
    full: str = ""
    reference: bool = False
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.module} {self.part}".strip()

    def words(self, options: Options) -> list[str]:
        """Return the arguments."""
        chosen = f"{self.part} {self.quick if options.quick else self.full}".split()
        return [*chosen, "--jobs", str(options.jobs), "--results", str(options.results)]

    def run(self, options: Options) -> None:
        """Run it, and see that it has left its files."""
        if self.alone:
            call = [sys.executable, "-m", f"validation.{self.module}", *self.words(options)]
            subprocess.run(call, cwd=ROOT, env=os.environ | {"MPLBACKEND": "Agg"}, check=True)
        else:
            importlib.import_module(f"validation.{self.module}").main(self.words(options))
        lost = missing(self.leaves, options)
        if lost:
            raise FileNotFoundError(f"{self} did not write {', '.join(lost)}")


@dataclass(frozen=True)
class Study:
    """A study: what it shows, what a full run takes, how it is run, and the files that it leaves.

    ``published`` are files that it leaves only where the reference data are; with ``reference`` it does
    nothing without these. ``elsewhere`` are those that it leaves only where other packages are there.
    """

    title: str
    full: str
    run: Callable[[Options], None]
    leaves: tuple[str, ...]
    reference: bool = False
    published: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All files that it leaves."""
        return self.leaves + self.published + self.elsewhere

    def lost(self, options: Options) -> list[str]:
        """Return the files that a run with these options should have left and did not."""
        if options.minutes is not None:
            return []
        named = self.leaves + self.published if REFERENCE.is_dir() else self.leaves
        lost = missing(named, options)
        part = options.only or not options.pictures
        left_nothing = len(lost) == len(named) and len(missing(self.elsewhere, options)) == len(
            self.elsewhere
        )
        return lost if not part or left_nothing else []


def missing(names: Sequence[str], options: Options) -> list[str]:
    """Return those of the files that are not there, or are empty."""
    paths = [(name, options.results / name) for name in names]
    return [name for name, path in paths if not path.is_file() or path.stat().st_size == 0]


def of_module(
    module: str,
    title: str,
    full: str,
    *leaves: str,
    reference: bool = False,
    published: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
) -> Study:
    """Return a study that is a function ``run`` of a module."""

    def run(options: Options) -> None:
        importlib.import_module(f"validation.{module}").run(options)

    return Study(title, full, run, leaves, reference, tuple(published), (), tuple(elsewhere))


def of_commands(title: str, full: str, *commands: Command) -> Study:
    """Return a study that runs modules by their own command lines."""
    always = tuple(name for each in commands if not each.reference for name in each.leaves)
    published = tuple(name for each in commands if each.reference for name in each.leaves)
    return Study(title, full, partial(_run, commands), always, not always, published, commands)


def _run(commands: Sequence[Command], options: Options) -> None:
    """Run modules one after another; a full one is not run again while its files are there."""
    done = Table(options.results / "commands.csv", ("command", "mode"))
    for command in commands:
        if not options.names(str(command)) or options.over:
            continue
        if command.reference and not REFERENCE.is_dir():
            print(f"{command} is left out: CALTEST_REFERENCE_DATA names no folder", flush=True)
            continue
        if not options.quick and not missing(command.leaves, options):
            print(f"{command}: its results are there; delete them to run it again", flush=True)
            continue
        started = options.seconds
        command.run(options)
        seconds = round(options.seconds - started, 1)
        mode = "quick" if options.quick else "full"
        done.put([{"command": str(command), "mode": mode, "seconds": seconds}])
        print(f"{command}: {seconds:.0f} s", flush=True)
