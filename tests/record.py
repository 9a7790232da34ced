# ruff: noqa: T201
"""The record of numbers: what some hundreds of calls of the public functions return, for given seeds.

It holds nothing that is read off the inside of the package, so that the inside may be rebuilt:
`test_record.py` makes every call and compares it with its line of `record.json`.

    python tests/record.py --compare [NAME ...]    what differs from the record, and by how much
    python tests/record.py --write [NAME ...]      write these lines anew, and say what changed

A NAME is the beginning of a call's name, such as `test/skce_uq/moments`, and may hold `*`; none means
all. `--n-jobs 2` makes the calls with two workers, which must change nothing. The calls themselves are
in `record_of_test.py`, `record_of_results.py` and `record_of_data.py`.
"""

import argparse
import json
import math
import sys
import warnings
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import record_of_data  # noqa: F401  # adds its calls
import record_of_results  # noqa: F401
import record_of_test  # noqa: F401
from record_base import CALLS, WORKERS

import caltest

RECORD = Path(__file__).with_name("record.json")

#: Relative to a number, or to the largest of the list that it is in.
TOLERANCE = 1e-12
#: Beginnings of names whose numbers depend on how BLAS or libm round: tolerance and reason.
LOOSER: dict[str, tuple[float, str]] = {
    "test/citl/moments": (1e-10, "its skewness is nearly 0, and something is divided by it"),
    "recalibration": (
        1e-10,
        "ratios near 0 are differences of sums of exponentials, which processors round differently",
    ),
    "audit/views/binary": (1e-10, "it has such a recalibration"),
}


def made(name):
    """Make a call, and return its numbers as they stand in the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return plain(CALLS[name]())
        except caltest.InputError:
            return {"error": "InputError"}


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} is no plain number, name, list or dict")


def recorded():
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def tolerance(name):
    return next((at for start, (at, _) in LOOSER.items() if asked_for(name, start)), TOLERANCE)


def differences(old, new, within, path="", scale=0.0):
    """Say where two records differ. The numbers of a list have one scale, the largest of them."""
    if isinstance(old, float) and isinstance(new, float):
        size = max(abs(old), abs(new), scale)
        if abs(old - new) > within * size:
            yield f"{path}: {old!r} -> {new!r}, by {abs(old - new) / size:.1e}"
        return
    if isinstance(old, dict | list) and type(old) is type(new):
        before, after = (_items(each) for each in (old, new))
        for key in [key for key in before if key not in after]:
            yield f"{path}/{key}: gone"
        for key in [key for key in after if key not in before]:
            yield f"{path}/{key}: new"
        scale = 0.0
        if isinstance(old, list):
            scale = max((abs(each) for each in old if isinstance(each, float)), default=0.0)
        for key in before.keys() & after.keys():
            yield from differences(before[key], after[key], within, f"{path}/{key}", scale)
    elif old != new or type(old) is not type(new):
        yield f"{path}: {old!r} -> {new!r}"


def _items(value):
    return value if isinstance(value, dict) else dict(enumerate(value))


def asked_for(name, pattern):
    return name.startswith(pattern) or fnmatchcase(name, f"{pattern}*")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--compare", action="store_true")
    what.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--n-jobs", type=int)
    asked = parser.parse_args()
    WORKERS["n_jobs"] = asked.n_jobs
    old = recorded()

    def wanted(name):
        return not asked.names or any(asked_for(name, each) for each in asked.names)

    new = {name: made(name) for name in CALLS if wanted(name)}
    changed = 0
    for name in sorted({*new, *filter(wanted, old)}):
        if name not in old or name not in new:
            found = ["new" if name in new else "gone"]
        else:  # what is written is written to the last digit; what is compared, within the tolerance
            found = sorted(differences(old[name], new[name], 0.0 if asked.write else tolerance(name)))
        if found:
            changed += 1
            print(name, *found, sep="\n    ")
    if asked.write:
        kept = {name: line for name, line in old.items() if name in CALLS} | new
        ordered = [name for name in CALLS if name in kept]
        lines = [f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in ordered]
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(new)} calls, {changed} {'written anew' if asked.write else 'different'}")
    return int(changed > 0 and asked.compare)


if __name__ == "__main__":
    sys.exit(main())
