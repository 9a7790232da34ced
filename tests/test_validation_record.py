"""The record of the studies: what it says holds, and every printed command makes the file beside it."""

import io
import re
import shlex
from pathlib import Path

import pytest
from pages import ROOT, of_source, rows_of

pytestmark = [of_source, pytest.mark.usefixtures("from_the_root")]
PAGES = [
    *(path for path in (ROOT / "docs").rglob("*.md") if not {"generated", "gallery"} & set(path.parts)),
    *(ROOT / ".github").glob("*.md"),
    ROOT / "README.md",
]
NOT_OF_STUDIES = ("benchmarks", "loops.csv", "runs.csv", "commands.csv", "verified.csv")
OTHERS = ("python -m validation.benchmarks", "python -m validation.pages")  # with tests of their own


# ------------------------------------------------------------------ printed commands


def printed():
    """Return every command of a study: in prose, in blocks, and under a table."""
    found = {}
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        commands = re.findall(r"`(python -m validation[^`]*)`", text)
        commands += re.findall(r"^(python -m validation.*)$", text, flags=re.MULTILINE)
        found |= dict.fromkeys(command for command in commands if not command.startswith(OTHERS))
    return list(found)


def test_printed_commands_are_accepted_and_write_something():
    from validation.__main__ import writes

    assert not [command for command in printed() if not writes(command)]


def test_pages_show_what_the_files_say():
    from validation.pages import differing

    assert not differing(), "python -m validation.pages writes them again"


@pytest.mark.parametrize(
    "command",
    [
        "python -m validation validty",
        "python -m validation validity --datset 5",
        "python -m validation.audit sise",
        "python -m validation.size",
    ],
)
def test_commands_that_are_none_are_found_out(command):
    from validation.__main__ import writes

    with pytest.raises(ValueError, match=re.escape(command)):
        writes(command)


def test_only_narrows_what_a_command_writes():
    from validation.__main__ import writes

    assert writes("python -m validation audit --only size") == ("audit_size.csv",)
    assert writes("python -m validation.audit speed --rows 9") == ("audit_speed.csv",)
    assert "audit_power.csv" in writes("python -m validation audit")


# ------------------------------------------------------------------ one registry


def test_every_file_of_the_record_is_left_by_one_study():
    from validation._registry import STUDIES
    from validation._study import RESULTS

    left = [name for study in STUDIES.values() for name in study.files]
    assert len(left) == len(set(left))
    there = {path.name for path in RESULTS.iterdir() if not path.name.startswith(NOT_OF_STUDIES)}
    assert there <= set(left)


def test_every_command_of_the_registry_is_accepted_in_either_mode():
    import importlib

    from validation._cells import Options
    from validation._registry import STUDIES

    for command in (each for study in STUDIES.values() for each in study.commands):
        module = importlib.import_module(f"validation.{command.module}")
        for quick in (True, False):
            given = module.parsed(command.words(Options(Path("elsewhere"), quick=quick, jobs=2)))
            assert (given.jobs, given.results) == (2, Path("elsewhere"))
            assert getattr(given, "study", "") == command.part


# ------------------------------------------------------------------ what the record says


def test_a_block_of_every_file_was_run_again_or_it_is_said_why_not():
    from validation._study import RESULTS

    lines = {row["file"]: row for row in rows_of(RESULTS / "verified.csv")}
    assert {"verified.csv", *lines} == {path.name for path in RESULTS.glob("*.csv")}
    for row in lines.values():
        assert re.fullmatch("yes(: .+)?|(no|not run): (?!.*not explained).+", row["equal"]), row
        assert row["equal"].startswith("not run") or int(row["rows_compared"]) >= 1, row
    assert sum(path.stat().st_size for path in RESULTS.iterdir()) <= 4_000_000


@pytest.mark.slow
def test_no_exact_pair_of_the_record_is_outside_the_limits():
    from validation._cells import Table
    from validation._study import RESULTS
    from validation.validity import KEY, judged, pooled

    rows = judged(Table(RESULTS / "validity.csv", KEY))
    exact = [row for row in rows if row["guarantee"] == "exact"]
    assert len(exact) > 200
    assert [row for row in exact if row["verdict"] in ("above", "below")] == []
    assert [row for row in pooled(rows) if row["verdict"] in ("above", "below")] == []


