"""Options from a file: found where they should be, and every wrong one named."""

from pathlib import Path

import pytest

from caltest.cli._commands import OPTIONS
from caltest.cli._options import load_config
from caltest.exceptions import InputError

#: A value of every option, as it is written and as it is read.
READ = {
    "label": ('"truth"', "truth"), "columns": ('["cat", "dog, owl"]', ("cat", "dog, owl")),
    "mean": ('"forecast"', "forecast"), "sd": ('"error"', "error"), "truth": ('"t.csv"', "t.csv"),
    "variance": ('"squared error"', "squared error"), "quantiles": ('"q*"', "q*"),
    "time": ('"days"', "days"), "time-unit": ('"day"', "day"),
    "survival-at": ('["365=s365"]', ("365=s365",)), "incidence": ('"cif_*"', "cif_*"),
    "interpolation": ('"step"', "step"), "follow-up": ('"end"', "end"), "members": ('"run_"', "run_"),
    "where": ('["target=rain"]', ("target=rain",)), "logits": ("true", True),
    "scale": ("100", "100"), "skip-missing": ("true", True), "sets": ('"in_"', "in_"),
    "lower": ('"low"', "low"), "upper": ('"high"', "high"), "level": ('"0.9"', "0.9"),
    "point": ('"yhat"', "yhat"), "functional": ('"expectile:0.7"', "expectile:0.7"),
    "low": ("0", 0.0), "high": ("100", 100.0), "symmetric": ("false", False),
    "unit": ('"EUR"', "EUR"),
    "claims": ('"size"', "size"), "calibration-rows": ("300", 300),
    "group": ('["region", "age"]', ("region", "age")), "weights": ('"w"', "w"),
    "feature": ('"size"', ("size",)), "features": ('"x_*"', ("x_*",)),
    "order": ('"day"', "day"), "clusters": ('"patient"', "patient"), "blocks": ('"7d"', "7d"),
    "sampling-rate": ('["0=0.01"]', ("0=0.01",)),
    "intersections": ("1", 1), "event": ('"readmission"', "readmission"), "alpha": ("0.01", 0.01),
    "materiality": ("0.02", 0.02), "materiality-ratio": ("1.25", 1.25),
    "materiality-low": ("0.02", 0.02), "materiality-high": ("0", 0.0), "tolerance": ("0.02", 0.02),
    "lens": ('"top_label"', ("top_label",)), "statistic": ('["omnibus"]', ("omnibus",)),
    "rounding": ("0.05", 0.05), "correction": ('"holm"', "holm"), "guaranteed": ("true", True),
    "min-rows": ("50", 50), "resamples": ("999", 999), "seed": ("1", 1), "jobs": ("2", 2),
    "report": ('"report.html"', Path("report.html")), "markdown": ('"report.md"', Path("report.md")),
    "json": ('"-"', Path("-")), "junit": ('"junit.xml"', Path("junit.xml")), "title": ('"T"', "T"),
    "date": ('"2026-11-22"', "2026-11-22"), "fail-on": ('"never"', "never"),
}  # fmt: skip
EVERYTHING = "".join(f"{name} = {written}\n" for name, (written, _) in READ.items())
MEANS = {name: means for name, (_, means) in READ.items()}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory of its own, below one that may hold a configuration."""
    folder = tmp_path / "project" / "sub"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def written(path, content):
    path.write_text(content, encoding="utf-8")
    return path


# --- where options are read


def test_every_option_at_the_top_of_a_file_of_ones_own(here):
    found = load_config(written(Path("caltest.toml"), EVERYTHING), OPTIONS)
    assert found.values == MEANS
    assert set(MEANS) == set(OPTIONS)
    assert found.place == "caltest.toml"


def test_a_table_of_pyproject_toml(here):
    content = f'[project]\nname = "x"\n[tool.other]\nalpha = 7\n[tool.caltest]\n{EVERYTHING}'
    found = load_config(written(Path("pyproject.toml"), content), OPTIONS)
    assert found.values == MEANS
    assert found.place == "pyproject.toml [tool.caltest]"
    assert load_config(None, OPTIONS) == found


def test_the_nearest_pyproject_toml_that_has_the_table(here):
    written(here.parent.parent / "pyproject.toml", "[tool.caltest]\nalpha = 0.1\n")
    outer = written(here.parent / "pyproject.toml", "[tool.caltest]\nalpha = 0.2\n")
    written(here / "pyproject.toml", "[tool.other]\nalpha = 0.3\n")
    written(here / "caltest.toml", "alpha = 0.4\n")
    found = load_config(None, OPTIONS)
    assert found.values == {"alpha": 0.2}
    assert found.place == f"{outer} [tool.caltest]"


def test_a_file_that_is_named_is_the_only_one(here):
    written(here / "pyproject.toml", "[tool.caltest]\nalpha = 0.1\nseed = 1\n")
    assert load_config(written(here / "a.toml", "seed = 2\n"), OPTIONS).values == {"seed": 2}
    assert load_config(written(here / "empty.toml", ""), OPTIONS).values == {}


def test_nothing_found(here):
    assert load_config(None, OPTIONS).values == {}
    assert load_config(None, OPTIONS).place is None


def test_underscores_are_dashes(here):
    found = load_config(written(Path("a.toml"), 'min_rows = 5\nfail_on = "found"\n'), OPTIONS)
    assert found.values == {"min-rows": 5, "fail-on": "found"}


def test_columns_as_they_are_typed(here):
    found = load_config(written(Path("a.toml"), "columns = 'a, b,\"c, d\"'\n"), OPTIONS)
    assert found.values["columns"] == ("a", "b", "c, d")


# --- wrong input


WRONG = {
    "unknown": ("alhpa = 0.1", "there is no option 'alhpa'; did you mean 'alpha'? Choices: label,"),
    "unlike any": ("rg = 1", "there is no option 'rg'; choices: label, columns, "),
    "of no file": ('example = "digits:naive_bayes"', "there is no option 'example'"),
    "a table": ("[audit]\nalpha = 1", "there is no option 'audit'"),
    "twice": ("min-rows = 1\nmin_rows = 2", "the option 'min-rows' is given twice"),
    "text for a number": ('alpha = "x"', "alpha is 'x'; give a number."),
    "boolean for a number": ("tolerance = true", "tolerance must be a text or a number."),
    "text for a flag": ('logits = "yes"', "logits is 'yes'; give True or False."),
    "not a level": ("alpha = 5", "alpha is 5.0; give a level between 0 and 1, such as 0.05."),
    "nan": ("alpha = nan", "alpha is nan; give a level between 0 and 1"),
    "fraction": ("resamples = 99.5", "resamples is '99.5'; give a whole number."),
    "too small": ("resamples = 0", "resamples is 0; give a positive whole number such as 999."),
    "negative seed": ("seed = -1", "seed is -1; give a whole number from 0 on."),
    "several": ('label = ["a", "b"]', "label must be a text or a number."),
    "a table among texts": ("lens = [{}]", "lens must be a text, or a list of texts."),
    "date": ("report = 2026-01-01", "report must be a text or a number."),
    "too large": (f"tolerance = 1{'0' * 400}", "tolerance must be a text or a number."),
    "too many digits": (f"label = 0x{'f' * 9000}", "label must be a text or a number."),
    "too many cores": (
        "jobs = 100000",
        "jobs is 100000; give how many workers (at most 1,024), or -1 for all cores.",
    ),
}


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_named(here, content, message):
    for name, head in (("a.toml", ""), ("pyproject.toml", "[tool.caltest]\n")):
        if "[" in content and content.startswith("[") and head:
            content = content.replace("[audit]", "[tool.caltest.audit]")
        with pytest.raises(InputError) as caught:
            load_config(written(Path(name), head + content), OPTIONS)
        place = f"{name} [tool.caltest]" if head else name
        assert str(caught.value).startswith(f"{place}: {message}")
        assert str(caught.value).endswith(".")


@pytest.mark.parametrize("content", ["[tool]\ncaltest = 3", "[tool.other]\n"])
def test_a_named_file_without_the_table(here, content):
    with pytest.raises(InputError, match=r"there is no table \[tool.caltest\]; add it, or leave"):
        load_config(written(Path("pyproject.toml"), content), OPTIONS)


@pytest.mark.parametrize("named", [True, False])
def test_files_that_are_no_toml(here, named):
    path = Path("pyproject.toml")
    chosen = path if named else None
    written(path, "alpha = = 1")
    with pytest.raises(InputError, match=r"^pyproject.toml: the file is not valid TOML: .*line 1.*; "):
        load_config(chosen, OPTIONS)
    path.write_bytes("a = 'é'".encode("latin-1"))
    with pytest.raises(InputError, match=r"pyproject.toml: the file is not UTF-8 text"):
        load_config(chosen, OPTIONS)


@pytest.mark.parametrize(
    ("value", "reason"), [("1" * 5000, "Exceeds the limit"), ("[" * 20_000, "maximum recursion")]
)
def test_values_that_no_reader_takes(here, value, reason):
    with pytest.raises(InputError, match=f"^a.toml: the file is not valid TOML: {reason}"):
        load_config(written(Path("a.toml"), f"seed = {value}"), OPTIONS)


def test_files_that_cannot_be_read(here):
    with pytest.raises(InputError, match=r"a.toml: there is no such file"):
        load_config(Path("a.toml"), OPTIONS)
    with pytest.raises(InputError, match=r"this is a directory; give one of the files"):
        load_config(here, OPTIONS)


def test_a_working_directory_that_is_gone(here):
    here.rmdir()
    assert load_config(None, OPTIONS).values == {}
