"""What to cite: the theorem's own source, and the package."""

import re
from importlib.metadata import version

import pytest

import ratedist as rd
from bounds import all_bounds
from ratedist.interfaces.cli import main


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
    assert "  version = {" in rd.cite()  # the same one: tests/test_release.py


@pytest.mark.parametrize("curvature", [None, "convex", 0.5])
def test_every_name_that_an_answer_prints_can_be_cited(curvature):
    cluster = rd.Cluster(workers=4, step_s=1, compute="constant")
    asked = {"eta": 0.05, "L": 1, "sigma2": 1, "gap": 1, "time_s": 600, "cluster": cluster, "bits": 0}
    answers = [rd.tau_star(**asked, curvature=curvature), rd.error_bound(**asked, tau=2, curvature=curvature)]
    answers += [rd.runtime(cluster, tau=2, bits=0), rd.bits_lower_bound(d=10, omega=1), rd.solve(d=10, omega=1)]
    for answer in answers:
        assert answer.bibtex() == rd.cite(answer.theorem)
        key = answer.statement.reference.split(",")[0]
        assert f"{{{key},\n" in answer.bibtex()
        assert f"{{{key},\n" in rd.cite(key)
    with pytest.raises(ValueError, match="theorem must be a name of the catalogue; got 'tau_moon'"):
        rd.cite("tau_moon")


def test_entries_can_be_pasted_into_a_paper():
    for name in all_bounds():
        text = rd.cite(name)
        for entry in text.split("\n\n"):
            (title,) = re.findall(r"^  title = (.*),$", entry, re.M)
            assert title.startswith("{{")
            assert title.endswith("}}")
            assert re.search(r"^  year = \{\d{4}\},$", entry, re.M)
            assert ("  eprint = " in entry) == ("  url = {https://arxiv.org/abs/" in entry)
            assert entry.count("{") == entry.count("}")
        assert all(re.fullmatch(r"(\w+ [\dIVX.]+)( and \w+ [\dIVX.]+)*", n) for n in re.findall(r"note = {(.*)}", text))


def test_no_line_of_an_entry_is_wrapped(capsys):
    longest = max(all_bounds(), key=lambda name: max(map(len, rd.cite(name).splitlines())))
    assert main(["cite", longest]) == 0
    assert capsys.readouterr().out == rd.cite(longest)
