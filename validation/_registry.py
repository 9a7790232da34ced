"""What there is to run: the studies by name."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from validation._cells import Options, Table

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Study:
    """A study: what it shows, what it takes, and how it is run."""

    title: str
    full: str
    run: Callable[[Options], None]
    reference: bool = False


def of_module(module: str) -> Callable[[Options], None]:
    """Return a study that is a function ``run`` of a module."""

    def run(options: Options) -> None:
        importlib.import_module(f"validation.{module}").run(options)

    return run


@dataclass(frozen=True)
class Command:
    """A module's own command line: arguments of either mode, and the files a full run leaves.

    Without arguments for the quick mode it is not part of that.
    """

    module: str
    quick: str
    full: str
    leaves: tuple[str, ...]


def _commands(commands: Sequence[Command], options: Options) -> None:
    """Run modules one after another; a full one is not run again while its files are there."""
    environment = os.environ | {"CALTEST_VALIDATION_RESULTS": str(options.results), "MPLBACKEND": "Agg"}
    done = Table(options.results / "commands.csv", ("command",))
    for command in commands:
        arguments = command.quick if options.quick else command.full
        label = f"{command.module} {arguments}".strip()
        if not options.wants(label) or options.over or (options.quick and not arguments):
            continue
        if not options.quick and all((options.results / name).exists() for name in command.leaves):
            print(f"{label}: its results are there; delete them to run it again", flush=True)
            continue
        started = options.seconds
        words = arguments.replace("--jobs 1", f"--jobs {options.jobs}").split()
        call = [sys.executable, "-m", f"validation.{command.module}", *words]
        subprocess.run(call, cwd=ROOT, env=environment, check=True)
        done.put([{"command": label, "seconds": round(options.seconds - started)}])


def of_commands(*commands: Command) -> Callable[[Options], None]:
    """Return a study that runs modules by their own command lines."""
    return partial(_commands, commands)


_CKCE = (
    Command("ckce_figures", "--trials 2 --jobs 1", "--trials 100 --jobs 1",
            ("ckce_figure2.csv", "ckce_figure2.png", "ckce_figure4a.csv", "ckce_figure4a.png")),
)  # fmt: skip
_TABLE = (Command("ckce", "--jobs 1", "--jobs 1", ("ckce.csv", "ckce_features.csv")),)
_RISK = (
    Command("estimation_risk", "simulation --trials 2 --jobs 1", "simulation --trials 100 --jobs 1",
            ("estimation_risk_simulation.csv", "estimation_risk_simulation.png")),
)  # fmt: skip
_RISK_NETWORKS = (
    Command("estimation", "", "networks --jobs 1",
            ("estimation_densenet40.csv", "estimation_cifar100.csv")),
    Command("estimation_risk", "", "precision --jobs 1", ("estimation_risk_precision.csv",)),
    Command("estimation_risk", "", "cost --jobs 1", ("estimation_risk_cost.csv",)),
)  # fmt: skip
_ESTIMATION = (
    Command("estimation", "", "pvalues --jobs 1",
            ("estimation_pvalues.csv",)),
    Command("estimation", "", "truth --jobs 1", ("estimation_truth.csv",)),
)  # fmt: skip
_NULLS = (
    Command("moments", "--draws 200 --network-draws 50 --statistics ecd --jobs 1",
            "--draws 100000 --jobs 1", ("moments.csv",)),
    Command("consistency", "--repetitions 2 --resamples 19 --jobs 1",
            "--repetitions 500 --jobs 1", ("consistency.csv",)),
)  # fmt: skip
_COMPARISON = (
    Command("comparison", "", "tests --jobs 1", ("comparison.csv",)),
    Command("comparison", "", "networks --jobs 1", ("comparison.csv",)),
)
_POWER = (
    Command("omnibus", "--sets 1 --vectors 1 --resamples 19", "",
            ("omnibus_power.csv", "omnibus_power.png")),
    Command("low_rank", "", "--jobs 1", ("low_rank_power.csv",)),
)  # fmt: skip
_BOUNDS = (
    Command("tolerance", "size --repetitions 2 --resamples 19 --jobs 1", "size --jobs 1",
            ("tolerance_size.csv",)),
    Command("tolerance", "", "coverage --jobs 1", ("tolerance_coverage.csv",)),
    Command("certificates", "coverage --repetitions 2 --jobs 1", "coverage --jobs 1",
            ("certificates_coverage.csv",)),
    Command("certificates", "", "widths --jobs 1", ("certificates_widths.csv",)),
    Command("witness", "size --repetitions 2 --resamples 19 --jobs 1", "size --jobs 1",
            ("witness.csv",)),
)  # fmt: skip
_AUDIT = (
    Command("audit", "size --repetitions 2 --groups 4 --jobs 1", "size --jobs 1",
            ("audit_size.csv",)),
    Command("audit", "", "power --jobs 1", ("audit_power.csv",)),
)  # fmt: skip
_PLANNING = (
    Command("planning", "coverage --repetitions 2", "coverage --repetitions 400",
            ("planning_coverage.csv",)),
)  # fmt: skip

STUDIES: dict[str, Study] = {
    "widmann": Study(
        "Widmann et al. 2019, Figures 1 and 2, J.2.3, J.2.4, beside published numbers",
        "190 hours of one core, most of them for 1000 classes; 15 for what is published in numbers",
        of_module("widmann"),
    ),
    "widmann_networks": Study(
        "Widmann et al. 2019, J.3: four networks, estimates and p-values beside published",
        "10 minutes", of_module("widmann_networks"), reference=True,
    ),
    "timing": Study("Widmann et al. 2019, J.4: computational time", "1 minute", of_module("timing")),
    "ckce": Study("Moskvichev and Sejdinovic 2025, Figure 1", "1 minute", of_module("ckce_figure1")),
    "ckce_figures": Study(
        "Moskvichev and Sejdinovic 2025, Figures 2 and 4(a)", "20 minutes", of_commands(*_CKCE)
    ),
    "ckce_table": Study(
        "Moskvichev and Sejdinovic 2025, Table 1, DenseNet-40; features; memory",
        "20 minutes", of_commands(*_TABLE), reference=True,
    ),
    "risk": Study("Gruber and Bach 2024, Figure 1: risk of simulated models", "30 minutes",
                  of_commands(*_RISK)),
    "risk_networks": Study(
        "Gruber and Bach 2024, Tables 1 and 5, DenseNet-40", "1 hour",
        of_commands(*_RISK_NETWORKS), reference=True,
    ),
    "ecd": Study("Sumler et al. 2025, Figure 2 and Table I", "1 minute", of_module("ecd")),
    "validity": Study(
        "size of every (statistic, null) pair: heat maps with simultaneous limits",
        "80 hours of one core, of which consistency resampling 70", of_module("validity"),
    ),
    "power_curves": Study(
        "power of every statistic over rows; rows needed for 80 %", "6 hours of one core",
        of_module("power_curves"),
    ),
    "peers": Study("other packages' p-values beside ours", "2 minutes", of_module("peers")),
    "nulls": Study("accuracy of the analytic null; consistency resampling", "2 hours",
                   of_commands(*_NULLS)),
    "estimation": Study("squared calibration errors of known truth", "1 hour",
                        of_commands(*_ESTIMATION)),
    "comparison": Study("ranking of models: size, power, stability", "3 hours",
                        of_commands(*_COMPARISON), reference=True),
    "omnibus": Study("the omnibus against its parts; kernels of low rank", "5 hours",
                     of_commands(*_POWER)),
    "bounds": Study("tolerance tests, certificates, witness: coverage and size", "5 hours",
                    of_commands(*_BOUNDS)),
    "audit": Study("joint level and power of audits", "3 hours", of_commands(*_AUDIT)),
    "planning": Study("sample sizes where the answer is known", "10 minutes",
                      of_commands(*_PLANNING)),
}  # fmt: skip
