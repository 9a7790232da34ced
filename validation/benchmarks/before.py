"""The same cases with an older checkout of the package, in turn with this one.

What measures is what is here, with the same input files; only ``caltest`` is imported from there. So an
older checkout needs no benchmarks of its own, and a case that it cannot do is a row with its reason.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from validation.benchmarks.cases import Case
from validation.benchmarks.runner import ROOT, Runner, load
from validation.benchmarks.store import Store

PAIRS, ONE_ABOVE = 3, 12.0  # pairs of processes in turn; seconds of a run above which there is one


def commit_of(folder: Path) -> str:
    """Return the commit of a checkout, short; nothing where it is none."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def compare(runner: Runner, folder: Path, cases: Iterable[Case], store: Store) -> None:
    """Measure the cases that are ours, and write a row of each."""
    ours, commit = [case for case in cases if case.by == "caltest"], commit_of(folder)
    for number, case in enumerate(ours, 1):
        about = {"run": runner.run, "commit": commit, "group": case.group, "what": case.what}
        sizes = {"n": case.n, "m": case.m, "jobs": case.jobs}
        found = {"load": load(), **in_turn(runner, folder, case)}
        store.put(**about, **sizes, **found)
        runner.say(f"{number}/{len(ours)} {case}: {_short(found)}")


def in_turn(runner: Runner, folder: Path, case: Case) -> dict[str, Any]:
    """Measure one case: the order changes from pair to pair, the best of each side counts."""
    answers: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
    sides = [("before", folder), ("now", ROOT)]
    for pair in range(PAIRS):
        for side, root in sides if pair % 2 == 0 else reversed(sides):
            answers[side].append(runner.case(case, root))
            if "reason" in answers[side][-1]:
                return {"reason": f"{side}: {answers[side][-1]['reason']}"}
        if max(each[0]["best_s"] for each in answers.values()) > ONE_ABOVE:
            break
    best = {side: min(found["best_s"] for found in each) for side, each in answers.items()}
    row = {"pairs": len(answers["now"]), "ratio": best["now"] / best["before"]}
    for side, each in answers.items():
        row |= {f"{side}_s": best[side], f"{side}_mb": each[0]["memory_mb"]}
        row |= {f"{side}_{name}": each[0].get(name, "") for name in ("value", "pvalue")}
    return row


def _short(found: dict[str, Any]) -> str:
    if "reason" in found:
        return f"not measured, {found['reason']}"
    times = f"{found['before_s']:.4g} s before, {found['now_s']:.4g} s now"
    return f"{times}: {found['ratio']:.3g} (load {found['load']:.1f})"
