"""The guide's blocks run as they are printed, say what the guide says they say, and its wrong example fails."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "check_your_own_compressor.md"
SCREEN = 40  # lines


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def namespace():
    return {"__name__": "guide"}


def run(block, namespace):
    exec(compile(block, str(GUIDE), "exec"), namespace)


def test_first_verdict_takes_fifteen_lines_and_one_screen():
    first = blocks("python")[0]

    assert len([line for line in first.splitlines() if line.strip()]) <= 15
    assert GUIDE.read_text().index(first) < len("\n".join(GUIDE.read_text().splitlines()[:SCREEN]))


def test_first_block_passes_the_honest_function_and_accuses_the_wrong_one_as_shown(namespace, capsys):
    run(blocks("python")[0], namespace)

    printed = " ".join(capsys.readouterr().out.split())
    honest, wrong = blocks("text")[:2]
    for part in (honest, *wrong.splitlines()):
        assert " ".join(part.split()) in printed, printed


@pytest.mark.slow  # fifteen seconds of one core: five checks in the quick profile
def test_block_of_forms_accuses_nobody_and_judges_every_form_exactly(namespace):
    run(blocks("python")[0], namespace)
    run(blocks("python")[1], namespace)

    assert len(namespace["reports"]) == 5
    for name, report in namespace["reports"].items():
        assert report.ok, f"{name}: {report}"
        assert report["exact-marginals"].outcome.name == "PASS"


def test_block_of_the_test_suite_gives_a_test_for_each_operator_and_law():
    space = {"__name__": "guide"}
    run(blocks("python")[2], space)
    (mark,) = space["test_my_compressors"].pytestmark

    names = {case.id for case in mark.args[1]}
    assert "keep_half-exact-marginals" in names
    assert any(name.startswith("QSGD(") and name.endswith("-unbiasedness") for name in names)
    assert any(name.startswith("TopK(") and name.endswith("-sure-contraction") for name in names)
    operator, law = next(case.values for case in mark.args[1] if case.id == "keep_half-output-form")
    space["test_my_compressors"](operator, law)


def test_block_of_the_strategy_is_a_test_that_holds():
    space = {"__name__": "guide"}
    run(blocks("python")[3], space)
    space["test_signs_survive"]()
