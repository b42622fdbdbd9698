"""What to cite: the theorem's own source, and the package."""

import ast
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import ratedist as rd
from bounds import all_bounds
from operators import all_aggregates, all_feedbacks, all_operators, all_summed
from ratedist.cluster.other_names import OTHER_NAMES
from ratedist.interfaces.cli import main


def keys(text):
    return re.findall(r"^@[a-z]+{(\w+)", text, re.M)


def test_each_theorem_and_the_package_once():
    text = rd.cite("worst_case_bits", "unbiased_bits", "pasgd_convex_sharp", "worst_case_bits")
    assert keys(text) == ["albasyoni2020", "safaryan2020", "wang2018", "ratedist"]
    assert keys(rd.cite()) == ["ratedist"]


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
    assert "compressor or the key of a source; got 'nobody': " in capsys.readouterr().err


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
    if curvature is not None:
        answers.append(rd.tau_star(**asked, curvature=curvature, hessian_lipschitz=0.01))
        assert answers[-1].theorem == "tau_third_order"
    for answer in answers:
        assert answer.bibtex() == rd.cite(answer.theorem)
        key = answer.statement.reference.split(",")[0]
        assert f"{{{key},\n" in answer.bibtex()
        assert f"{{{key},\n" in rd.cite(key)
    with pytest.raises(ValueError, match="got 'tau_moon': try tau_"):
        rd.cite("tau_moon")
    with pytest.raises(ValueError, match="got 4: see ratedist certify --list"):
        rd.cite(4)


def test_every_theorem_that_the_code_names_can_be_cited():
    """An answer whose theorem is no Bound states it as ``theorem="tau_star"``, or chooses between two such names."""
    named = set()
    for path in sorted(Path(rd.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "theorem":
                chosen = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
                named |= {part.value for part in chosen if isinstance(part, ast.Constant) and part.value}
    assert named >= {"tau_star", "tau_convex", "tau_curved", "tau_third_order", "runtime_model"}
    for name in named:
        assert "@article{" in rd.cite(name)


def test_entries_are_printed_once_and_their_notes_name_what_was_asked_for():
    text = rd.cite("tau_star", "pasgd_runtime", "tau_convex", "pasgd_wall_clock")
    assert keys(text) == ["wang2018", "ratedist"]
    assert re.findall(r"note = {(.*)}", text) == ["Theorem 1; Theorem 2", r"pasgd\_wall\_clock; tau\_convex"]


def test_a_theorem_of_ours_cites_what_it_sharpens():
    text = rd.cite("karimireddy2019", "pasgd_smooth_sharp", "gather_error")
    assert keys(text) == ["karimireddy2019", "wang2018", "ratedist"]
    assert re.findall(r"note = {(.*)}", text) == ["Theorem 1", r"gather\_error; pasgd\_smooth\_sharp"]


def test_every_method_can_be_cited_or_names_no_source():
    methods = {**all_operators(), **all_feedbacks(), **all_aggregates(), **all_summed()}
    for name, method in methods.items():
        if method.sources:
            cited = keys(rd.cite(name))
            assert set(cited[:-1]) & set(method.sources), name
            assert cited[:-1] == list(method.sources) or name in all_bounds()
        else:
            with pytest.raises(ValueError, match=f"{name} names none: cite ratedist alone, by ratedist cite"):
                rd.cite(name)
    assert rd.cite("topk:fraction=0.01") == rd.cite("topk")


def test_the_help_says_what_can_be_cited(capsys):
    with pytest.raises(SystemExit):
        main(["cite", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "bounds (unbiased_bits), of theorems of tau (tau_star), of compressors" in shown
    assert "keys of sources (wang2018)" in shown


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
        own = name.replace("_", r"\_")
        notes = [note for note in re.findall(r"note = {(.*)}", text) if note != own]
        assert all(re.fullmatch(r"(\w+ [\dIVX.]+)( and \w+ [\dIVX.]+)*", note) for note in notes)


def test_no_line_of_an_entry_is_wrapped(capsys):
    longest = max(all_bounds(), key=lambda name: max(map(len, rd.cite(name).splitlines())))
    assert main(["cite", longest]) == 0
    assert capsys.readouterr().out == rd.cite(longest)


@pytest.mark.parametrize(
    ("given", "first"), [("DRIVE", "drive"), ("top-k", "topk"), ("Rand-K", "randomk"), ("PowerSGD", "powersgd"),
                         ("3LC", "terngrad"), ("1-bit Adam", "one_bit_adam"), ("gtopk", "global_topk")]
)  # fmt: skip
def test_names_of_papers_lead_to_the_names_of_the_catalogue(given, first):
    with pytest.raises(ValueError, match=f"got {given!r}: try {first}\\b"):
        rd.cite(given)


def test_every_other_name_belongs_to_a_method():
    methods = {**all_operators(), **all_feedbacks(), **all_aggregates(), **all_summed()}
    assert OTHER_NAMES.keys() <= methods.keys()


def test_an_object_of_ones_own_names_what_to_cite_instead():
    with pytest.raises(
        ValueError, match=r"mine:f is an object of your own: cite its paper, .* ratedist cite unbiased_bits"
    ):
        rd.cite("mine:f")
