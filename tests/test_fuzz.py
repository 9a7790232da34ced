"""Whatever a function or a command is given: a result, or one line that says what is wrong.

Every kind has so many cases, from a fixed seed. `-m fuzz --fuzz-minutes 60` goes on with new
seeds instead, and tells all failures that it finds.
"""

import time

import fuzz_alignment
import fuzz_calls
import fuzz_commands
import fuzz_files
import numpy as np
import pytest
from fuzz_values import bad_pairs, good_pairs, sources
from fuzzing import Broken, Call, Case, Hunt
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

# The hunt looks at warnings itself.
pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("default")]

_READERS = {
    "caltest.files.read": {},
    "caltest.files.read_with_groups": {
        "groups": sources("['g']", "'g'", "['x']", "['g', 'g']", "['label']")
    },
    "caltest.files.scan": {},
    "(lambda path, **k: caltest.test(caltest.files.scan(path, **k), None, 'ece', n_resamples=19))": {},
}


@st.composite
def file_calls(draw):
    """Draw a file, mostly damaged, and a function that reads it."""
    name, content = draw(fuzz_files.files())
    function = draw(st.sampled_from(list(_READERS)))
    options = {
        "label": sources("'label'", "'label'", "None", "'a'", "'x'", "2"),
        "columns": sources("['a', 'b']", "['a', 'b']", "None", "'a'", "[]", "['a', 'a']"),
        **_READERS[function],
    }
    given = {key: draw(of) for key, of in options.items() if draw(st.sampled_from([0, 0, 1]))}
    return Call(function, (("", repr(name)), *given.items()), ((name, content),))


#: By kind: cases, and how many of them in the usual run, which takes two minutes of one core in all.
KINDS: dict[str, tuple[SearchStrategy[Case], int]] = {
    "right data, odd options": (fuzz_calls.data_calls(good_pairs()), 700),
    "odd data": (fuzz_calls.data_calls(bad_pairs(), most=1), 1000),
    "models": (fuzz_calls.model_calls(), 250),
    "rows and names in another order": (fuzz_alignment.aligned_calls(), 500),
    "files in Python": (file_calls(), 700),
    "files in commands": (fuzz_commands.read_files(), 200),
    "command lines": (fuzz_commands.command_lines(), 200),
    "processes": (fuzz_commands.processes(), 4),
    "signals": (fuzz_commands.stopped(), 3),
}


@pytest.fixture(autouse=True)
def quiet(pictures, monkeypatch):
    """Neither colours nor a width of the terminal, and no state of numpy's."""
    monkeypatch.setenv("RUST_BACKTRACE", "0")  # of panics in polars, which are many lines
    for name in ("FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def minutes(request):
    return request.config.getoption("--fuzz-minutes")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_or_one_line(kind, minutes):
    if minutes is not None:
        pytest.skip("--fuzz-minutes runs all kinds at once")
    strategy, examples = KINDS[kind]
    hunt = Hunt()
    hunt.run(strategy, examples, seed=0)
    assert hunt.cases > examples / 2
    assert hunt.unusable < hunt.cases / 2
    assert not hunt.found, hunt.report()


def test_for_as_long_as_you_like(minutes, capsys):
    if minutes is None:
        pytest.skip("--fuzz-minutes says for how long")
    hunt, end, seeds = Hunt(), time.monotonic() + 60 * minutes, np.random.SeedSequence()
    while time.monotonic() < end:
        for strategy, examples in KINDS.values():
            before = len(hunt.found)
            hunt.run(strategy, max(examples // 10, 1), int(seeds.spawn(1)[0].generate_state(1)[0]))
            if len(hunt.found) > before:
                with capsys.disabled():
                    for key in list(hunt.found)[before:]:
                        print(f"\n{hunt.cases} cases: {key}\n{hunt.found[key][0]}"[:2000], flush=True)  # noqa: T201
            if time.monotonic() > end:
                break
    with capsys.disabled():
        print(f"\n{hunt.report()}".encode("utf-8", "backslashreplace").decode())  # noqa: T201
    assert not hunt.found


# --- the hunt itself


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("(lambda x: 1 / x)", "ZeroDivisionError"),
        ("(lambda x: float('nan'))", "a result that is no number"),
        ("(lambda x: print(x))", "it prints"),
        ("(lambda x: __import__('warnings').warn('w'))", "UserWarning"),
        ("(lambda x: open('left', 'w').close())", "files changed"),
    ],
)
def test_what_breaks_the_rule_is_found(source, what):
    with pytest.raises(Broken) as caught:
        Call(source, (("", "0"),)).run()
    assert caught.value.what.startswith(what)
