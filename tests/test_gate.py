"""`assert_calibrated`: passes, fails readably, and does not take wrong input for a finding."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from support import command, some_fast

import caltest
from caltest.exceptions import InputError

FAST = {"lenses": "top_label", "statistics": "ks", "n_resamples": 99}


@pytest.fixture(scope="module")
def data():
    """Calibrated predictions of three classes, their labels, the same sharpened, and groups."""
    rng = np.random.default_rng(1)
    right = rng.dirichlet(np.ones(3), size=300)
    labels = (rng.random((300, 1)) > right.cumsum(axis=1)[:, :-1]).sum(axis=1)
    wrong = right**4 / (right**4).sum(axis=1, keepdims=True)
    return right, wrong, labels, rng.choice(["a", "b"], 300)


def test_a_calibrated_model_passes_and_its_audit_is_returned(data):
    right, _, labels, groups = data
    found = caltest.assert_calibrated(right, labels, groups=groups, **FAST)
    expected = caltest.audit(right, labels, groups=groups, rng=0, **FAST)
    assert isinstance(found, caltest.Audit)
    assert found.summary() == expected.summary()


def test_a_finding_fails_with_all_that_helps(data):
    _, wrong, labels, groups = data
    with pytest.raises(AssertionError) as caught:
        caltest.assert_calibrated(wrong, labels, groups={"side": groups}, alpha=0.1, **FAST)
    expected = caltest.audit(wrong, labels, groups={"side": groups}, alpha=0.1, rng=0, **FAST)
    first, *rest = str(caught.value).split("\n\n")
    p = f"p = {expected.pvalue:.2g} at alpha = 0.1"
    assert first == f"error found, {p}: {expected.headline}"
    assert "\n\n".join(rest[:-1]) == expected.summary().rstrip()
    assert rest[-1] == f"To repeat it: {expected.call}"
    assert "rng=0" in expected.call


def test_a_tolerance_is_said(data):
    _, wrong, labels, _ = data
    with pytest.raises(AssertionError, match=r"are wrong by more than 1 point\.\n"):
        caltest.assert_calibrated(wrong, labels, tolerance=0.01, lenses="top_label")
    caltest.assert_calibrated(wrong, labels, tolerance=0.9, lenses="top_label")


def test_it_says_the_same_again_unless_asked_otherwise(data):
    right, _, labels, _ = data
    assert [caltest.assert_calibrated(right, labels, **FAST).seed for _ in range(2)] == [0, 0]
    assert caltest.assert_calibrated(right, labels, rng=5, **FAST).seed == 5


def test_wrong_input_is_no_finding(data):
    right, _, labels, _ = data
    with pytest.raises(InputError, match="alpha is 7"):
        caltest.assert_calibrated(right, labels, alpha=7)
    with pytest.raises(InputError):
        caltest.assert_calibrated(right, labels[:-1])
    with pytest.raises(TypeError, match="'tolerence'"):
        caltest.assert_calibrated(right, labels, tolerence=0.1)


# ------------------------------------------------------------------ one gate in four places


#: Verdict and whether an error was found, the shift of the predictions, the limit.
GATES = {
    "material": (0.15, {"materiality": 0.02}), "likely": (0.15, {"materiality": 0.15}),
    "undecided, found": (0.15, {"materiality": 0.175}),
    "undecided": (0.0, {"materiality": 0.005}), "within, found": (0.15, {"materiality": 0.5}),
    "within": (0.0, {"materiality": 0.3}), "found": (0.15, {}), "not found": (0.0, {}),
}  # fmt: skip
FAILING = {
    "never": set(),
    "found": {"material", "likely", "undecided, found", "within, found", "found"},
    "material": {"material"},
    "likely": {"material", "likely"},
    "undecided": {"material", "likely", "undecided, found", "undecided"},
}


@pytest.fixture
def shifted(tmp_path, monkeypatch):
    """A working folder with predictions of class 1 and their labels, by shift."""
    monkeypatch.chdir(tmp_path)
    found = {}
    for by in (0.0, 0.15):
        p = np.tile(np.linspace(0.3, 0.8, 10), 60)
        labels = (np.random.default_rng(1).random(600) < p - by).astype(int)
        found[by] = p, labels
        pd.DataFrame({"p": p, "label": labels}).to_csv(f"{by}.csv", index=False)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", some_fast(GATES, "material", "undecided", "within, found", "found"))
def test_the_gate_fails_alike_in_all_four_places(shifted, kind):
    by, limit = GATES[kind]
    options = {"statistics": "citl", "n_resamples": 99, **limit}
    audit = caltest.audit(*shifted[by], rng=0, **options)
    assert audit.verdict == kind.partition(",")[0]
    assert audit.rejected == (by > 0.0)
    default = "likely" if limit else "found"
    asked = [f"--materiality={each}" for each in limit.values()]
    for fail_on in (None, *FAILING):
        if fail_on in ("material", "likely", "undecided") and not limit:
            continue
        fails = kind in FAILING[fail_on or default]
        assert audit.fails(fail_on) == fails
        with pytest.raises(AssertionError) if fails else nullcontext() as caught:
            returned = caltest.assert_calibrated(*shifted[by], fail_on=fail_on, **options)
            assert returned.verdict == audit.verdict
        assert not fails or audit.headline in str(caught.value)
        for text in (caltest.report.to_junit(audit, fail_on=fail_on), None):
            if text is None:  # that of the command, with its status
                gate = [] if fail_on is None else ["--fail-on", fail_on]
                arguments = (f"{by}.csv", "--columns", "p", "--statistic", "citl", "--resamples", 99)
                done = command("audit", *arguments, "--seed", 0, *asked, *gate, "--junit", "j.xml")
                assert done.exit_code == (1 if fails else 0), done.output
                text = Path("j.xml").read_text(encoding="utf-8")
            (suite,) = ElementTree.fromstring(text)
            assert (int(suite.get("failures")) > 0) == fails
            assert len(suite.findall("testcase/failure")) == int(suite.get("failures"))


@pytest.mark.parametrize("fail_on", ["material", "undecided"])
def test_a_gate_by_a_limit_needs_one_before_any_work(shifted, monkeypatch, fail_on):
    def begun(*_, **__):
        raise RuntimeError("too late")

    audit = caltest.audit(*shifted[0.0], statistics="citl", n_resamples=99, rng=0)
    needs = f"{fail_on!r} needs a limit; give materiality=0.02, say, or fail_on='found'"
    for call in (audit.fails, lambda fail_on: caltest.report.to_junit(audit, fail_on=fail_on)):
        with pytest.raises(InputError, match=needs):
            call(fail_on)
    monkeypatch.setattr("caltest.auditing.audits.audit", begun)
    monkeypatch.setattr("caltest.files.formats._lines", begun)
    with pytest.raises(InputError, match=needs):
        caltest.assert_calibrated(*shifted[0.0], fail_on=fail_on)
    done = command("audit", "missing.csv", "--fail-on", fail_on, "--junit", "j.xml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"Error: --fail-on {fail_on} needs a limit; give --materiality 0.02, say, or --fail-on found.\n"
    )
    assert not Path("j.xml").exists()


def test_an_unknown_gate_is_named(shifted):
    with pytest.raises(InputError, match="'undecide'; did you mean 'undecided'"):
        caltest.assert_calibrated(*shifted[0.0], fail_on="undecide", materiality=0.1)


@pytest.mark.slow
def test_pytest_shows_the_line_of_the_test_and_the_summary(tmp_path):
    (tmp_path / "test_model.py").write_text(
        "import caltest\n"
        "def test_model():\n"
        "    digits = caltest.datasets.load_digits_predictions('naive_bayes')\n"
        "    caltest.assert_calibrated(digits.probs, digits.labels, lenses='top_label')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_model.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1
    assert "AssertionError: error found, p = 0.001 at alpha = 0.05: The model's" in done.stdout
    assert "What to do next" in done.stdout
    assert "test_model.py:4: AssertionError" in done.stdout
    assert "engine.py" not in done.stdout
