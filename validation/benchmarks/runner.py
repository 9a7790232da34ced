"""Run the cases, each in a process of its own, and write what they find as it comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from validation.benchmarks.cases import Case
from validation.benchmarks.child import MARK, NotMeasured
from validation.benchmarks.findings import FINDINGS
from validation.benchmarks.limits import Rates, least_seconds
from validation.benchmarks.store import Store

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 1.0  # of runs of a case, at least
FEW = 200  # rows of a file to warm up with

_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM", "BLIS")


@dataclass
class Runner:
    """Who measures: two Pythons, a folder for inputs, and how long a case may take.

    Attributes
    ----------
    python
        With caltest.
    peers
        With other packages, by package; where there is none, the reason is `no_peers`.
    folder
        For the inputs, which are files.
    timeout
        Seconds a case may take.
    seconds
        Seconds of runs of a case, at least.
    """

    folder: Path
    run: str
    peers: Mapping[str, Path] = field(default_factory=dict)
    no_peers: str = "no environment of the peers: --peers or --peers-python"
    failed: dict[str, str] = field(default_factory=dict)
    python: Path = Path(sys.executable)
    timeout: float = 600.0
    seconds: float = SECONDS
    say: Callable[[str], None] = print

    # -------------------------------------------------------------- one child

    def child(
        self, task: dict[str, Any], *, jobs: int = 1, by: str = "caltest", root: Path = ROOT
    ) -> dict[str, Any]:
        """Carry out a task in a new process; return its answer, or the reason that there is none.

        ``root`` is the checkout whose caltest is measured; what measures it is always what is here.
        """
        python = self.python if by == "caltest" else self.peers.get(by)
        if python is None:
            return {"reason": self.no_peers}
        threads = {f"{name}_NUM_THREADS": str(jobs) for name in _THREADS}
        command = [str(python), "-m", "validation.benchmarks.child"]
        found_in = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, **threads, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join(found_in)}
        try:
            done = subprocess.run(
                command, input=json.dumps(task), capture_output=True, text=True, check=False,
                timeout=self.timeout, cwd=ROOT, env=env,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"reason": f"took longer than {self.timeout:g} s"}
        answers = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
        if answers:
            found: dict[str, Any] = json.loads(answers[-1].removeprefix(MARK))
            return found
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"reason": f"ended with status {done.returncode}: {last}"[:200]}

    # -------------------------------------------------------------- limits

    def limits(self, store: Store) -> Rates:
        """Measure the machine."""
        self.say("limits of the machine")
        options = {"seconds": 0.3 * min(self.seconds, 1.0)}
        task = {"module": "validation.benchmarks.limits", "work": "rates", "options": options}
        found = self.child(task)
        if "reason" in found:
            raise RuntimeError(f"the limits of the machine were not measured: {found['reason']}")
        rates: Rates = found["rates"]
        for what, rate in rates.items():
            store.put(run=self.run, what=what, per_second=rate)
        return rates

    # -------------------------------------------------------------- loops

    def loops(self, store: Store) -> None:
        """Measure the compiled loops."""
        task = {"module": "validation.benchmarks.loops", "work": "measured", "root": str(ROOT)}
        busy, found = load(), self.child({**task, "options": {"seconds": 0.3 * min(self.seconds, 1.0)}})
        if "reason" in found:
            raise RuntimeError(f"the loops were not measured: {found['reason']}")
        for row in found["loops"]:
            store.put(run=self.run, load=busy, **row)
        self.say(f"{len(found['loops'])} loops")

    # -------------------------------------------------------------- cases

    def cases(self, chosen: Iterable[Case], store: Store, rates: Rates) -> None:
        """Measure all cases."""
        all_of_them = list(chosen)
        for number, case in enumerate(all_of_them, 1):
            busy, found = load(), self.case(case)
            least = {
                name: least_seconds(
                    case.limit, case.n, case.m, rates,
                    draws=case.options.get("draws", 0), jobs=case.jobs, dtype=dtype,
                )
                for name, dtype in (("limit_s", "float64"), ("limit32_s", "float32"))
            }  # fmt: skip
            about = {"run": self.run, "group": case.group, "what": case.what, "by": case.by}
            sizes = {"n": case.n, "m": case.m, "jobs": case.jobs}
            store.put(**about, **sizes, load=busy, **least, **found)
            self.say(f"{number}/{len(all_of_them)} {case}: {_short(found)}")

    def case(self, case: Case, root: Path = ROOT) -> dict[str, Any]:
        """Measure one case, of ours with the package of a checkout."""
        peers = case.by != "caltest"
        if peers and case.by in self.failed:
            return {"reason": self.failed[case.by]}
        if peers and case.by not in self.peers:
            return {"reason": self.no_peers}
        options = dict(case.options) if peers else {**case.options, "jobs": case.jobs}
        try:
            given = self.input(case, options)
        except NotMeasured as reason:
            return {"reason": str(reason)}
        task = {
            "module": f"validation.benchmarks.{'peers' if peers else 'own'}",
            "work": case.work,
            "package": case.by if peers else "",
            "seconds": self.seconds,
            **given,
        }
        if peers:
            return self.child(task, jobs=case.jobs, by=case.by)
        task["root"] = str(root)
        found = self.child(task, jobs=case.jobs, root=root)
        return self.child(task, jobs=case.jobs, root=root) if found.get("compiled") else found

    def input(self, case: Case, options: dict[str, Any]) -> dict[str, Any]:
        """Return where the input lies and the options; write it where nothing lies yet."""
        if case.input == "none":
            return {"probs": None, "options": options}
        if case.input != "memory":
            path, few = (self.written(n, case.m, case.input)[2] for n in (case.n, FEW))
            return {"probs": None, "options": options | {"path": path, "few": few}}
        probs, labels, _ = self.written(case.n, case.m)
        return {"probs": probs, "labels": labels, "options": options}

    def written(self, n: int, m: int, kind: str = "") -> tuple[str, str, str]:
        """Return the files of an input, written by a process that is not measured."""
        probs, labels = (str(self.folder / f"{name}-{n}-{m}.npy") for name in ("probs", "labels"))
        table = str(self.folder / f"rows-{n}-{m}.{kind}")
        if Path(table if kind else probs).exists():
            return probs, labels, table
        options = {"n": n, "m": m, "probs": probs, "labels": labels}
        options["table"] = table if kind else None
        task = {"module": "validation.benchmarks.own", "work": "write_input", "options": options}
        answer = self.child(task)
        if "reason" in answer:
            raise NotMeasured(f"no input of {n} rows and {m} classes: {answer['reason']}")
        return probs, labels, table

    # -------------------------------------------------------------- findings

    def findings(self, store: Store) -> None:
        """Run the reproducers of what was found in peers."""
        for name, (package, _) in FINDINGS.items():
            task = {"module": "validation.benchmarks.findings", "work": "finding", "package": package}
            found = self.failed.get(package)
            answer = (
                {"reason": found}
                if found
                else self.child({**task, "options": {"name": name}}, by=package)
            )
            store.put(run=self.run, by=package, name=name, **_only(answer, store.fields))
            self.say(f"finding {name}: {answer.get('numbers', answer.get('reason'))}")


def load() -> float:
    """Return how many processes wanted to run in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _only(answer: dict[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {name: answer[name] for name in fields if name in answer}


def _short(found: dict[str, Any]) -> str:
    if "reason" in found:
        return f"not measured, {found['reason']}"
    runs = f"best of {found['runs']}" if found["runs"] > 1 else "one run"
    return f"{found['best_s']:.4g} s ({runs}), {found['memory_mb']:.0f} MB"