def test_the_figures_are_what_results_promise():
    """Limits as the file has them: 99% for all levels and lines of ours at once."""
    from scipy.stats import binom

    from validation._record_panels import PANELS
    from validation._study import RESULTS

    rows = rows_of(RESULTS / "record_level.csv")
    ours = [row for row in rows if row["guarantee"] not in ("", "peer")]
    assert {row["panel"] for row in ours} == set(PANELS)
    levels = [name for name in rows[0] if name.startswith("p<=")]
    for row in ours:
        of, exact = int(row["datasets"]), row["guarantee"] in ("exact", "bound")
        assert of >= (2000 if exact else 1000)
        most = binom.isf(0.01 / (2 * len(levels) * len(ours)), of, [float(x[3:]) for x in levels])
        above = sum(int(row[x]) > limit for x, limit in zip(levels, most, strict=True))
        assert above == int(row["above"])
        assert not (exact and above)
        assert bool(row["comment"]) == (row["above"] != "0" or row["below"] != "0")
    power = rows_of(RESULTS / "record_power.csv")
    assert all(int(row["datasets"]) >= 300 for row in power)
    for name, panel in PANELS.items():
        mine = [row for row in power if (row["panel"], row["line"]) == (name, panel.shown[0])]
        share = {int(row["rows"]): int(row["rejected"]) / int(row["datasets"]) for row in mine}
        assert share[panel.sizes[-1]] > max(0.5, share[panel.sizes[0]] + 0.2), name


def test_every_difference_from_published_numbers_has_a_cause():
    from validation._study import RESULTS

    rows = rows_of(RESULTS / "widmann_compared.csv")
    assert len(rows) > 400
    assert [row for row in rows if row["cause"] == "unexplained"] == []


def test_members_are_as_the_page_says():
    from support import binomial_limits

    from validation._study import RESULTS

    def share(row, name):
        return int(row[name]) / int(row["datasets"])

    def is_size(row, name):
        low, high = binomial_limits(int(row["datasets"]), 0.05, 1e-3)
        return low <= share(row, name) <= high

    summary = rows_of(RESULTS / "members_summary.csv")
    assert len(summary) == 3 * 48
    assert [row for row in summary if row["verdict"] == "above"] == []
    for row in rows_of(RESULTS / "members_joint.csv"):
        assert is_size(row, "marginal ranks")
        if row["correlation"] == "0":
            assert all(is_size(row, name) for name in ("joint audit", "pair", "energy"))
        else:
            assert share(row, "joint audit") > 0.5
    groups = rows_of(RESULTS / "members_groups.csv")
    sizes = ("mean of pool", "spread of pool", "audit")
    assert all(is_size(row, name) for row in groups for name in sizes)
    means = {row["members"]: share(row, "mean of members") for row in groups}
    assert means == pytest.approx({"9": 1.0, "20": 0.97, "50": 0.68}, abs=0.1)
    others = {(row["test"], row["draws"]): row for row in rows_of(RESULTS / "members_others.csv")}
    assert all(is_size(row, "ours_level") for row in others.values())
    ranks = {draws: share(row, "level") for (test, draws), row in others.items() if "ranks" in test}
    assert ranks["20"] > 0.95
    assert ranks["100"] > 0.06
    curve = others["coverage curve against its grid", "100"]
    assert share(curve, "level") == share(curve, "power") == 0.0
    assert share(curve, "ours_power") > 0.9


