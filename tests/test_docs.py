"""What docs/audit.md and docs/ci.md show is what happens."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pages import ROOT, blocks, commands, made_by, page, rows_of, shown_in
from support import command

import caltest
from caltest.auditing import groups, plan
from caltest.cli._commands import OPTIONS
from caltest.cli._options import load_config
from caltest.exceptions import InputError

pytestmark = pytest.mark.slow

PAGE, CI = page("docs/audit.md"), page("docs/ci.md")
DEFAULTS = inspect.signature(caltest.audit).parameters
MAKE, *OTHERS = blocks(PAGE, "python")


folder, here = made_by(MAKE)


@pytest.fixture
def small(folder, tmp_path, monkeypatch):
    """A folder with some of the predictions, for speed."""
    lines = (folder / "predictions.csv").read_text().splitlines(keepends=True)
    (tmp_path / "predictions.csv").write_text("".join(lines[:400]))
    monkeypatch.chdir(tmp_path)


def test_a_wrong_page_would_be_found():
    assert shown_in("a\n…\nc\n", "a\nb\nc\n")
    assert not shown_in("c\n…\na\n", "a\nb\nc\n")
    assert not shown_in("a\nc\n", "a\nb\nc\n")


def test_the_first_command_prints_what_is_shown():
    for text in (CI, PAGE):
        (shown,) = blocks(text, "text")
        result = command(*(commands(blocks(text, "console")[0])[0]))
        assert (result.exit_code, result.stderr) == (1, "")
        assert shown_in(shown, result.stdout)
    assert Path("report.html").stat().st_size > 10_000


def test_the_other_commands_work():
    for text in blocks(PAGE, "console")[1:]:
        for arguments in commands(text):
            result = command(*arguments)
            assert (result.exit_code, result.stderr) == (1, ""), arguments


def test_python_runs_and_prints_what_its_comments_say(capsys):
    namespace: dict[str, object] = {}
    code = "\n".join([MAKE, *OTHERS, *blocks(CI, "python")])
    exec(compile(code, "audit.md", "exec"), namespace)
    namespace["test_probabilities_mean_what_they_say"]()
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", code)
    assert Path("checks.csv").read_text().count("\n") > 10


def test_the_numbers_in_the_text(folder):
    typed = ["audit", "predictions.csv", "--group", "region", "--group", "age", "--seed", "1"]
    assert "give at least 1,999." in command(*typed, "--alpha", "0.001").stderr
    assert "`--alpha 0.001` takes `--resamples 1999`" in CI
    assert f"fewer than `--min-rows` rows ({DEFAULTS['min_rows'].default})" in PAGE
    assert f"beyond {plan.MOST_HYPOTHESES:,} checks".replace(",", " ") in PAGE
    assert f"drawn from the predictions {DEFAULTS['n_resamples'].default} times" in PAGE
    assert (groups.MOST_VALUES, plan.FEWEST_EVENTS) == (1000, 5)
    assert "A column of more than a thousand different texts is refused" in PAGE
    texts = [f"site {k}" for k in range(1001)]
    assert len(groups.read_groups({"a": texts[:1000]}, 1000)[0].values) == 1000
    with pytest.raises(InputError, match="1,001 different values"):
        groups.read_groups({"a": texts}, 1001)
    assert "more than 20 different numbers" in PAGE
    assert [len(groups.read_groups({"a": list(range(n))}, n)[0].values) for n in (20, 21)] == [20, 5]
    assert "expected fewer than five times" in PAGE


def test_what_it_costs_is_what_was_measured():
    cases = {row["case"]: row for row in rows_of("audit_speed")}
    (cost,) = re.findall(r"## Cost\n\n(.*?)\n\n", PAGE, flags=re.DOTALL)
    default = cases["default"]
    (told,), (memory,) = re.findall(r"(\d+) seconds", cost), re.findall(r"(\d+) MB", cost)
    assert f"{default['hypotheses']} checks and {default['draws']} draws" in cost
    assert 0.5 * float(told) <= float(default["seconds"]) <= 1.5 * float(told)
    assert 0.8 * float(memory) <= float(default["peak_mb"]) <= 1.2 * float(memory)


def test_the_configuration_is_one():
    (content,) = blocks(CI, "toml")
    Path("caltest.toml").write_text(content)
    assert load_config(Path("caltest.toml"), OPTIONS).values["group"] == ("region", "age")


def test_the_workflow_runs_and_keeps_what_it_writes(small):
    steps = yaml.safe_load(blocks(CI, "yaml")[0])["jobs"]["audit"]["steps"]
    by_name = {step["name"]: step for step in steps if "name" in step}
    (arguments,) = commands(by_name["Audit"]["run"])
    assert command(*arguments).exit_code in (0, 1)
    kept = by_name["Report"]["with"]["path"].split()
    assert kept == ["report.html", "junit.xml"]
    assert all(Path(name).exists() for name in (*kept, "summary.md"))
    assert "summary.md" in by_name["Summary"]["run"]
    assert by_name["Summary"]["if"] == by_name["Report"]["if"] == "${{ !cancelled() }}"


def test_the_gitlab_job_runs(small):
    job = yaml.safe_load(blocks(CI, "yaml")[1])["calibration"]
    ((arguments,),) = [found for found in map(commands, job["script"]) if found]
    assert command(*arguments).exit_code in (0, 1)
    assert Path(job["artifacts"]["reports"]["junit"]).exists()


def test_links_lead_somewhere():
    for target, anchor in re.findall(r"\]\(([^)#]+\.md)#?([^)]*)\)", PAGE + CI):
        headings = re.findall(r"^#+ (.*)$", page(f"docs/{target}"), flags=re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]
        assert not anchor or anchor in slugs


def test_what_is_shown_is_typed(tmp_path):
    """Of every page its blocks, as one module: users check the types of what they copy."""
    pytest.importorskip("mypy")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if shown := blocks(path.read_text(encoding="utf-8"), "python"):
            (tmp_path / f"page_{path.parent.name}_{path.stem}.py".lower()).write_text("\n".join(shown))
    examples = sorted((ROOT / "docs" / "examples").glob("*.py"))
    modules = [str(path) for path in (*tmp_path.glob("*.py"), *examples)]
    options = ["--config-file=", "--ignore-missing-imports", "--check-untyped-defs"]
    options.append(f"--cache-dir={tmp_path / 'cache'}")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *modules], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
