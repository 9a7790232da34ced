"""What is measured: the list of cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

BANDWIDTH, BINARY_BANDWIDTH = 0.7, 0.2
DRAWS, RANK = 999, 256

Input = Literal["memory", "parquet", "csv", "none"]

#: What the rows of all packages that do the same are called.
BINARY_ESTIMATE = "SKCE_uq, two classes"
BINARY_TEST = "SKCE_uq, two classes, p-value of 999 draws"
FULL_TEST = "SKCE_uq, exact p-value"
LOW_RANK_TEST = "SKCE_uq of rank 256, exact p-value"
ECD_TEST = "ECD, exact p-value"
ECE_TEST = "ECE of the top class, exact p-value"
DEFAULT_TEST = "default (omnibus), exact p-value"
DEFAULT_CSV = f"{DEFAULT_TEST}, from a CSV file"
AUDIT, AUDIT_OF_GROUPS = "audit with defaults", "audit with defaults, 300 groups"
AUDIT_OF_TOP = "audit of the top class"
BY_FEATURES = "audit with defaults, 20 features"
FEW_ROWS, IMPORT = "estimate with defaults", "import caltest"
FIRST_TIME, COMPILED = "the audit of an example, the first time", "the audit of an example"
SPIEGELHALTER, KS, KUIPER = (
    "spiegelhalter, null normal",
    "ks, null brownian",
    "kuiper, null brownian",
)
IN_CLUSTERS, EACH_ALONE, WEIGHTED = (
    f"{DEFAULT_TEST}: signs of clusters of five rows",
    f"{DEFAULT_TEST}: signs of clusters of one row",
    f"{DEFAULT_TEST}: rows with weights",
)
SMOOTH_ECE, TOP_ECE, TOP_MMCE = "smooth ECE", "ECE of the top class", "MMCE², top class"
LOW_RANK_FILE, ECD_FILE = f"{LOW_RANK_TEST}, from a file", f"{ECD_TEST}, from a file"
FIRST_COMMAND = (
    "audit --example digits:random_forest --materiality 0.02 --seed 1 --report report.html"
    " --fail-on never"
)
BINS, DIAGRAM = "bin table", "points of the reliability diagram"
CRPS_NORMALS, CRPS_MEMBERS = "CRPS of normals", "CRPS of 20 members"
D_CALIBRATION, RANKS = "D-calibration of curves", "exact test of ranks among 20 draws"
AUDIT_OF_COLUMNS = "audit with defaults, three columns of groups, 499 draws"
AUDIT_OF_NORMALS, AUDIT_OF_MEMBERS = "audit of normals", "audit of 20 members"
AUDIT_OF_POINTS = "audit of points between known ends"
OF_GROUPS, OF_DRAWS = "audit of groups, * groups", f"{DEFAULT_TEST}, * draws"
FIRST_AUDIT = "first audit of a process, without compiled loops, less the second"
OF_A_FILE, WITH_A_PAGE = "caltest audit of a file of 1 000 rows", "caltest audit of it with a page"
LOW_RANK_STREAM, ECD_STREAM = "SKCE_uq of rank 256, 19 draws, from a file", "ECD, 19 draws, from a file"


@dataclass(frozen=True)
class Case:
    """One measurement.

    Attributes
    ----------
    group, what
        What it belongs to, and what it is; a peer's has the name of ours.
    n, m
        Rows and classes.
    work, options
        The function of `own`, or of `peers`, and its arguments.
    by
        The package that is measured, by the name it is installed by.
    jobs
        Workers; a ratio is of one.
    limit
        Which least time of `limits.least_seconds` it is divided by.
    full
        Whether it is measured with ``--full`` only.
    """

    group: str
    what: str
    n: int
    m: int
    work: str
    options: dict[str, Any] = field(default_factory=dict)
    by: str = "caltest"
    jobs: int = 1
    limit: str = ""
    full: bool = False
    input: Input = "memory"

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """What tells it from all others."""
        return self.what, self.by, self.n, self.m, self.jobs

    def __str__(self) -> str:
        return title(*self.key)

    def quick(self) -> Case:
        """Return the same of a few rows and draws."""
        options = dict(self.options)
        for name, few in (("draws", 19), ("n_resamples", 199), ("n_points", 8)):
            if name in options:
                options[name] = few
        return replace(self, n=min(self.n // 10, 300), m=min(self.m, 20), options=options)


def title(what: str, by: str, n: int, m: int, jobs: int) -> str:
    """Return what a case is called wherever it is named: in the list, and on pages."""
    who = "" if by == "caltest" else f" by {by}"
    sizes = f", n = {n:,}, m = {m}".replace(f"{n:,}", f"{n:,}".replace(",", " ")) if n else ""
    return f"{what}{who}{sizes}{'' if jobs == 1 else f', {jobs} workers'}"


# ------------------------------------------------------------------ ours


def _estimates() -> Iterator[Case]:
    for n, m in ((1_000, 10), (1_000, 1_000), (10_000, 10), (50_000, 10)):
        for kernel, name in (("tv", "TV"), ("gaussian", "Gaussian")):
            for bandwidth, how in ((BANDWIDTH, ""), ("median", ", median heuristic")):
                options = {"statistic": "skce_uq", "kernel": kernel, "bandwidth": bandwidth}
                yield Case(
                    "estimate", f"SKCE_uq, {name}{how}", n, m, "estimate", options, limit="pairs"
                )


_SKCE: dict[str, Any] = {"statistic": "skce_uq", "bandwidth": BANDWIDTH, "draws": DRAWS}
_LOW: dict[str, Any] = _SKCE | {"approximation": "nystrom", "rank": RANK}
_ECD: dict[str, Any] = {"statistic": "ecd", "draws": DRAWS}
_ECE: dict[str, Any] = {"statistic": "ece", "bins": 15, "draws": DRAWS, "lens": "top_label"}
_DEFAULT: dict[str, Any] = {"statistic": None, "draws": DRAWS}


def _exact() -> Iterator[Case]:
    for n, m, jobs in ((1_000, 10, 1), (10_000, 2, 1), (10_000, 10, 1), (10_000, 10, 2)):
        limit = "null" if m > 2 else "draws"  # two classes are one pass, not all pairs
        yield Case("exact", FULL_TEST, n, m, "pvalue", _SKCE, jobs=jobs, limit=limit)
    for n, m, jobs in ((1_000, 10, 1), (10_000, 2, 1), (10_000, 10, 1), (10_000, 10, 2)):
        yield Case("exact", LOW_RANK_TEST, n, m, "pvalue", _LOW, jobs=jobs)
    for n, m in ((1_000, 10), (10_000, 10)):
        yield Case("exact", DEFAULT_TEST, n, m, "pvalue", _DEFAULT)
        yield Case("exact", ECD_TEST, n, m, "pvalue", _ECD, limit="draws")
        yield Case("exact", ECE_TEST, n, m, "pvalue", _ECE, limit="draws")
    for n in (1_000, 10_000):
        moments = _SKCE | {"null": "moments"}
        yield Case("moments", "SKCE_uq, p-value from moments", n, 10, "pvalue", moments)


_FIRST_TIME: dict[str, Any] = {"arguments": FIRST_COMMAND, "compiled": False}
_AUDIT: dict[str, Any] = {"function": "audit"}
_TOP_AUDIT: dict[str, Any] = _AUDIT | {"lenses": "top_label"}


def _defaults() -> Iterator[Case]:
    for n, m, jobs in (
        (4_000, 10, 1),
        (4_000, 10, 2),
        (10_000, 2, 1),
        (100_000, 10, 1),
        (20_000, 1_000, 1),
    ):
        yield Case("default", DEFAULT_TEST, n, m, "pvalue", _DEFAULT, jobs=jobs)
    for n, m in ((100_000, 10), (20_000, 1_000)):
        yield Case("default", AUDIT, n, m, "call", _AUDIT, jobs=2)
    groups = _AUDIT | {"groups": 300}
    yield Case("default", AUDIT_OF_GROUPS, 150_000, 10, "call", groups, jobs=2)
    features = _AUDIT | {"features": 20}
    for n in (10_000, 100_000, 1_000_000):
        yield Case("default", BY_FEATURES, n, 2, "call", features, jobs=2, full=n > 100_000)
    yield Case("default", DEFAULT_CSV, 2_000_000, 10, "from_file", _DEFAULT, full=True, input="csv")


def _overhead() -> Iterator[Case]:
    yield Case("overhead", FEW_ROWS, 100, 10, "estimate", {"statistic": None})
    yield Case("overhead", IMPORT, 0, 0, "import_time", input="none")
    options = {"arguments": FIRST_COMMAND, "compiled": True}
    yield Case("overhead", COMPILED, 0, 0, "command", options, input="none")


def _hundreds() -> Iterator[Case]:
    """Yield hundreds of classes, the quickest first."""
    kuiper = {"statistic": "kuiper", "draws": DRAWS, "lens": "top_label"}
    for what, work, options in (
        ("kuiper of the top class, exact p-value", "pvalue", kuiper),
        (ECE_TEST, "pvalue", _ECE),
        (AUDIT_OF_TOP, "call", _TOP_AUDIT),
        (ECD_TEST, "pvalue", _ECD),
        (LOW_RANK_TEST, "pvalue", _LOW),
        (AUDIT, "call", _AUDIT),
        (DEFAULT_TEST, "pvalue", _DEFAULT),
    ):
        yield Case("hundreds", what, 50_000, 1_000, work, options, jobs=2, full=True)


def _others() -> Iterator[Case]:
    """Yield the package's other questions, as the pages that say what they cost ask them."""
    top = {"lens": "top_label"}
    error = {"function": "estimate_squared_error"}
    for what, n, jobs, options in (
        ("error of the top class", 2_000, 2, error | top),
        ("error of the top class", 10_000, 2, error | top),
        ("error of all classes", 2_000, 2, error),
        (
            "tolerance of the top class",
            100_000,
            1,
            top | {"function": "test", "tolerance": 0.02, "alternative": "over", "n_resamples": DRAWS},
        ),
        ("bounds of the top class", 100_000, 1, top | {"function": "miscalibration_bounds"}),
        ("certificate of the top class", 100_000, 1, top | {"function": "certificate"}),
    ):
        yield Case("others", what, n, 10, "call", options, jobs=jobs)
    ckce = {"statistic": "ckce", "draws": DRAWS}
    yield Case("others", "CKCE, exact p-value", 100_000, 10, "pvalue", ckce, jobs=2)


