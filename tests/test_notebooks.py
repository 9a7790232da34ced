"""A notebook, run from the first cell to the last: each result shows itself, and draws itself."""

import base64
from xml.etree import ElementTree

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

pytestmark = pytest.mark.slow

RESULTS = {
    "test": "caltest.test(digits.probs, digits.labels, 'ks', rng=1)",
    "bounds": "caltest.miscalibration_bounds(digits.probs, digits.labels, rng=1)",
    "certificate": "caltest.certificate(digits.probs, digits.labels)",
    "comparison": "caltest.compare(models, digits.labels, 'ecd')",
    "estimate": "caltest.estimate_squared_error("
    "digits.probs, digits.labels, 'top_label', 'binning', pvalue='none', rng=1)",
    "power": "caltest.power(caltest.planning.pilot(digits.probs, overconfidence=0.05), [50, 100], "
    "'ecd', n_datasets=20, rng=1)",
    "line": "caltest.recalibration(digits.probs, digits.labels)",
    "audit": "caltest.audit(digits.probs, digits.labels, lenses='top_label', n_resamples=199, rng=1)",
}
WITHOUT_PICTURE = {"line", "audit", "certificate", "estimate"}
PICTURES = {
    "reliability": "caltest.ReliabilityDisplay.from_predictions(digits.probs, digits.labels, rng=1);"
}
START = """%matplotlib inline
import caltest
digits = caltest.datasets.load_digits_predictions("naive_bayes")
other = caltest.datasets.load_digits_predictions("platt_svm")
models = {"naive_bayes": digits.probs, "platt_svm": other.probs}
"""


@pytest.fixture(scope="module")
def outputs():
    """What every cell shows, by its name: kinds of data, and what they are."""
    cells = {"start": START}
    for name, call in RESULTS.items():
        cells[name] = f"{name} = {call}\n{name}"
        if name not in WITHOUT_PICTURE:
            cells[f"{name}.plot"] = f"{name}.plot();"
    cells |= PICTURES
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(each) for each in cells.values()]
    )
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    found = {}
    for name, cell in zip(cells, notebook.cells, strict=True):
        found[name] = {
            kind: data for each in cell.outputs for kind, data in each.get("data", {}).items()
        }
        streams = [each for each in cell.outputs if each.output_type == "stream"]
        assert not streams, (name, streams)  # no warning, and nothing printed
    return found


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_shows_a_sentence_and_a_table(name, outputs):
    assert len(outputs[name]["text/plain"].splitlines()) == 1
    if name == "audit":  # the first screen of its report
        assert "points too" in outputs[name]["text/html"]
        return
    page = ElementTree.fromstring(f"<div>{outputs[name]['text/html']}</div>")
    assert len(page.find("p/strong").text) > 10
    assert len(list(page.iter("tr"))) >= 3
    assert all(len(list(row)) == 2 for row in page.iter("tr"))


@pytest.mark.parametrize(
    "name", [*(f"{each}.plot" for each in RESULTS if each not in WITHOUT_PICTURE), *PICTURES]
)
def test_a_picture_is_seen(name, outputs):
    picture = base64.b64decode(outputs[name]["image/png"])
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5000
