"""Logs of language models as packages write them: read, audited by subject and gated; what is refused.

Lines of lm-evaluation-harness are those of its version 0.4.13, logs of inspect those of 0.3.285.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import command, refused, sentence

import caltest
from caltest.files import read, read_with_groups
from caltest.scoring import ece_with_interval

FAST = ["--resamples", 99, "--seed", 1, "--jobs", 1, "--min-rows", 20, "--config", "/dev/null"]
DATE = "2026-11-28T10-35-22.473856"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def question(number, scores, right, subject, **more):
    """A line of samples, as lm-evaluation-harness writes it."""
    return {
        "doc_id": number,
        "doc": {"question": f"q{number}", "choices": ["w", "x"], "answer": right, "subject": subject},
        "target": str(right),
        "arguments": {
            f"gen_args_{k}": {"arg_0": f"q{number}\nAnswer:", "arg_1": f" {'ABCDE'[k]}"}
            for k in range(len(scores))
        },
        "resps": [[[str(score), "False"]] for score in scores],
        "filtered_resps": [[str(score), "False"] for score in scores],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(np.argmax(scores) == right),
    } | more


def harness(subject, n=120, factor=1.0, seed=0, choices=4):
    """Write the samples of a task whose log-likelihoods are so many times as far apart as is right."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(n):
        scores = rng.normal(-5.0, 1.0, choices)
        chance = np.exp(scores) / np.exp(scores).sum()
        right = int(rng.choice(choices, p=chance))
        lines.append(question(number, (factor * scores).tolist(), right, subject))
    return written(f"samples_mmlu_{subject}_{DATE}.jsonl", lines)


def written(name, lines):
    Path(name).write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in lines))
    return name


def answer(name, epoch, mark, confidence, **metadata):
    """A sample of a log, as inspect writes it."""
    score = {"value": mark, "answer": "a", "metadata": confidence, "history": []}
    sample = {"id": name, "epoch": epoch, "input": "?", "target": "a", "scores": {"judged": score}}
    return sample | {"metadata": metadata, "store": {}, "total_time": 0.07}


def inspect_log(name="log.json", n=150, over=0.3, refused=10, seed=0):
    """Write a log of two answers to each question, overconfident in law, some without an answer."""
    rng, samples = np.random.default_rng(seed), []
    for number in range(n):
        subject, chance = ["art", "law", "physics"][number % 3], rng.uniform(0.4, 0.7)
        for epoch in (1, 2):
            stated = f"{100 * chance + 100 * over * (subject == 'law'):.0f}%"
            mark, said = "CI"[int(rng.random() > chance)], {"confidence": stated}
            if len(samples) < refused:
                mark, said = "N", None
            samples.append(answer(f"q{number}", epoch, mark, said, subject=subject))
    return logged(samples, name)


def logged(samples, name="log.json"):
    log = {"version": 2, "status": "success", "eval": {"task": "quiz", "model": "mockllm/model"}}
    Path(name).write_text(json.dumps(log | {"samples": samples}))
    return name


# --- what is found


@pytest.mark.slow
def test_a_subject_of_a_task_of_choices_is_found_and_gated():
    harness("art")
    harness("law", factor=4.0, seed=1)
    files = sorted(Path().glob("samples_*.jsonl"))
    found = command("audit", *files, "--lens", "top_label", "--materiality", 0.1, *FAST, "--json", "-")
    data = json.loads(found.stdout)
    assert (found.exit_code, data["n_samples"], data["groups"]) == (1, 240, ["subject"])
    assert "subject is law" in data["headline"]
    assert "Read as a log of 240 answers to 240 questions; groups: 'subject'" in data["warnings"][0]
    assert command("audit", "samples_mmlu_art_*.jsonl", "--lens", "top_label", *FAST).exit_code == 0