def _scale() -> Iterator[Case]:
    for jobs in (1, 2):
        yield Case("scale", ECD_TEST, 100_000, 10, "pvalue", _ECD, jobs=jobs, limit="draws")
    yield Case("scale", LOW_RANK_TEST, 100_000, 10, "pvalue", _LOW, jobs=2)
    yield Case("scale", ECE_TEST, 100_000, 10, "pvalue", _ECE, limit="draws")
    for n, null, name in (
        (100_000, "monte_carlo", "KS, exact p-value"),
        (1_000_000, "brownian", "KS, p-value of its limit"),
    ):
        options = {"statistic": "ks", "null": null, "draws": DRAWS}
        yield Case("scale", name, n, 10, "pvalue", options)
    options = {"statistic": "ecd", "null": "moments"}
    yield Case("scale", "ECD, p-value from moments", 1_000_000, 10, "pvalue", options)
    yield Case("scale", LOW_RANK_TEST, 1_000_000, 10, "pvalue", _LOW, jobs=2, full=True)
    yield Case("scale", ECD_TEST, 1_000_000, 10, "pvalue", _ECD, jobs=2, limit="draws", full=True)
    for what, options in ((LOW_RANK_FILE, _LOW), (ECD_FILE, _ECD)):
        yield Case(
            "scale", what, 1_000_000, 10, "from_file", options, jobs=2, full=True, input="parquet"
        )


