"""The same cases with an older checkout of the package and with another one, in turn with this one.

What measures is what is here, with the same input files; only ``caltest`` is imported from there. So an
older checkout needs no benchmarks of its own, and a case that it cannot do has no time of before.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from validation.benchmarks.cases import Case
from validation.benchmarks.runner import ROOT, Runner, load
from validation.benchmarks.store import Store

ROUNDS, ONE_ABOVE = 2, 9.0  # processes of each side; seconds of a run above which there is one


def commit_of(folder: Path) -> str:
    """Return the commit of a checkout, short; nothing where it is none."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def compare(runner: Runner, folder: Path, cases: Iterable[Case], store: Store) -> None:
    """Measure the cases that are ours, each beside another package's where there is one; write rows."""
    every, commit = list(cases), commit_of(folder)
    ours = [case for case in every if case.by == "caltest"]
    for number, case in enumerate(ours, 1):
        same = (
            x for x in every if (x.group, x.what, x.n, x.m) == (case.group, case.what, case.n, case.m)
        )
        peer = next((x for x in same if x.by in runner.peers and case.jobs == 1), None)
        about = {"run": runner.run, "commit": commit, "group": case.group, "what": case.what}
        sizes = {"n": case.n, "m": case.m, "jobs": case.jobs}
        found = {"load": load(), **in_turn(runner, folder, case, peer)}
        store.put(**about, **sizes, **found)
        runner.say(f"{number}/{len(ours)} {case}: {_short(found)}")


def in_turn(runner: Runner, folder: Path, case: Case, peer: Case | None = None) -> dict[str, Any]:
    """Measure one case: the order changes from round to round, the best of each side counts."""
    sides = {"before": (case, folder), "now": (case, ROOT)} | ({"peer": (peer, ROOT)} if peer else {})
    answers: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for turn in range(ROUNDS):
        for side in sides if turn % 2 == 0 else reversed(sides):
            if not any("reason" in each for each in answers[side]):
                answers[side].append(runner.case(*sides[side]))
        if "reason" in answers["now"][0]:
            return {"reason": f"now: {answers['now'][0]['reason']}"}
        if max(each[0].get("best_s", 0.0) for each in answers.values()) > ONE_ABOVE:
            break
    row: dict[str, Any] = {"pairs": len(answers["now"])}
    for side, each in answers.items():
        if "reason" in each[0]:
            row["reason"] = f"{side}: {each[0]['reason']}"
            continue
        row |= {f"{side}_s": min(found["best_s"] for found in each), f"{side}_mb": each[0]["memory_mb"]}
        row |= {f"{side}_{name}": each[0].get(name, "") for name in ("value", "pvalue")}
    if peer is not None:
        row |= {"by": peer.by, "version": answers["peer"][0].get("version", "")}
    return row | ({"ratio": row["now_s"] / row["before_s"]} if "before_s" in row else {})


def _short(found: dict[str, Any]) -> str:
    said = [
        f"{found[f'{side}_s']:.4g} s {side}"
        for side in ("before", "now", "peer")
        if f"{side}_s" in found
    ]
    said += [f"not measured, {found['reason']}"] if found.get("reason") else []
    return f"{', '.join(said)} (load {found['load']:.1f})"
