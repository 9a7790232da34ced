"""What is run again of every file of the record, and what is not: the table of validation.verify."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

#: The columns that say which row it is, where these are others.
KEYS = {
    "certificates_widths": ("scores", "n", "kind"), "ckce_features": ("data", "features"),
    "planning_speed": ("statistic", "temperature"), "tolerance_networks": ("network", "side", "from"),
    "tolerance_speed": ("n", "jobs"),
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Files, and the command that makes some of their rows again.

    ``given`` are files of the record that are there before: summaries are made of these. ``part`` takes
    some entries of a table of the module: ``DESIGNS[:1]``; seeds hang on the place of an entry.
    """

    files: str
    command: str
    given: str = ""
    part: str = ""

    @property
    def text(self) -> str:
        """What is written down."""
        made = f", made of {self.given}" if self.given else ""
        return f"python -m validation{self.command}{made}" + (f"; {self.part}" if self.part else "")

    @property
    def module(self) -> str:
        """The study, or the module with a command line of its own."""
        return shlex.split(self.command)[0].removeprefix(".")


SUMMARY = "--only nothing"  # no cell, but what is made of all cells
BLOCKS = (
    Block("record_level", " record --only 'level points' --no-pictures"),
    Block("record_power", " record --only 'power points' --no-pictures"),
    Block("widmann_errors widmann_estimates",
          " widmann --only group=closed alpha=1.0 beta=any 'm=2 ' --datasets 200 --no-pictures"),
    Block("widmann_compared widmann_agreement widmann_conventions", f" widmann {SUMMARY}",
          "widmann_errors widmann_estimates"),
    Block("widmann_networks", " widmann_networks --only densenet121"),
    Block("widmann_networks_rows", f" widmann_networks {SUMMARY}", "widmann_networks", "NETWORKS[:1]"),
    Block("ckce_figure1", " ckce_figure1"),
    Block("ckce_figure2", ".ckce_figures ranking --sizes 50 100"),
    Block("ckce_figure4a", ".ckce_figures shift", "", "SHIFTS[:2]"),
    Block("ckce", ".ckce_table published"),
    Block("ckce_features", ".ckce_table features", "", "FEATURES[:1]"),
    Block("estimation_risk_simulation", ".estimation_risk simulation"),
    Block("estimation_densenet40 estimation_cifar100", ".estimation networks --functions binning"),
    Block("ecd_table1 ecd_noise", " ecd"),
    Block("validity", " validity --only 'few rows: Dir(1), m=3, n=12 / skce_uq / monte_carlo'"
          " --datasets 1000 --no-pictures"),
    Block("validity_summary validity_pooled", f" validity {SUMMARY}", "validity"),
    Block("power_curves",
          " power_curves --only 'underconfident, t = 1.25 / ecd /' '/ 50 rows' --datasets 80"
          " --no-pictures"),
    Block("power_rows_needed", f" power_curves {SUMMARY}", "power_curves"),
    Block("peers", " peers", "", "DESIGNS[:1]"),
    Block("wild", " wild --only 'wild: breast cancer / naive Bayes'"),
    Block("wild_summary", f" wild {SUMMARY}", "wild"),
    Block("others", " others --only 'caltest / ks, ' '200 rows, p uniform'"),
    Block("others_summary", f" others {SUMMARY}", "others"),
    Block("moments", ".moments --statistics ecd"),
    Block("moments_small moments_small_worst", ".moments_small"),
    Block("consistency", ".consistency", "", "STATISTICS[:1]"),
    Block("estimation_pvalues", ".estimation pvalues", "", "MODELS[:1]"),
    Block("estimation_truth", ".estimation truth --sizes 500", "", "MODELS[:1]"),
    Block("comparison_networks", ".comparison networks --resamples 1000", "",
          "network_statistics[-1:]"),
    Block("omnibus_power", ".omnibus --classes 2"),
    Block("low_rank_power", ".low_rank", "", "DESIGNS[:1]"),
    Block("low_rank_many", ".low_rank many --sets 100 --resamples 299", "", "MANY[3:4]"),
    Block("tolerance_size", ".tolerance size", "", "TRUTHS[:1]"),
    Block("tolerance_coverage", ".tolerance coverage"),
    Block("tolerance_networks", ".tolerance networks"),
    Block("tolerance_speed", ".tolerance speed --rows 10000"),
    Block("places", ".places"),
    Block("certificates_coverage", ".certificates coverage --rows 2000", "", "COVERED[:1]"),
    Block("certificates_widths", ".certificates widths --rows 1000", "", "SHAPES[:1]"),
    Block("certificates_plan", ".certificates plan", "", "METHODS[:1]"),
    Block("certificates_speed", ".certificates speed --rows 10000"),
    Block("certificates_networks", ".certificates networks"),
    Block("audit_size", ".audit size"),
    Block("audit_size_default", ".audit size_default --repetitions 300 --groups 4"),
    Block("audit_power", ".audit power --repetitions 200 --temperatures 0.8"),
    Block("audit_speed", ".audit speed --cases linear --jobs 2"),
    Block("bands", ".bands"),
    Block("verdicts_directions", ".verdicts directions", "", "MODELS[:1]"),
    Block("verdicts_cells", ".verdicts cells", "", "CASES[:1]"),
    Block("within_level", ".within level --designs 1"),
    Block("within_power", ".within power"),
    Block("vouched", ".vouched --designs 1", "", "DESIGNS[:1]"),
    Block("advice", ".advice --models 2"),
    Block("planning_coverage", ".planning coverage"),
    Block("planning_pilots", ".planning pilots --largest 50"),
    Block("planning_speed", ".planning speed --statistics ecd"),
    Block("clusters", " clusters --only '50 × 6 on average, m=10, ρ=0 / monte_carlo'"),
    Block("clusters_summary", f" clusters {SUMMARY}", "clusters"),
    Block("clusters_power", " clusters --only '200 × 3, m=3, ρ=0.3, temp' one_per"),
    Block("clusters_audits", " clusters --only 'audits: 40 × 5, m=3, ρ=0.5'"),
    Block("clusters_intervals", " clusters --only 'intervals: 100 × 20, Beta(2, 2)'"),
    Block("copies", " clusters --only copies:"),
    Block("rare_clusters", " rare_clusters --only '20 × 10 at .3 / cluster_signs' --datasets 300"),
    Block("rare_clusters_summary", f" rare_clusters {SUMMARY}", "rare_clusters"),
    Block("rare_clusters_audits", " rare_clusters --only 'audits: 200 × 10, uniform, 25 groups'"),
    Block("weights", " weights --only 'survey σ=1.5, m=3, n=60 / monte_carlo'"),
    Block("weights_summary", f" weights {SUMMARY}", "weights"),
    Block("weights_intervals", " weights --only 'intervals: 1 000 rows, 100 of weight 100, at .02'"),
    Block("numbers", " numbers --only 'normal / monte_carlo' --datasets 600"),
    Block("numbers_summary", f" numbers {SUMMARY}", "numbers"),
    Block("numbers_power", " numbers --only 'power: a quarter of a standard deviation higher'"),
    Block("numbers_published", " numbers --only 'published: Arnold et al., bias 0.1, dispersion 0'"),
    Block("members", " members --only '2 members, numbers / monte_carlo' --datasets 600"),
    Block("members_summary", f" members {SUMMARY}", "members"),
    Block("members_joint", " members --only 'members_joint: 60, 0.0'"),
    Block("members_groups", " members --only 'members_groups: 9'"),
    Block("members_others", " members --only 'members_others: ranks against a continuous law' '20'"),
    Block("monitor_levels", " monitor --only 'levels: 2 classes'"),
    Block("monitor_changes", " monitor --only 'changes: 2 classes'"),
    Block("monitor_delays", " monitor --only 'delays: temperature 1.25, 3 classes: ever'"),
    Block("monitor_published", " monitor --only 'published: 0.1 0.0' --datasets 500"),
    Block("survival_size", " survival --only 'survival_size: , 50, end of study, 0.2'"),
    Block("survival_power", " survival --only 'survival_power: hazards × 1.25, 200, random, 0.2'"),
    Block("survival_coverage", " survival --only 'survival_coverage: 5, 53, random, 1.0'"),
    Block("features_level", " features --only 'features_level: 200 rows, 2 features' --datasets 50"),
    Block("features_planted", " features --only 'features_planted: 3 000 rows, 8 features, calibrated'"
          " --datasets 25"),
    Block("features_power", " features --only 'features_power: calibrated, 800, 8' --datasets 50"),
    Block("features_real", " features --only 'features_real: marriages, logistic'"),
    Block("gates", " gates --only 'gates: bank, one cell, right, 0.0, 0.04'"),
    Block("promises_sides", " promises --only 'promises_sides: 300, 1, at the limit' --datasets 100"),
    Block("promises_sets", " promises --only 'promises_sets: exact, 500'"),
    Block("promises_ragged", " promises --only 'promises_ragged: members, 0.0' --datasets 300"),
    Block("points_sizes", " points --only 'points_sizes: normal, 100, symmetric'"),
    Block("points_premises", " points --only 'points_premises: tail of 1 in 10000, 100, low'"),
    Block("points_intervals", " points --only 'points_intervals: U-shaped, 200'"),
    Block("points_lengths", " points --only points_lengths:"),
    Block("points_power", " points --only 'points_power: normal, 200, too high, 3.0'"),
)  # fmt: skip
TIMES, ABSENT = "times, of another machine each time", "needs packages that are not installed"
NOT_RUN = {
    **dict.fromkeys(("timing", "monitor_speed", "speed_ckce", "estimation_risk_cost"), TIMES),
    **dict.fromkeys(("features_others", "points_others", "survival_others"), ABSENT),
    "runs": "what was run, until when",
    "commands": "what was run, until when",
    "loops": TIMES,
    "estimation_risk_precision": "only as a whole, in more than ten minutes of one core",
    "benchmarks_*": TIMES,
}
#: Why a file is not equal to what is made now.
DIFFERS = {
    "members_groups": "audits by default test otherwise than on 24 November: 8 of 200 reject, not 9",
    "members_joint": "audits by default test otherwise than on 24 November",
    "weights": "two statistics are later than the record; the other 29 rows are equal",
    "weights_intervals": "t intervals beside ours were written anew since: lengths differ by 1.9%",
    "omnibus_power": "one of 2 000 rejections by sums of tangents, which hang on last digits",
}