def test_other_packages_are_as_the_page_says():
    from support import binomial_limits

    from validation._study import RESULTS

    rows = {
        (row["package"], row["test"], row["design"]): row for row in rows_of(RESULTS / "others.csv")
    }

    def share(package, test, design, what="level"):
        (row,) = [each for key, each in rows.items() if key[:2] == (package, test) and design in key[2]]
        return int(row[what]) / int(row["datasets"])

    assert all(int(row["datasets"]) >= 1000 for row in rows.values())
    ours = [row for row in rows.values() if row["package"] == "caltest"]
    assert len(ours) > 30
    for row in ours:  # ties make a level lower
        _, high = binomial_limits(int(row["datasets"]), 0.05, 1e-3)
        assert int(row["level"]) / int(row["datasets"]) <= high
        assert row["level_failed"] == row["power_failed"] == "0"
    assert (
        min(share("probcal", "hosmer_lemeshow", "rare"), share("calzone-tool", "HL-C", "rare")) > 0.08
    )
    assert share("mapie", "spiegelhalter_p_value", "200 rows", "power") < 0.01
    assert share("probcal", "spiegelhalter_z", "200 rows", "power") > 0.3
    designs = ("200 rows", "5 000", "rare", "ties", "top label")
    assert max(share("probcal", "hl_e_test", design) for design in designs) < 0.02
    assert share("arviz-stats", "ecdf_pit", " 20 members") > 0.9
    assert share("arviz-stats", "ecdf_pit", "1 000 members") < 0.1
    for design in ("200 rows", "ties"):
        for what in ("level", "power"):
            belt = share("pycaleva", "CalibrationBelt", design, what)
            line = share("probcal", "calibration_test", design, what)
            assert belt == pytest.approx(line, abs=0.005)  # of a line too, whatever its name
    assert share("calibration-belt", "CalibrationBelt.test", "ties", "power") > 0.4
    common = [
        (row["package"], row["test"])
        for row in rows_of(RESULTS / "others_summary.csv")
        if row["design"].startswith("5 000 rows") and row["verdict"] == "above"
    ]
    assert common == [("calzone-tool", "HL-C")]


def test_the_wild_is_as_the_page_says():
    """Every figure of the page is read from the files; here is what it says in words."""
    import pandas as pd

    from validation._study import RESULTS
    from validation.wild import summary

    text = (ROOT / "docs" / "wild.md").read_text(encoding="utf-8")
    files = {name: pd.read_csv(RESULTS / name) for name in ("wild.csv", "wild_summary.csv")}
    shown = re.findall(r"^<!-- results: (wild_summary.csv) \| (.*) -->$", text, flags=re.MULTILINE)
    tables = [eval(expression, {"table": files[name], "pd": pd}) for name, expression in shown]
    assert sum(map(len, tables)) == len(files["wild_summary.csv"])
    again = pd.DataFrame(summary(RESULTS / "wild.csv")).to_csv(index=False)
    assert pd.read_csv(io.StringIO(again)).equals(files["wild_summary.csv"])

    wild = files["wild.csv"]
    assert wild.data.nunique() >= 12

    def of(data, model=None):
        found = wild[wild.data == data]
        return found if model is None else found[found.model == model]

    few = wild[wild.data.isin(["breast cancer", "wine"])]
    assert few[few.verdict != "undecided"].model.tolist() == ["naive Bayes"]
    harmed = wild[wild.helped == "no"]
    assert harmed[["data", "model"]].to_numpy().tolist() == [["wine", "k nearest neighbours"]]
    for data, model in (
        ("digits", "random forest"),
        ("credit", "gradient boosting"),
        ("credit", "naive Bayes"),
        ("churn", "gradient boosting"),
        ("churn", "naive Bayes"),
        ("mortgages", "naive Bayes"),
        ("reviews", "words, naive Bayes"),
        ("CIFAR-100", "DenseNet-BC"),
        *(("CIFAR-10", name) for name in ("DenseNet-121", "ResNet-18", "VGG-19")),
    ):
        assert (of(data, model).helped == "yes").all(), (data, model)
    assert of("mortgages", "support vectors, Platt").advice.isna().all()
    assert (of("diamonds").pvalue <= 0.05).all()
    assert (of("diamonds").after == "within").all()
    assert of("CIFAR-10", "GoogLeNet").advice.isna().all()
    assert of("rain at Niamey").query("pvalue <= 0.05").model.tolist() == ["ENS"]
    assert wild[wild.kind == "quantiles"].advice.isna().all()
    assert wild[wild.kind == "times"].advice.isna().all()
    cox = "breast cancer, recurrence"
    assert (of(cox, "Cox, columns as they are").verdict == "material").all()
    assert (of(cox, "Cox, scaled columns").pvalue > 0.05).all()
    assert (of(cox, "Cox, scaled columns").again == "material").all()
    assert (of("influenza", "FluSight-ensemble").pvalue > 0.05).all()