DEPENDENT = ((1_000, 2), (5_000, 2), (5_000, 10), (3_000, 100), (20_000, 10))


def _dependent() -> Iterator[Case]:
    """Yield signs of clusters, and weights, beside the same test of rows alone."""
    for n, m in DEPENDENT:
        yield Case("dependent", DEFAULT_TEST, n, m, "pvalue", _DEFAULT)
        for what, more in (
            (IN_CLUSTERS, {"null": "cluster_signs", "size": 5}),
            (EACH_ALONE, {"null": "cluster_signs", "size": 1}),
            (WEIGHTED, {"weighted": True}),
        ):
            yield Case("dependent", what, n, m, "pvalue", _DEFAULT | more)


def _growth() -> Iterator[Case]:
    tv = {"statistic": "skce_uq", "kernel": "tv", "bandwidth": BANDWIDTH}
    for n in (20_000, 40_000):
        yield Case("growth", "SKCE_uq, TV", n, 10, "estimate", tv, limit="pairs")
    for n in (12_500, 25_000, 50_000):
        yield Case("growth", LOW_RANK_TEST, n, 10, "pvalue", _LOW)
        yield Case("growth", DEFAULT_TEST, n, 10, "pvalue", _DEFAULT)
        yield Case("growth", AUDIT, n, 10, "call", _AUDIT, jobs=2)
    for m in (10, 30, 100, 300):
        yield Case("growth", AUDIT, 5_000, m, "call", _AUDIT, jobs=2)
    for size in (10, 30, 100, 300):
        groups = _AUDIT | {"groups": size}
        yield Case("growth", OF_GROUPS.replace("*", f"{size}"), 50_000, 2, "call", groups, jobs=2)
    for size in (250, 500, 1_000, 2_000):
        draws = _DEFAULT | {"draws": size}
        yield Case("growth", OF_DRAWS.replace("*", f"{size}"), 20_000, 10, "pvalue", draws)
    for n in (20_000, 40_000, 80_000):
        yield Case("growth", FULL_TEST, n, 2, "pvalue", _SKCE, limit="draws")
    for n in (25_000, 50_000, 200_000):
        yield Case("growth", ECD_TEST, n, 10, "pvalue", _ECD, limit="draws")
    for what, options, full in ((LOW_RANK_STREAM, _LOW, True), (ECD_STREAM, _ECD, False)):
        for n in (1_000_000, 2_000_000, 4_000_000):  # the reader holds up to some 10⁶ rows
            few = options | {"draws": 19}
            yield Case("growth", what, n, 10, "from_file", few, full=full, input="parquet")


