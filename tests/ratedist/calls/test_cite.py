"""What to cite: the theorem's own source, and the package."""

import re
from importlib.metadata import version

import pytest

import ratedist as rd
from bounds import all_bounds
from ratedist.cli import main


def test_each_theorem_and_the_package_once():
    text = rd.cite("worst_case_bits", "unbiased_bits", "pasgd_convex_sharp", "worst_case_bits")
    assert re.findall(r"^@[a-z]+{(\w+)", text, re.M) == ["albasyoni2020", "safaryan2020", "ratedist"]
    assert re.findall(r"^@[a-z]+{(\w+)", rd.cite(), re.M) == ["ratedist"]


def test_a_number_cites_its_theorem():
    answer = rd.bits_lower_bound(d=1e9, omega=1)
    assert answer.bibtex() == rd.cite(answer.theorem)
    assert all_bounds()[answer.theorem].reference.key in answer.bibtex()


def test_the_formula_may_be_followed_by_the_number():
    answer = rd.bits_lower_bound(d=1e9, omega=1)
    assert answer.latex(value=True) == answer.latex() + r" = 5 \times 10^{8}\,\mathrm{bit}"
    rounded = rd.bits_lower_bound(d=10, omega=2)
    assert float(re.search(r"approx ([\d.]+)", rounded.latex(value=True))[1]) == pytest.approx(rounded, rel=1e-6)
    with pytest.raises(ValueError, match="value=True needs one number; got 2: index the result first"):
        rd.bits_lower_bound(d=[10, 20], omega=2).latex(value=True)


def test_the_command_prints_what_can_be_pasted(capsys):
    assert main(["cite", "worst_case_bits"]) == 0
    assert capsys.readouterr().out == rd.cite("worst_case_bits")
    assert main(["cite", "nobody"]) == 2
    assert "theorem must be a name of the catalogue; got 'nobody'" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"ratedist {version('ratedist')}\n"
    assert rd.__version__ == version("ratedist")
    assert f"version = {{{version('ratedist')}}}" in rd.cite()