@pytest.mark.slow
def test_a_subject_of_answers_with_refusals_is_found_and_gated():
    path = inspect_log()
    plain = command("audit", path, *FAST)
    refused(plain, "10 of 300 rows have no 'confidence' or no 'right', which --skip-missing leaves out")
    outputs = ["--markdown", "a.md", "--report", "a.html", "--json", "a.json"]
    found = command("audit", path, "--skip-missing", "--materiality", 0.1, *FAST, *outputs)
    said = "10 of 300 rows have no 'confidence' or no 'right', and were left out"
    data = json.loads(Path("a.json").read_text())
    assert found.exit_code == 1
    assert "subject is law" in data["headline"]
    assert (data["n_samples"], data["clusters"], data["groups"]) == (290, 145, ["subject"])
    assert data["premises"][0]["seen"] == said
    assert said in " ".join(found.stdout.split()[:60])
    for name, words in (("a.md", "10 of 300 rows have no"), ("a.html", "In doubt: 10 of 300 rows")):
        assert words in Path(name).read_text().partition("What to do next")[0].replace("\\", "")


def test_a_judge_in_words_against_peoples_verdicts():
    rng = np.random.default_rng(3)
    chance = rng.choice([0.3, 0.6, 0.9], 400)
    subject = np.where(np.arange(400) % 2, "law", "art")
    true = np.where(subject == "law", chance - 0.25, chance)
    words = {0.3: "Low", 0.6: "medium", 0.9: "high"}
    log = pd.DataFrame({"judge": [words[each] for each in chance], "subject": subject})
    log["verdict"] = np.where(rng.random(400) < true, "good", "bad")
    log.loc[[3, 7], "judge"] = ["", "n/a"]
    log.loc[5, "verdict"] = ""
    log.to_csv("judged.csv", index=False)
    scale = "low=0.3,medium=0.6,high=0.9,good=1,bad=0"
    options = ["--columns", "judge", "--label", "verdict", "--group", "subject", "--scale", scale]
    options += ["--statistic", "citl"]
    found = command("audit", "judged.csv", *options, "--skip-missing", "--materiality", 0.05, *FAST)
    assert found.exit_code == 1
    assert "subject is law" in found.stdout
    assert "3 of 400 rows have no 'judge' or no 'verdict', and were left out" in " ".join(
        found.stdout.split()
    )


def test_refusals_are_counted_where_one_test_is_asked_for():
    options = ["--skip-missing", "--statistic", "citl", "--resamples", 99, "--seed", 1]
    tested = command("test", inspect_log(n=60), *options)
    assert tested.exit_code == 1
    assert "In doubt: 10 of 120 rows have no 'confidence' or no 'right'" in tested.stdout


# --- how it is read


def test_choices_are_a_softmax_and_the_target_is_a_place_a_letter_or_what_acc_says():
    lines = [
        question(0, [-1.0, -2.0, -3.0], 2, "law"),
        question(1, [-1.0, -2.0, -3.0], 1, "law", target="B"),
        question(2, [-3.0, -1.0], 1, "art", target=" the same", acc=0.0),
        question(3, [-3.0, -1.0, -9.0, -9.0], 1, "art", acc_mutual_info=1.0, target="x", acc=1.0),
    ]
    written("samples_a.jsonl", lines)
    sample, groups = read_with_groups(["samples_a.jsonl"])
    three = np.exp([-1.0, -2.0, -3.0]) / np.exp([-1.0, -2.0, -3.0]).sum()
    assert sample.rows.classes == ("choice 1", "choice 2", "choice 3")
    np.testing.assert_allclose(sample.rows.probs[:2], [three, three], rtol=1e-15)
    np.testing.assert_allclose(sample.rows.probs[2:, 2], 0.0, atol=0.0)
    assert sample.labels.tolist() == [2, 1, 0, 1]
    assert groups["subject"].tolist() == ["law", "law", "art", "art"]


def test_one_question_of_several_files_is_one_of_each_task_and_what_is_named_goes_before():
    for task in ("a", "b"):
        lines = [question(k, [-1.0, -2.0], k % 2, "law", doc={"level": str(k)}) for k in range(4)]
        written(f"samples_{task}.jsonl", lines)
    sample, groups = read_with_groups(["samples_a.jsonl", "samples_b.jsonl"])
    assert (groups["task"].tolist(), sample.rows.clusters) == (["a"] * 4 + ["b"] * 4, None)
    sample, groups = read_with_groups("samples_*.jsonl", groups=["level"], clusters="task")
    assert (list(groups), sample.rows.clusters.tolist()) == (["level"], [0] * 4 + [1] * 4)