# ------------------------------------------------------------------ ours and the peers'


def _peers() -> Iterator[Case]:
    options: dict[str, Any]
    skce: dict[str, Any] = {"bandwidth": BINARY_BANDWIDTH}
    ours = skce | {"statistic": "skce_uq"}
    boot = skce | {"draws": DRAWS, "method": "bootstrap"}
    for n in (1_000, 5_000, 10_000):
        yield Case("peers", BINARY_ESTIMATE, n, 2, "estimate", ours)
        yield Case("peers", BINARY_ESTIMATE, n, 2, "probcal_skce", skce, by="probcal")
        for jobs in (1, 2):
            test = ours | {"draws": DRAWS}
            yield Case("peers", BINARY_TEST, n, 2, "pvalue", test, jobs=jobs, limit="draws")
        yield Case("peers", BINARY_TEST, n, 2, "probcal_skce_test", boot, by="probcal")
    linear, n = "SKCE_ul, two classes, normal limit", 100_000
    options = skce | {"statistic": "skce_ul", "null": "normal"}
    yield Case("peers", linear, n, 2, "pvalue", options)
    options = skce | {"draws": 1, "method": "asymptotic"}
    yield Case("peers", linear, n, 2, "probcal_skce_test", options, by="probcal")
    for n in (1_000, 10_000):
        yield Case("peers", TOP_MMCE, n, 10, "estimate", {"statistic": "mmce"})
        yield Case("peers", TOP_MMCE, n, 10, "netcal_mmce", by="netcal")
    options = {"statistic": "ece", "bins": 15, "lens": "top_label"}
    yield Case("peers", TOP_ECE, 50_000, 10, "estimate", options)
    yield Case("peers", TOP_ECE, 50_000, 10, "netcal_ece", {"bins": 15}, by="netcal")
    yield Case("peers", TOP_ECE, 50_000, 10, "mapie_top_label_ece", {"bins": 15}, by="mapie")
    yield Case("peers", FULL_TEST, 300, 10, "pvalue", _SKCE, limit="null")
    yield Case("peers", FULL_TEST, 300, 10, "hyppo_mmd", {"draws": DRAWS}, by="hyppo")
    yield Case("peers", SMOOTH_ECE, 10_000, 2, "estimate", {"statistic": "smooth_ece"})
    yield Case("peers", SMOOTH_ECE, 10_000, 2, "relplot_smece", by="relplot")
    yield Case("peers", SMOOTH_ECE, 10_000, 2, "probcal_smooth_ece", by="probcal")
    yield from _classical(10_000)
    for case in _classical(50_000):
        if case.what in (SPIEGELHALTER, KS, KUIPER) and case.by in ("caltest", "mapie"):
            yield case


def _classical(n: int) -> Iterator[Case]:
    for statistic, null, peers in (
        ("ks", "brownian", [("mapie", "mapie_ks", {})]),
        ("kuiper", "brownian", [("mapie", "mapie_kuiper", {})]),
        (
            "spiegelhalter",
            "normal",
            [
                ("mapie", "mapie_spiegelhalter", {}),
                ("probcal", "probcal_spiegelhalter", {}),
                (
                    "calzone-tool",
                    "calzone_tests",
                    {"metric": "SpiegelhalterZ", "name": "SpiegelhalterZ"},
                ),
                ("pycaleva", "pycaleva_tests", {"test": "z_test"}),
            ],
        ),
        (
            "hosmer_lemeshow",
            "chi2",
            [
                ("probcal", "probcal_hosmer_lemeshow", {}),
                ("calzone-tool", "calzone_tests", {"metric": "HL-C", "name": "HL-C"}),
                ("pycaleva", "pycaleva_tests", {"test": "hosmerlemeshow"}),
            ],
        ),
        ("cox", "chi2", [("probcal", "probcal_cox", {})]),
    ):
        what = f"{statistic}, null {null}"
        yield Case("peers", what, n, 2, "pvalue", {"statistic": statistic, "null": null})
        for by, work, options in peers:
            yield Case("peers", what, n, 2, work, options, by=by)


