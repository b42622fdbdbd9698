"""Every block of code in the documentation runs, or is checked for syntax where it needs several machines."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, blocks, pages

RUNS = re.compile(r"exec\(compile|subprocess\.|torch\.distributed\.run")


def elsewhere():
    """Page -> the test file that names it and runs its scripts: those that need ranks, files or namespaces."""
    texts = {path: path.read_text() for path in sorted(DOCS.parent.glob("tests/**/*.py")) if path != Path(__file__)}
    running = {path: text for path, text in texts.items() if RUNS.search(text)}
    return {
        page: path
        for page in pages()
        for path, text in running.items()
        if re.search(rf"(?<!\w){Path(page).name}", text)
    }


ELSEWHERE = elsewhere()
SLOW = {
    "start.md",
    "tutorials/proof.md",
    "guides/add_an_operator.md",
    "guides/plan_for_your_cluster.md",
}
MARK_OF_A_LIST = re.compile(r"\s*(?:[-+*]|\d+\.)\s")
LANGUAGES = {"bash", "console", "math", "pycon", "python", "sh", "text", "toctree"}
WITH_PYTHON = [page for page in pages() if {"python", "pycon"} & {block.language for block in blocks(page)}]
HERE = [page for page in WITH_PYTHON if page not in ELSEWHERE]
COMMANDS = {"gpu-validation", "pytest", "ratedist", "torchrun", "python3", "pip", "make", "."}


def run_page(page):
    """Execute the blocks of a page in one namespace; what it shows must be what it prints."""
    space = {"__name__": "page"}
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.code, page, "exec"), space)
        elif block.language == "pycon":
            examples = doctest.DocTestParser().get_doctest(block.code, space, page, page, 0)
            failures = []
            runner.run(examples, out=failures.append, clear_globs=False)
            assert not failures, "".join(failures)
            space.update(examples.globs)


@pytest.mark.parametrize("page", [pytest.param(p, marks=[pytest.mark.slow] if p in SLOW else []) for p in HERE])
def test_code_of_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    run_page(page)


def test_scripts_that_need_ranks_run_elsewhere():
    with_ranks = {
        page
        for page in WITH_PYTHON
        for block in blocks(page)
        if block.language == "python" and re.search(r"init_process_group|restart import join|run_ranks", block.code)
    }
    assert len(with_ranks) >= 4
    assert with_ranks <= set(ELSEWHERE)


@pytest.mark.parametrize("page", pages())
def test_blocks_of_a_page_are_of_a_known_kind_and_of_right_syntax(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page}: say what {block.language} is"
        if block.language == "python":
            compile(block.code, page, "exec")
        elif block.language in ("bash", "sh"):
            found = subprocess.run(["bash", "-n"], input=block.code, capture_output=True, text=True, check=False)
            assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("page", pages())
def test_commands_of_a_page_exist(page):
    for block in blocks(page):
        if block.language == "sh":
            lines = re.sub(r"\\\n", " ", block.code).splitlines()
            assert {line.split()[0] for line in lines if line} <= COMMANDS
            for line in lines:
                if line.startswith("ratedist run"):
                    assert_preset_exists(line.split()[2])


def assert_preset_exists(name):
    from gpu_validation.studies import all_presets

    assert name in all_presets()


@pytest.mark.slow  # a minute: the conformance kit, twice
@pytest.mark.timeout(600)
def test_commands_of_the_guide_to_operators_judge_the_operator_of_the_page(tmp_path):
    page = "guides/add_an_operator.md"
    (script,) = [block.code for block in blocks(page) if block.language == "python"]
    (commands,) = [block.code for block in blocks(page) if block.language == "sh"]
    (tmp_path / "coin.py").write_text(script)

    for command in commands.splitlines():
        program = Path(sys.executable).parent / command.split()[0]
        found = subprocess.run(
            [str(program), *command.split()[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stdout + found.stderr


def cut_formulas(text):
    """Lines that begin a list although a formula of the paragraph is still open: both are shown as they are written."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        dollars = 0
        for line in paragraph.splitlines():
            if dollars % 2 and MARK_OF_A_LIST.match(line):
                yield line
            dollars += line.count("$")


def test_no_formula_is_cut_by_the_mark_of_a_list():
    assert list(cut_formulas("a sum $2 (1\n- 1/m)$ of")) == ["- 1/m)$ of"]
    assert [*cut_formulas("- $a$\n- $b$"), *cut_formulas("$a - b$\n\n- c $d$")] == []
    cut = {str(page): [*cut_formulas(page.read_text())] for page in DOCS.rglob("*.md") if "_build" not in page.parts}
    assert {page: lines for page, lines in cut.items() if lines} == {}
