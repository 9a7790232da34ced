"""What there is to run: the studies by name, and the files that every one of them leaves."""

from __future__ import annotations

from validation._command import Command, Study, of_commands, of_module

_RECORD = of_module(
    "record", "In two figures: how often are right and wrong forecasts of twelve kinds rejected?",
    "1 hour of one core",
    "record_level.csv", "record_power.csv", "record_level.png", "record_power.png",
)  # fmt: skip
_WIDMANN = of_module(
    "widmann",
    "Widmann et al. 2019: do Figures 1 and 2, J.2.3 and J.2.4 come out?",
    "190 hours of one core, most of them for 1000 classes; 15 for what is published in numbers",
    "widmann_estimates.csv", "widmann_errors.csv", "widmann_figure1.png", "widmann_figure2.png",
    "widmann_j23.png", "widmann_j24.png",
    published=("widmann_compared.csv", "widmann_conventions.csv", "widmann_agreement.csv",
               "widmann_compared.png"),
)  # fmt: skip
_NETWORKS = of_module(
    "widmann_networks",
    "Widmann et al. 2019, J.3: do estimates and p-values of four networks come out?",
    "10 minutes",
    "widmann_networks.csv", "widmann_networks_rows.csv", "widmann_networks.png",
    reference=True,
)  # fmt: skip
_TIMING = of_module(
    "timing",
    "Widmann et al. 2019, J.4: how long do estimators take?",
    "1 minute",
    "timing.csv",
    "timing.png",
)
_CKCE = of_module(
    "ckce_figure1", "Moskvichev and Sejdinovic 2025: does Figure 1 come out?", "1 minute",
    "ckce_figure1.csv", "ckce_figure1.png",
)  # fmt: skip
_CKCE_FIGURES = of_commands(
    "Moskvichev and Sejdinovic 2025: do Figures 2 and 4(a) come out?", "20 minutes",
    Command("ckce_figures", "ranking", ("ckce_figure2.csv", "ckce_figure2.png"),
            "--trials 2 --sizes 50 100 200"),
    Command("ckce_figures", "shift", ("ckce_figure4a.csv", "ckce_figure4a.png"), "--trials 2"),
)  # fmt: skip
_CKCE_TABLE = of_commands(
    "Moskvichev and Sejdinovic 2025: does Table 1 come out, and in what time and memory?", "20 minutes",
    Command("ckce_table", "published", ("ckce.csv",), "--rows 300", reference=True),
    Command("ckce_table", "features", ("ckce_features.csv",), "--rows 300", reference=True),
    Command("ckce_table", "speed", ("speed_ckce.csv",), "--rows 300 --cases 0 4", reference=True),
)  # fmt: skip
_RISK = of_commands(
    "Gruber and Bach 2024: is the risk smallest at the truth, as in Figure 1?", "30 minutes",
    Command("estimation_risk", "simulation",
            ("estimation_risk_simulation.csv", "estimation_risk_simulation.png"), "--trials 2"),
)  # fmt: skip
_RISK_NETWORKS = of_commands(
    "Gruber and Bach 2024: do Tables 1 and 5 come out?", "1 hour",
    Command("estimation", "networks", ("estimation_densenet40.csv", "estimation_cifar100.csv"),
            "--rows 500 --functions two_step", reference=True),
    Command("estimation_risk", "precision", ("estimation_risk_precision.csv",), "--rows 500",
            reference=True),
    Command("estimation_risk", "cost", ("estimation_risk_cost.csv",), "--rows 500 --runs 1",
            reference=True),
)  # fmt: skip
_CLUSTERS = of_module(
    "clusters",
    "Do tests, audits and intervals hold if rows of a cluster are dependent? Are copies noticed?",
    "2 hours of one core",
    "clusters.csv", "clusters_summary.csv", "clusters_power.csv", "clusters_audits.csv",
    "clusters_intervals.csv", "copies.csv",
)  # fmt: skip
_RARE_CLUSTERS = of_module(
    "rare_clusters", "And if few clusters with rare events carry all variance?",
    "2 hours of one core",
    "rare_clusters.csv", "rare_clusters_summary.csv", "rare_clusters_audits.csv",
)  # fmt: skip
_WEIGHTS = of_module(
    "weights", "And with weights, or rows sampled by their label?",
    "35 minutes of one core", "weights.csv", "weights_summary.csv", "weights_intervals.csv",
)  # fmt: skip
_NUMBERS = of_module(
    "numbers", "Do tests of predicted distributions keep their level, and find errors?",
    "1 hour of one core",
    "numbers.csv", "numbers_summary.csv", "numbers_power.csv", published=("numbers_published.csv",),
)  # fmt: skip
_GATES = of_module(
    "gates", "Which models does an audit's gate stop?",
    "12 minutes of one core", "gates.csv",
)  # fmt: skip
_FEATURES = of_module(
    "features",
    "Does a search over features name innocent slices, and find the wrong ones?",
    "10 hours of one core, of which other packages 2",
    "features_level.csv", "features_planted.csv", "features_power.csv", "features_real.csv",
    elsewhere=("features_others.csv",),
)  # fmt: skip
_PROMISES = of_module(
    "promises", "Do one-sided limits, prediction sets and forecasts with gaps keep their level?",
    "3 hours of one core",
    "promises_sides.csv", "promises_sets.csv", "promises_ragged.csv",
)  # fmt: skip
_POINTS = of_module(
    "points", "Do tests of point forecasts keep their level, by what is known of outcomes?",
    "4 hours of one core",
    "points_sizes.csv", "points_premises.csv", "points_intervals.csv", "points_lengths.csv",
    "points_power.csv",
    elsewhere=("points_others.csv",),
)  # fmt: skip
_MEMBERS = of_module(
    "members", "Do tests of ensembles keep their level, and find joint errors?",
    "16 minutes of one core",
    "members.csv", "members_summary.csv", "members_joint.csv", "members_groups.csv",
    "members_others.csv",
)  # fmt: skip
_MONITOR = of_module(
    "monitor", "Are false alarms of monitors as rare as promised, and true ones soon?",
    "2 hours of one core",
    "monitor_levels.csv", "monitor_changes.csv", "monitor_delays.csv", "monitor_speed.csv",
    published=("monitor_published.csv",),
)  # fmt: skip
_SURVIVAL = of_module(
    "survival",
    "Do tests and intervals hold if times are censored?",
    "3 hours of one core",
    "survival_size.csv", "survival_power.csv", "survival_coverage.csv",
    elsewhere=("survival_others.csv",),
)  # fmt: skip
_ECD = of_module(
    "ecd", "Sumler et al. 2025: do Figure 2 and Table I come out?", "1 minute",
    "ecd_table1.csv", "ecd_noise.csv", "ecd_figure2.png",
)  # fmt: skip
_VALIDITY = of_module(
    "validity", "Are calibrated models rejected as rarely as promised, by every statistic and null?",
    "80 hours of one core, of which consistency resampling 70",
    "validity.csv", "validity_summary.csv", "validity_pooled.csv", "validity.png",
)  # fmt: skip
_POWER_CURVES = of_module(
    "power_curves", "How many rows does each statistic need for a power of 80%?", "6 hours of one core",
    "power_curves.csv", "power_rows_needed.csv", "power_curves.png",
)  # fmt: skip
_WILD = of_module(
    "wild", "Does an audit's advice help on fresh rows of public data?",
    "40 minutes", "wild.csv", "wild_summary.csv",
)  # fmt: skip
_PEERS = of_module(
    "peers", "Do the limits that other packages use keep their level?", "2 minutes", "peers.csv"
)
_OTHERS = of_module(
    "others", "Do other packages' tests keep their level, and find what ours find?",
    "1 hour of one core; what is not installed is left out", "others.csv",
    "others_summary.csv",
)  # fmt: skip
_NULLS = of_commands(
    "How accurate are the analytic null and consistency resampling?", "2 hours",
    Command("moments", "", ("moments.csv",), "--draws 200 --network-draws 50 --statistics ecd"),
    Command("consistency", "", ("consistency.csv",), "--repetitions 2 --resamples 19"),
    Command("moments_small", "", ("moments_small.csv", "moments_small_worst.csv"), "--designs 5"),
)  # fmt: skip
_ESTIMATION = of_commands(
    "Are estimated squared errors right where the truth is known?", "1 hour",
    Command("estimation", "pvalues", ("estimation_pvalues.csv",),
            "--repetitions 2 --resamples 9"),
    Command("estimation", "truth", ("estimation_truth.csv",), "--repetitions 2 --sizes 200"),
)  # fmt: skip
_COMPARISON = of_commands(
    "How stable is a ranking of networks?", "1 hour",
    Command("comparison", "networks", ("comparison_networks.csv",),
            "--rows 500 --size 100 --resamples 5", "--resamples 1000", reference=True),
)  # fmt: skip
_OMNIBUS = of_commands(
    "How much power does the combined test keep, and a kernel of low rank?", "5 hours",
    Command("omnibus", "", ("omnibus_power.csv", "omnibus_power.png"),
            "--sets 1 --vectors 2 --resamples 19"),
    Command("low_rank", "", ("low_rank_power.csv",), "--repetitions 1 --resamples 19"),
    Command("low_rank", "many", ("low_rank_many.csv",), "--sets 2 --vectors 1 --resamples 19",
            "--sets 100 --resamples 299"),
)  # fmt: skip
_BOUNDS = of_commands(
    "Do bounds and certificates hold, and tolerance tests keep their level?", "7 hours",
    Command("tolerance", "size", ("tolerance_size.csv",), "--repetitions 2 --resamples 19"),
    Command("tolerance", "coverage", ("tolerance_coverage.csv",), "--repetitions 1 --resamples 39"),
    Command("tolerance", "networks", ("tolerance_networks.csv",), "--rows 500 --resamples 39",
            reference=True),
    Command("tolerance", "speed", ("tolerance_speed.csv",), "--rows 1000", alone=True),
    Command("places", "", ("places.csv",), "--repetitions 20 --compared 1"),
    Command("certificates", "coverage", ("certificates_coverage.csv",), "--repetitions 2 --rows 2000"),
    Command("certificates", "widths", ("certificates_widths.csv",), "--repetitions 1 --rows 2000"),
    Command("certificates", "plan", ("certificates_plan.csv",), "--repetitions 1 --rows 2000"),
    Command("certificates", "speed", ("certificates_speed.csv",), "--rows 10000"),
    Command("certificates", "networks", ("certificates_networks.csv",),
            "--rows 500", reference=True),
)  # fmt: skip
_AUDIT = of_commands(
    "Are joint levels, directions, intervals, verdicts and advice of audits right?", "3 hours",
    Command("audit", "size", ("audit_size.csv",), "--repetitions 2 --groups 4"),
    Command("audit", "size_default", ("audit_size_default.csv",), "--repetitions 1 --groups 4",
            "--repetitions 300 --groups 4 16"),
    Command("audit", "power", ("audit_power.csv",), "--repetitions 1 --rows 800 --resamples 199",
            "--repetitions 200"),
    Command("bands", "", ("bands.csv",), "--repetitions 20"),
    Command("audit", "speed", ("audit_speed.csv",), "--cases linear --rows 2000"),
    Command("verdicts", "directions", ("verdicts_directions.csv",), "--repetitions 1 --resamples 39"),
    Command("verdicts", "cells", ("verdicts_cells.csv",), "--repetitions 1 --resamples 39"),
    Command("within", "level", ("within_level.csv",), "--repetitions 8 --audits 4 --designs 4"),
    Command("within", "power", ("within_power.csv",), "--repetitions 20"),
    Command("vouched", "", ("vouched.csv",), "--repetitions 1 --designs 3"),
    Command("advice", "", ("advice.csv",), "--repetitions 2 --models 3"),
)  # fmt: skip
_PLANNING = of_commands(
    "Do planned sample sizes reach their power?", "40 minutes",
    Command("planning", "coverage", ("planning_coverage.csv",), "--repetitions 2"),
    Command("planning", "speed", ("planning_speed.csv",), "--statistics ecd --datasets 24"),
    Command("planning", "pilots", ("planning_pilots.csv",),
            "--repetitions 10 --datasets 20 --largest 200"),
)  # fmt: skip

STUDIES: dict[str, Study] = {
    "record": _RECORD,
    "widmann": _WIDMANN,
    "widmann_networks": _NETWORKS,
    "timing": _TIMING,
    "ckce_figure1": _CKCE,
    "ckce_figures": _CKCE_FIGURES,
    "ckce_table": _CKCE_TABLE,
    "risk": _RISK,
    "risk_networks": _RISK_NETWORKS,
    "ecd": _ECD,
    "validity": _VALIDITY,
    "power_curves": _POWER_CURVES,
    "peers": _PEERS,
    "wild": _WILD,
    "others": _OTHERS,
    "nulls": _NULLS,
    "estimation": _ESTIMATION,
    "comparison": _COMPARISON,
    "omnibus": _OMNIBUS,
    "bounds": _BOUNDS,
    "clusters": _CLUSTERS,
    "rare_clusters": _RARE_CLUSTERS,
    "weights": _WEIGHTS,
    "numbers": _NUMBERS,
    "members": _MEMBERS,
    "monitor": _MONITOR,
    "survival": _SURVIVAL,
    "audit": _AUDIT,
    "gates": _GATES,
    "features": _FEATURES,
    "promises": _PROMISES,
    "points": _POINTS,
    "planning": _PLANNING,
}