def _speed() -> Iterator[Case]:
    """Yield what is compared with the fastest peer, and what was aimed at."""
    for n in (1_000, 10_000, 1_000_000):
        for case in _classical(n):
            if case.what in (SPIEGELHALTER, KS, KUIPER) and case.by in ("caltest", "mapie"):
                yield replace(case, group="speed")
    for n in (1_000, 100_000):
        for what, work, peer, by in (
            (BINS, "bin_table", "calibration_curve", "scikit-learn"),
            (DIAGRAM, "diagram", "calibration_curve", "scikit-learn"),
        ):
            yield Case("speed", what, n, 2, work)
            yield Case("speed", what, n, 2, peer, by=by)
        for what, of, function, statistic, peer, by in (
            (CRPS_NORMALS, "normals", "estimate", "crps", "normals", "scoringrules"),
            (CRPS_MEMBERS, "members", "estimate", "crps", "members", "scoringrules"),
            (D_CALIBRATION, "times", "estimate", "d_calibration", "curves", "SurvivalEVAL"),
        ):
            options: dict[str, Any] = {"of": of, "function": function, "statistic": statistic}
            yield Case("speed", what, n, 2, "numbers", options)
            yield Case("speed", what, n, 2, peer, by=by)
    of_ranks = {"of": "posterior", "function": "test", "statistic": "pit_ks"}
    yield Case("speed", RANKS, 1_000, 2, "numbers", of_ranks)
    yield Case("speed", RANKS, 1_000, 2, "ranks", by="sbi")
    three = _AUDIT | {"columns": True, "n_resamples": 499}
    for n in (10_000, 100_000, 1_000_000):
        yield Case("speed", AUDIT_OF_COLUMNS, n, 2, "call", three, jobs=2)
    for what, of, n in (
        (AUDIT_OF_NORMALS, "normals", 100_000),
        (AUDIT_OF_MEMBERS, "members", 100_000),
        (AUDIT_OF_POINTS, "points", 100_000),
        (AUDIT_OF_POINTS, "points", 1_000_000),
    ):
        yield Case("speed", what, n, 2, "numbers", {"of": of, "function": "audit"}, jobs=2)
    yield Case("speed", AUDIT, 100_000, 10, "call", _AUDIT, jobs=2)
    yield Case("speed", DEFAULT_TEST, 20_000, 1_000, "pvalue", _DEFAULT)
    yield Case("speed", AUDIT, 20_000, 1_000, "call", _AUDIT, jobs=2)
    yield Case("speed", DEFAULT_TEST, 1_000_000, 10, "pvalue", _DEFAULT, jobs=2)
    for n in (1_000_000,):
        what = f"{DEFAULT_TEST}, from a file"
        yield Case("speed", what, n, 2, "from_file", _DEFAULT, jobs=2, input="parquet")
    yield Case("speed", FIRST_AUDIT, 0, 0, "first_audit", input="none")
    for what, page in ((OF_A_FILE, False), (WITH_A_PAGE, True)):
        yield Case("speed", what, 0, 0, "audit_of_file", {"page": page}, input="none")
    yield Case("speed", FIRST_TIME, 0, 0, "command", _FIRST_TIME, input="none")


def cases() -> tuple[Case, ...]:
    """Return all cases; one that two groups want is measured once."""
    found: dict[tuple[str, str, int, int, int], Case] = {}
    for group in (
        _speed, _overhead, _estimates, _exact, _defaults, _scale, _dependent, _others, _hundreds,
        _growth, _peers,
    ):  # fmt: skip
        for case in group():
            found.setdefault(case.key, case)
    return tuple(found.values())


def wanted(names: Sequence[str] = (), *, full: bool = False, quick: bool = False) -> tuple[Case, ...]:
    """Return the cases of some groups, or whose names contain some text, in the order of the list.

    A ratio needs both its sides: with a peer's case goes ours.
    """
    of_all = [case for case in cases() if full or not case.full]
    chosen = [case for case in of_all if not names or any(_named(case, name) for name in names)]
    needed = {(case.what, case.n, case.m) for case in chosen if case.by != "caltest"}
    kept = [
        case
        for case in of_all
        if case in chosen or (case.by == "caltest" and (case.what, case.n, case.m) in needed)
    ]
    if not quick:
        return tuple(kept)
    return tuple({case.quick().key: case.quick() for case in kept}.values())


def _named(case: Case, name: str) -> bool:
    return name.lower() in (case.group, case.by) or name.lower() in case.what.lower()
