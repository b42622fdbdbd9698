"""The notebooks say what their code says: text outputs are made again, and every figure has its finding before it."""

import ast

import nbformat
import pytest
from nbclient import NotebookClient
from pages import DOCS

NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
VARIES = "varies"  # the tag of a cell whose output holds seconds, paths or counts that depend on them
SVG, TEXT = "image/svg+xml", "text/plain"


def read(path):
    return nbformat.read(path, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell):
    """What a cell prints, then what its last line is; figures, pages and logs left out."""
    printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
    values = [o.data[TEXT] for o in cell.outputs if o.output_type == "execute_result" and SVG not in o.data]
    return [printed, *values]


def has_figure(cell):
    return any(SVG in output.get("data", {}) for output in cell.outputs)


def changed(committed, again):
    """Sources of the cells that say something else now."""
    pairs = zip(code(committed), code(again), strict=True)
    return [now.source for old, now in pairs if VARIES not in old.metadata.get("tags", ()) and texts(old) != texts(now)]


def test_there_are_six():
    assert {path.stem for path in NOTEBOOKS} == {"bits", "compressor", "gradient", "run", "time", "workers"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_was_run_in_order_and_every_figure_has_its_finding(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    assert not any(output.output_type == "error" for cell in code(notebook) for output in cell.outputs)
    assert any(has_figure(cell) for cell in code(notebook))
    for before, cell in zip(notebook.cells, notebook.cells[1:], strict=False):
        if cell.cell_type == "code" and has_figure(cell):
            assert before.cell_type == "markdown"
            assert before.source.rstrip().endswith(":") or len(before.source) > 100
        if cell.cell_type == "code":
            ast.parse(cell.source)
    assert path.stat().st_size < 100_000


def test_another_number_would_be_noticed():
    committed, wrong = read(NOTEBOOKS[0]), read(NOTEBOOKS[0])
    assert not changed(committed, wrong)
    cell = next(cell for cell in code(wrong) if any("text" in output for output in cell.outputs))
    cell.outputs[0].text = cell.outputs[0].text.replace("0", "1", 1)
    assert changed(committed, wrong) == [cell.source]


@pytest.mark.thorough
@pytest.mark.timeout(400)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_says_it_again(path, tmp_path):
    committed, again = read(path), read(path)
    NotebookClient(again, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()

    assert not changed(committed, again)
    assert [has_figure(cell) for cell in code(again)] == [has_figure(cell) for cell in code(committed)]
