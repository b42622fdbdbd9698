"""The decorator and the command-line option of pytest."""

import subprocess
import sys
import textwrap

import pytest

from operators import Identity, TopK
from operators.laws import Budget, parametrize_with_checks
from operators.laws.check import LAWS
from operators.laws.parametrize import LawOf
from operators.laws.pytest_plugin import load

from .mutants import MUTANTS

pytest_plugins = ["pytester"]
QUICK = Budget.quick().untimed()
BIASED = next(m.wrong for m in MUTANTS if m.what == "2 % shrink")


@parametrize_with_checks([Identity(), TopK(k=1)], budget=QUICK, seed=1)
def test_decorated_test_runs_one_law_on_one_operator(operator, law):
    law(operator)


def test_ids_are_readable_and_laws_that_do_not_apply_are_left_out():
    mark = parametrize_with_checks([TopK(k=1)]).mark
    ids = [parameter.id for parameter in mark.args[1]]

    assert "TopK(fraction=None, k=1)-sure-contraction" in ids
    assert not any(name.endswith("-unbiasedness") for name in ids)


def test_expected_failure_carries_its_reason_and_must_fail():
    mark = parametrize_with_checks([BIASED], expected_failures=lambda op: {"exact-marginals": "shrinks by design"}).mark
    marked = {p.id: p.marks for p in mark.args[1] if p.marks}

    assert [m.kwargs for m in marked[next(iter(marked))]] == [{"reason": "shrinks by design", "strict": True}]
    assert len(marked) == 1


def test_failing_law_raises_with_the_verdict_and_a_line_that_reproduces_it():
    law = next(law for law in LAWS if law.name == "exact-marginals")
    with pytest.raises(AssertionError, match=r"FAIL  exact-marginals: E C\(x\)[\s\S]*reproduce: operators.laws.check"):
        LawOf(law, None, QUICK, 7)(BIASED)


@pytest.fixture
def project(pytester):
    pytester.makepyfile(
        compressors_of_a_user=textwrap.dedent(
            """
            from bounds.claims import StrictlyContractive
            from operators import TopK

            good = TopK(k=1)

            def wrong(x):
                return x / 2

            wrong.claim = StrictlyContractive(0.1)
            number = 3
            """
        ),
        test_other="def test_other(): pass",
    )
    return pytester


def test_option_judges_an_operator_and_collects_nothing_else(project):
    result = project.runpytest_inprocess("--operator", "compressors_of_a_user:good", "--operator-budget", "quick", "-v")

    result.stdout.fnmatch_lines(["*compressors_of_a_user:good*sure-contraction PASSED*"])
    assert "test_other" not in result.stdout.str()
    assert result.ret == 0


def test_option_reports_the_verdict_of_a_wrong_function(project):
    result = project.runpytest_inprocess("--operator", "compressors_of_a_user:wrong", "--operator-budget", "quick")

    result.stdout.fnmatch_lines(["*FAIL  sure-contraction: |C(x) - x|^2 = 0.25*claimed at most 0.1*", "*reproduce: *"])
    assert result.ret == 1


@pytest.mark.parametrize("specification", ["no_such_module:x", "compressors_of_a_user:number"])
def test_option_that_names_no_compressor_is_a_usage_error(project, specification):
    result = project.runpytest_inprocess("--operator", specification)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--operator*"])


@pytest.mark.parametrize("specification", ["operators", "operators:nothing", "operators.laws:", ":x"])
def test_specification_that_cannot_be_loaded_is_a_usage_error(specification):
    with pytest.raises(pytest.UsageError, match="--operator"):
        load(specification)


def test_specification_loads_instances_and_builds_classes():
    assert load("operators:Identity") == Identity()
    assert callable(load("operators.laws.check:check"))


def test_without_the_option_the_plugin_changes_nothing(project):
    result = project.runpytest_inprocess()
    result.assert_outcomes(passed=1)


def test_plugin_imports_nothing_heavy():
    code = (
        "import sys, operators.laws.pytest_plugin\n"
        "heavy = {'torch', 'numba', 'numpy', 'scipy', 'sympy', 'hypothesis'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