def test_monitors_are_as_the_page_says():
    from validation._study import RESULTS

    levels = rows_of(RESULTS / "monitor_levels.csv")
    assert len(levels) == 17
    assert all(int(row["datasets"]) >= 1000 and row["verdict"] == "at most α" for row in levels)
    for row in rows_of(RESULTS / "monitor_changes.csv"):
        chance = 3.0 / int(row["datasets"]) ** 0.5  # a run is about exponential
        assert float(row["mean"]) >= float(row["asked"]) * (1.0 - chance)
    delays = {(row["design"], row["method"]): row for row in rows_of(RESULTS / "monitor_delays.csv")}
    for design in {design for design, _ in delays}:
        ours = [delays[design, how] for how in ("ever, α = .05", "change, mean run length 10 000")]
        weekly = delays[design, "weekly exact tests, Bonferroni"]
        assert min(float(row["median_row"]) for row in ours) < float(weekly["median_row"]), design
        assert all(float(row["alarms"]) == 1.0 for row in ours)


def test_times_are_as_the_page_says():
    from support import binomial_limits

    from validation._study import RESULTS

    def share(row, name):
        return int(row[name]) / int(row["datasets"])

    def is_size(row, name):
        return share(row, name) <= binomial_limits(int(row["datasets"]), 0.05, 1e-3)[1]

    ours = ("default", "pit_ad", "d_calibration", "default, limits known")
    sizes = rows_of(RESULTS / "survival_size.csv")
    assert len(sizes) == 3 * 3 * 3
    assert all(is_size(row, name) for row in sizes for name in ours)
    others = rows_of(RESULTS / "survival_others.csv")
    calibrated = [row for row in others if not row["error"]]
    assert all(is_size(row, name) for row in calibrated for name in ("ours", "ours, d_calibration"))
    assert all(share(row, "d_calibration") <= 0.02 for row in calibrated)
    assert all(share(row, "one_calibration") > 0.1 for row in calibrated)
    wrong = [row for row in others if row["error"] and float(row["censored"]) >= 0.5]
    assert all(share(row, "ours, d_calibration") > share(row, "d_calibration") for row in wrong)
    for row in rows_of(RESULTS / "survival_coverage.csv"):
        assert min(share(row, "risk"), share(row, "ratio")) >= 0.96
        assert row["hazards"] != "1.0" or share(row, "beyond 1 point") <= 0.02


AGAIN = {
    "validity": {
        "design": "few rows: Dir(1), m=3, n=12",
        "statistic": "skce_uq",
        "null": "monte_carlo",
    },
    "power_curves": {"alternative": "underconfident, t = 1.25", "statistic": "ecd", "rows": "50"},
    "widmann": {"group": "closed", "alpha": "0.1", "beta": "any", "m": "2", "pi": "0"},
}
TABLES = {"widmann": "widmann_errors.csv"}


@pytest.mark.slow
@pytest.mark.parametrize("study", AGAIN)
def test_rows_are_made_again_by_the_command_on_the_page(study, tmp_path):
    """With as many data sets as the rows of the record have, which may still grow."""
    from validation.__main__ import main
    from validation._study import RESULTS

    (command,) = [each for each in printed() if re.match(f".* {study} .*--results again", each)]
    table = TABLES.get(study, f"{study}.csv")
    there = [row for row in rows_of(RESULTS / table) if AGAIN[study].items() <= row.items()]
    (datasets,) = {row["datasets"] for row in there}
    arguments = shlex.split(command.removesuffix("again"))[3:]
    arguments += [str(tmp_path), "--datasets", datasets, "--no-pictures"]
    assert main(arguments) == 0
    again = rows_of(tmp_path / table)
    for row in (*again, *there):
        row.pop("caltest")
        row["ties"] = round(float(row.get("ties", 0.0)), 4)  # a mean over blocks
    assert again == there
