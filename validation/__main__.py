"""All studies: ``python -m validation STUDY`` or ``all``; ``--list`` says what there is.

``--quick`` runs a study at sizes that show only that it works, in a temporary folder unless
``--results`` names one; ``--full`` (the default) as it is meant to be read, for hours. A full run
can be stopped and goes on where it was; ``--minutes`` stops each study after so long. Results are
CSV files and pictures in validation/results; runs.csv there says what was run until when, for how
long and with which versions. A study that fails, or does not leave the files it names, makes the
command fail.

One number again: ``--only`` runs the parts of a study whose description holds all its texts, and
``--results`` a folder other than that of the record; ``--datasets`` is the number of data sets a
cell of widmann, validity and power_curves, as the row of the record says.

Studies that compare with published numbers need the reference data,
whose folder the environment variable CALTEST_REFERENCE_DATA names; without, they are left out, and
it is said.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import matplotlib as mpl

from validation._cells import Options, record
from validation._registry import STUDIES
from validation._study import REFERENCE, RESULTS


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        prog="python -m validation", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("study", nargs="*", help="names of studies, or all")
    parser.add_argument("--list", action="store_true", help="list the studies")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="only see that everything runs")
    size.add_argument("--full", action="store_true", help="hours; goes on where it was (default)")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1: all cores")
    parser.add_argument("--minutes", type=float, help="begin no cell of a study later than this")
    parser.add_argument(
        "--only", nargs="+", metavar="TEXT", default=[], help="cells with these texts (see progress)"
    )
    parser.add_argument("--datasets", type=int, help="data sets a cell, in place of all")
    parser.add_argument("--no-pictures", action="store_true", help="no pictures now")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results go")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.study if name not in (*STUDIES, "all")]
    if unknown:
        parser.error(f"no study is called {unknown[0]}; there are: {', '.join(STUDIES)}")
    if not options.study and not options.list:
        parser.error("name a study, or all; --list lists them")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies that are asked for; return how many failed."""
    given = parsed(arguments)
    if given.list:
        for name, study in STUDIES.items():
            needs = " (needs the reference data)" if study.reference else ""
            print(f"{name:18} {study.title}{needs}\n{'':18} full run: {study.full}")
        return 0
    mpl.use("Agg")
    results = given.results or (
        Path(tempfile.mkdtemp(prefix="validation-")) if given.quick else RESULTS
    )
    wanted = list(STUDIES) if "all" in given.study else given.study
    asked: list[str] = []
    failed, left_out = [], []
    for name in wanted:
        if STUDIES[name].reference and not REFERENCE.is_dir():
            left_out.append(name)
            print(f"== {name} is left out: CALTEST_REFERENCE_DATA names no folder", flush=True)
            continue
        options = Options(
            results.resolve(),
            given.quick,
            given.jobs,
            given.minutes,
            tuple(given.only),
            given.datasets,
            not given.no_pictures,
        )
        if not succeeded(name, options):
            failed.append(name)
        asked += options.asked
    if given.only and not asked:
        print(f"nothing is called {' and '.join(given.only)} in {', '.join(wanted)}")
        return len(wanted)
    done = len(wanted) - len(failed) - len(left_out)
    print(f"{done} of {len(wanted)} studies, {len(left_out)} left out; results in {results}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


def succeeded(name: str, options: Options) -> bool:
    """Run a study; return whether it ran through and left its files."""
    study, began = STUDIES[name], monotonic()
    print(f"== {name}: {study.title}", flush=True)
    try:
        study.run(options)
        if options.only and not options.asked:
            return True  # another study may have what is asked for
        lost = study.lost(options)
        if lost:
            raise FileNotFoundError(f"it did not write {', '.join(lost)}")
    except (Exception, SystemExit) as error:  # the others go on; the exit status tells
        print(f"== {name} FAILED: {type(error).__name__}: {error}", flush=True)
        return False
    record(name, options, monotonic() - began)
    print(f"== {name}: done in {monotonic() - began:.0f} s", flush=True)
    return True


def writes(command: str) -> tuple[str, ...]:
    """Return the files that a printed command writes; nothing is run.

    Parameters
    ----------
    command
        ``python -m validation STUDY…`` or ``python -m validation.MODULE…``.

    Raises
    ------
    ValueError
        If there is no such module, or it does not take these arguments.
    """
    _, _, module, *arguments = shlex.split(command)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            if module == __package__:
                return _of_studies(parsed(arguments))
            name = module.removeprefix(f"{__package__}.")
            given = importlib.import_module(module).parsed(arguments)
    except (SystemExit, ImportError, AttributeError) as error:
        raise ValueError(f"{command}: {complaint.getvalue().strip() or error}") from None
    commands = (each for study in STUDIES.values() for each in study.commands)
    part = getattr(given, "study", "")
    return tuple(n for c in commands if (c.module, c.part) == (name, part) for n in c.leaves)


def _of_studies(given: argparse.Namespace) -> tuple[str, ...]:
    names: list[str] = []
    for study in STUDIES.values() if "all" in given.study else map(STUDIES.__getitem__, given.study):
        options = Options(RESULTS, only=tuple(given.only))
        asked = [each for each in study.commands if options.names(str(each))]
        names += [name for each in asked for name in each.leaves] if study.commands else study.files
    return tuple(names)


if __name__ == "__main__":
    sys.exit(main())
