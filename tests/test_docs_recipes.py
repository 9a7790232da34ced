"""What docs/recipes.md and docs/fix.md show is what happens."""

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from pages import blocks, follow, page
from scipy.special import softmax

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]
RECIPES = page("docs/recipes.md")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def logs():
    """Logs of language models, with the fields that are needed."""
    rng, lines, samples = np.random.default_rng(0), [], []
    for number in range(600):
        scores = rng.normal(-8, 2, size=rng.integers(3, 6))  # three to five choices
        gold = rng.choice(len(scores), p=softmax(scores / 2))
        pairs = [[str(each), str(bool(each == scores.max()))] for each in scores]
        doc = {"subject": ["anatomy", "law", "virology"][number % 3]}
        line = {"doc_id": number, "doc": doc, "target": str(gold), "filtered_resps": pairs}
        lines.append(json.dumps(line))
        subject, knows = ["art", "law", "physics"][number % 3], float(rng.uniform(0.4, 0.7))
        mark = "N" if rng.random() < 0.03 else "C" if rng.random() < knows else "I"
        score = {"value": mark, "metadata": {"confidence": f"{100 * knows:.0f}%"}}
        answer = {"id": f"q{number // 2}", "epoch": 1 + number % 2, "scores": {"judge": score}}
        samples.append(answer | {"metadata": {"subject": subject}})
    Path("samples_mmlu_2026-01-31T12-00-00.jsonl").write_text("\n".join(lines))
    quiz = {"eval": {"task": "quiz", "model": "model-1"}, "samples": samples}
    Path("quiz.json").write_text(json.dumps(quiz))


def test_a_model_is_fixed_and_tested_again():
    follow("docs/fix.md")
    assert Path("fix.png").stat().st_size > 10_000


@pytest.mark.usefixtures("logs")
def test_recipes_do_what_they_show():
    follow("docs/recipes.md")
    assert "<table" in sys.modules["shown"].audit._repr_html_()
    assert Path("recipes.png").stat().st_size > 5_000


def test_what_is_not_run_is_python_and_says_so():
    shown = blocks(RECIPES, "py")
    assert len(shown) == 2
    assert RECIPES.count("(shown, not run)") == len(shown)
    for block in shown:
        ast.parse(block)
