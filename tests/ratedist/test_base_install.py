"""The distribution without extras: bounds and the calculator work, and what needs an extra names the command."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bounds.extras import EXTRAS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
PACKAGES = {"sklearn": "scikit-learn"}  # import name -> name in the index, where they differ
THROUGH = {"starlette": "fastapi", "pydantic": "fastapi", "h11": "uvicorn"}  # what one brings along
TAU = "--workers 16 --step_s 0.08 --bits 8.192e8 --L 1 --sigma2 1 --eta 0.01 --gap 1 --time_s 600"


HIDING = """
import sys

class Hidden:  # an entry None of sys.modules would stop libraries that look there
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def without_extras(code, *arguments):
    """Run Python where nothing can be imported that an extra brings."""
    line = f"{HIDING.replace('EXTRAS', repr(tuple(EXTRAS)))}\n{code}"
    return subprocess.run(
        [sys.executable, "-c", line, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


CLIS = {"ratedist": "ratedist.interfaces.cli", "gpu_validation": "gpu_validation.cli"}


def command(package, *arguments):
    return without_extras(f"from {CLIS[package]} import main\nsys.exit(main(sys.argv[1:]))", *arguments)


def needs(requirement):
    return requirement.partition(">")[0]


def test_every_extra_brings_what_it_is_named_for():
    assert not {needs(r) for r in PROJECT["dependencies"]} & {PACKAGES.get(name, name) for name in EXTRAS}
    for module, extra in EXTRAS.items():
        brought = {needs(r) for r in PROJECT["optional-dependencies"][extra]}
        name = THROUGH.get(module, module)
        assert PACKAGES.get(name, name) in brought, module


def test_bounds_and_limits_of_the_calculator_need_no_extra():
    code = (
        "import bounds, ratedist as rd\n"
        "from bounds.limits import worst_case_bits\n"
        "assert round(worst_case_bits(alpha=0.1, d=10**6)) == 1660974\n"
        "assert worst_case_bits.enclose(alpha='0.1', d=10**6).lo > 1660973\n"
        "print(float(rd.bits_lower_bound(d=1e9, omega=1.0)), rd.cite('worst_case_bits') != '')\n"
    )
    result = without_extras(code)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == ["500000000.0", "True"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("bits --d 1e9 --omega 1", "500,000,000 bits"),
        pytest.param(f"tau {TAU}", "no stragglers  every 23 local steps", marks=pytest.mark.thorough),
        pytest.param("solve --bits 2e6 --omega 1", "d", marks=pytest.mark.thorough),
        pytest.param("outer --eta 0.1 --tau 30 --L 1 --mu 0.001", "curvatures", marks=pytest.mark.thorough),
        pytest.param("cite worst_case_bits", "@", marks=pytest.mark.thorough),
        pytest.param("--help", "exit status", marks=pytest.mark.thorough),
    ],
)
def test_commands_about_limits_need_no_extra(arguments, words):
    result = command("ratedist", *arguments.split())
    assert (result.returncode, result.stderr) == (0, "")
    assert words in result.stdout


@pytest.mark.parametrize(
    ("package", "arguments", "sentence"),
    [
        ("ratedist", "check scaled_sign", "ratedist check: this command needs torch, which is not installed"),
        ("gpu_validation", "run quick", "gpu-validation: quick needs torch, which is not installed"),
        pytest.param("ratedist", "operators", "ratedist operators: this command needs", marks=pytest.mark.thorough),
        pytest.param("gpu_validation", "list", "gpu-validation: list needs", marks=pytest.mark.thorough),
    ],
)
def test_a_command_without_its_extra_is_one_sentence_and_status_2(package, arguments, sentence):
    result = command(package, *arguments.split())
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(sentence)
    assert line.endswith('pip install "ratedist[operators]"')


def test_a_name_without_its_extra_is_one_sentence():
    code = (
        "import operators, ratedist as rd, operators.laws\n"
        "for call in (lambda: operators.QSGD, lambda: rd.measure('qsgd:4', [1.0]), lambda: operators.laws.check):\n"
        "    try:\n        call()\n    except ImportError as error:\n        print(error)\n"
    )
    lines = without_extras(code).stdout.splitlines()
    assert [line.split(" needs ")[0] for line in lines] == ["operators", "operators", "operators.laws"]
    assert all(line.endswith('not installed: pip install "ratedist[operators]"') for line in lines)