def test_of_two_choices_acc_counts_where_the_target_is_unknown_or_alike():
    alike = {f"gen_args_{k}": {"arg_0": f"q{k}", "arg_1": " same"} for k in range(2)}
    lines = [
        question(0, [-1.0, -2.0], 0, "a", target="same", arguments=alike, acc=0.0),
        question(1, [-1.0, -2.0], 0, "a", target="else", acc=1.0),
        question(2, [-1.0, -2.0], 0, "a", target="B", acc=0.0),
        question(3, [-1.0, -2.0], 0, "a", target="A", acc=None),
    ]
    assert read(written("samples_a.jsonl", lines)).labels.tolist() == [1, 0, 1, 0]


def test_ids_of_two_tasks_are_two_questions():
    for task in ("art", "law"):
        samples = [answer(k, 1, "CI"[k % 2], {"confidence": 0.5 + k / 9}) for k in range(4)]
        log = json.loads(Path(logged(samples)).read_text())
        log["eval"]["task"] = task
        Path(f"{task}.json").write_text(json.dumps(log))
    sample, groups = read_with_groups(["art.json", "law.json"])
    assert (sample.rows.clusters, groups["task"].tolist()) == (None, ["art"] * 4 + ["law"] * 4)


def test_a_table_with_columns_that_are_named_and_a_log_of_sorted_keys_or_folders():
    lines = [question(k, [-1.0, -2.0], k % 2, "law") for k in range(4)]
    written("own.jsonl", [each | {"p": 0.5, "y": k % 2} for k, each in enumerate(lines)])
    assert read("own.jsonl", "y", columns=["p"]).rows.probs[:, 1].tolist() == [0.5] * 4
    for model in ("results/some__Model-3.1-8B", "results/other"):
        Path(model).mkdir(parents=True)
        written(f"{model}/samples_a.jsonl", [dict(sorted(each.items())) for each in lines])
        Path(model, "results.json").write_text("{}")
    sample, groups = read_with_groups("results")
    assert (sample.rows.classes, len(set(groups["model"]))) == (("choice 1", "choice 2"), 2)
    assert read("results/some__Model-3.1-8B").rows.n_samples == 4


def test_marks_and_confidence_of_any_field():
    marks = ["C", "I", 1.0, 0, True, False]
    logged([answer(f"q{k}", 1, mark, {"sure": 90 - k}) for k, mark in enumerate(marks)])
    sample = read("log.json", columns=["sure"], scale=100)
    assert sample.labels.tolist() == [1, 0, 1, 0, 1, 0]
    assert sample.rows.probs[:, 1].tolist() == [(90 - k) / 100 for k in range(6)]
    assert sample.rows.clusters is None


def test_percent_is_read_by_its_sign_and_other_scales_as_they_are_stated():
    stated = ["85%", "5 %", "100%", "0.5"]
    pd.DataFrame({"p": stated, "y": [1, 0, 1, 0]}).to_csv("a.csv", index=False)
    for scale, last in ((1, 0.5), (100, 0.005), ({"0.5": 0.25}, 0.25)):
        assert read("a.csv", scale=scale).rows.probs[:, 1].tolist() == [0.85, 0.05, 1.0, last]
    for name, save in (("b.csv", pd.DataFrame.to_csv), ("b.parquet", pd.DataFrame.to_parquet)):
        save(pd.DataFrame({"p": [8, 0, 10, 5], "y": [1, 0, 1, 0]}), name, index=False)
        assert read(name, scale=10).rows.probs[:, 1].tolist() == [0.8, 0.0, 1.0, 0.5]


def test_a_scale_that_no_number_needs_is_noted():
    samples = [answer(f"q{k}", 1, "CI"[k % 2], {"confidence": 0.5 + k / 9}) for k in range(4)]
    assert "are they fractions" not in str(read(logged(samples)).rows.notes)
    note = "All probabilities are 1 at most, of 100; are they fractions of 1?"
    assert note in read("log.json", scale=100).rows.notes


def test_only_log_likelihoods_are_choices_whatever_fields_are_called():
    fields = {"choice 1": 0.9, "choice A": "no"}
    marks = enumerate("CICI")
    logged([answer(f"q{k}", 1, mark, {"confidence": 0.7}, **fields) for k, mark in marks])
    sample = read("log.json")
    assert sample.rows.probs[:, 1].tolist() == [0.7] * 4
    fields |= {"choice 3": 1, "0": "a"}
    lines = [question(k, [-1.0, -1.0], k % 2, "law", doc=fields) for k in range(4)]
    sample = read(written("samples_a.jsonl", lines))
    assert (sample.rows.classes, sample.rows.probs.tolist()) == (
        ("choice 1", "choice 2"),
        [[0.5, 0.5]] * 4,
    )
    assert read_with_groups("samples_a.jsonl", groups=["0"])[1]["0"].tolist() == ["a"] * 4


def test_rows_that_are_left_are_called_as_they_stand_in_the_file():
    pd.DataFrame({"p": [0.5, None, 0.5, 1.5], "y": [1, 0, None, 0]}).to_csv("a.csv", index=False)
    sentence(lambda: read("a.csv", skip_missing=True), r"row 3 \(counting from 0\) is 1\.5")


# --- what is refused


WRONG = {
    "generated text": (
        lambda: written("samples_a.jsonl", [question(0, [-1.0, -2.0], 0, "a", filtered_resps=["B"])]),
        [], "filtered_resps is ['B'] in row 0 (counting from 0), not a log-likelihood for each choice",
    ),
    "one of two right, and acc says no": (
        lambda: written("samples_a.jsonl", [question(0, [-1.0, -2.0], 0, "a", acc=0.0)]),
        [], "do not say which of 'A', 'B'",
    ),
    "no likelihood": (
        lambda: written("samples_a.jsonl", [question(0, [-np.inf, -np.inf], 0, "a")]),
        [], "in row 0 (counting from 0), of which none is finite",
    ),
    "not a number": (
        lambda: written("samples_a.jsonl", [question(0, [-1.0, np.nan], 0, "a")]),
        [], "or one is NaN; leave it out",
    ),
    **{
        f"{name} of a row": (
            lambda name=name, given=given: written(
                "samples_a.jsonl", [question(0, [-1.0, -2.0], 0, "a", **{name: given})]
            ),
            [], f"row 0 (counting from 0) has no field '{name}' as its package writes it",
        )
        for name, given in (("target", None), ("doc", "text"), ("arguments", [["q", "a"]]))
    },
    "no id": (
        lambda: logged([{"epoch": 1, "scores": {"a": {"value": "C"}}}]),
        [], "row 0 (counting from 0) has no field 'id'",
    ),
    "no model": (
        lambda: Path("a.json").write_text('{"samples": [{"scores": {"a": 1}}]}') and "a.json",
        [], "this log has no field 'eval' as its package writes it",
    ),
    "samples by name": (
        lambda: Path("a.json").write_text('{"samples": {"a": 1}}') and "a.json",
        [], "no list of samples",
    ),
    "packed": (lambda: Path("a.jsonl.gz").write_bytes(b"x") and "a.jsonl.gz", [], "; unpack it."),
    "a word twice": (
        lambda: Path("a.csv").write_text("p,y\na,1\nb,0\n") and "a.csv",
        ["--scale", "a=.5,A=.7"], "--scale is 'a', 'A'; give a word once, in capitals or not",
    ),
    "several right": (
        lambda: written("samples_a.jsonl", [question(0, [-1.0, -2.0, -3.0], 0, "a", acc=0.43)]),
        [], "do not say which of 'A', 'B'",
    ),
    "option without use": (
        lambda: written("samples_a.jsonl", [question(0, [-1.0, -2.0], 0, "a")]),
        ["--label", "subject"], "says itself what is likely and what is right; leave --label out",
    ),
    "scale without use": (
        lambda: written("samples_a.jsonl", [question(0, [-1.0, -2.0], 0, "a")]),
        ["--scale", "100"], "leave --scale out",
    ),
    "sets of a log": (
        lambda: logged([answer("q", 1, "C", {"confidence": 0.5})]),
        ["--sets", "a_", "--level", "0.9"], "leave --sets out",
    ),
    "some percent": (
        lambda: Path("a.csv").write_text("p,y\n85%,1\n1,0\n") and "a.csv",
        [], "column 'p' holds '1' in row 1 (counting from 0), and % elsewhere",
    ),
    "some percent of a log": (
        lambda: logged([answer("q", 1, "C", {"confidence": x}) for x in ("85%", 1)]),
        [], "column 'confidence' holds '1' in row 1 (counting from 0), and % elsewhere",
    ),
    "partly right": (
        lambda: logged([answer("q", 1, "P", {"confidence": 0.5})]),
        [], "the score is 'P' in row 0 (counting from 0), neither right (C or 1) nor wrong (I or 0)",
    ),
    "two scorers": (
        lambda: logged([{"id": 1, "epoch": 1, "scores": {"a": {"value": "C"}, "b": {"value": "I"}}}]),
        [], "the scorers are 'a', 'b'; say which one, with --label",
    ),
    "compressed": (
        lambda: Path("a.eval").write_bytes(b"PK\3\4") and "a.eval",
        [], "write it as JSON: inspect log convert --to json",
    ),
    "no log": (lambda: Path("a.json").write_text("[1]") and "a.json", [], "no log of inspect"),
    "no confidence": (
        lambda: logged([answer("q", 1, "C", {"sure": 0.5})]),
        [], "there is no column 'confidence' of probabilities; besides the labels there are 'model'",
    ),
    "no word": (
        lambda: Path("a.csv").write_text("p,y\nhigh,1\nunsure,0\n") and "a.csv",
        ["--scale", "high=0.9"], "column 'p' holds 'unsure' at row 1 (counting from 0)",
    ),
    "words without a scale": (
        lambda: Path("a.csv").write_text("p,y\nhigh,1\nlow,0\n") and "a.csv",
        ["--columns", "p"], "or say what words are: --scale",
    ),
    "no scale": (
        lambda: Path("a.csv").write_text("p,y\nhigh,1\nlow,0\n") and "a.csv",
        ["--scale", "high"], "--scale is 'high'; give 100 for percent, or words, as in low=0.3",
    ),
    "nothing left": (
        lambda: Path("a.csv").write_text("p,y\n0.5,\n,0\n") and "a.csv",
        ["--skip-missing"], "2 of 2 rows have no 'p' or no 'y', so that no row is left",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(case):
    write, options, said = WRONG[case]
    refused(command("audit", write(), *options, "--config", "/dev/null"), said)


def test_what_is_wrong_from_python():
    Path("a.csv").write_text("p,y\nhigh,1\nlow,0\n")
    sentence(lambda: read("a.csv", scale={"high": 1.5}), "scale of 'high' is 1.5")
    sentence(lambda: read("a.csv", scale=0), "scale is 0; give 100 for percent")
    sentence(lambda: read(["a.csv", "a.csv"]), "several files, and no logs")


# --- the metric


def test_a_metric_is_the_binned_error_its_exact_interval_and_the_p_value_of_a_test():
    data = caltest.simulation.tempered(n_samples=400, alpha=[1.0, 1.0], temperature=0.5, rng=0)
    found = ece_with_interval(data.labels, data.probs[:, 1], rng=0)
    binned = caltest.statistics.ECE(binning=caltest.binning.EqualMass(10))
    result = caltest.test(data.probs[:, 1], data.labels, binned, rng=0)
    assert (found["ece"], found["p_value"]) == (result.statistic, result.pvalue)
    assert 0.0 < found["low"] < found["ece"] < found["high"] < 1.0
    assert found["n"] == 400
    sentence(lambda: ece_with_interval([0, 1], [0.5, 0.5], n_bins=13), "n_bins is 13")
