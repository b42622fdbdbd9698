"""The command line as a user meets it: every example of --help, tables and JSON, exit codes, one-line errors."""

import json
import shlex
import subprocess
import sys

import numpy as np
import pytest
import torch

import ratedist as rd
from ratedist.calls import all_calls
from ratedist.interfaces.cli import main
from ratedist.interfaces.parser import SERVE, build

EXAMPLES = {name: call.command.examples for name, call in all_calls().items() if call.command is not None}
EXAMPLES[SERVE.name] = SERVE.command.examples
LINES = [f"{name} {line}" for name, lines in EXAMPLES.items() for line in lines if name != "serve"]
TRIAL = rd.OperatorTrial("qsgd:levels=4", (2.0, 3.0), (0.5, 0.25), (), rd.Codec(1e-9, 1e-9))
PILOT = rd.Pilot(
    d=1000,
    ranks=1,
    device="cpu",
    threads=1,
    step_s=((0.1, 0.2, 0.1),),
    losses=(3.0, 2.0, 1.0),
    small_norms2=(2.0, 3.0),
    large_norms2=(1.0, 1.5),
    taus=(1, 2, 8),
    survival=((0.9, 0.8, 0.5), (0.8, 0.7, 0.4)),
    secants=((1.0, 1.0, 1.0), (2.0, 1.0, 1.0)),
    operators=(TRIAL,),
    links=(),
    memory_bytes=2**20,
    falls=((0.1, 0.18, 0.5), (0.11, 0.2, 0.55)),
    bends=((0.01, 0.04, 0.5), (0.012, 0.05, 0.6)),
)
FAILS = {"check my_compressor:halve --omega 0.1 --budget quick --seed 1": 1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with a gradient, a compressor and a pilot in it."""
    np.save(tmp_path / "gradient.npy", np.random.default_rng(0).standard_normal(2000).astype(np.float32))
    (tmp_path / "my_compressor.py").write_text(
        "def halve(x):\n    return x / 2\n\nhalve.bits = 32\n\nclass Box:\n    half = halve\n"
    )
    (tmp_path / "pilot.json").write_text(json.dumps(PILOT.to_dict()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_compressor", raising=False)
    return tmp_path


@pytest.mark.every(3)
@pytest.mark.parametrize("line", LINES)
def test_every_example_of_the_help_runs(line, folder, capsys):
    assert main(shlex.split(line)) == FAILS.get(line, 0)
    out, err = capsys.readouterr()
    assert out
    assert not err


@pytest.mark.every(3)
@pytest.mark.parametrize("line", [line for line in LINES if "--json" not in line and "--list" not in line])
def test_every_example_has_json_too(line, folder, capsys):
    main([*shlex.split(line), "--json"])

    def constant(name):
        raise AssertionError(f"{name} is no JSON")

    assert json.loads(capsys.readouterr().out, parse_constant=constant)


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_shows_the_examples(name, capsys):
    with pytest.raises(SystemExit) as done:
        build().parse_args([name, "--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    for example in EXAMPLES[name]:
        assert f"  ratedist {name} {example}\n" in text


def test_json_is_what_python_gives(capsys):
    assert main(["bits", "--d", "1e3", "--omega", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    here = rd.bits_lower_bound(d="1e3", omega="1")
    assert (found["value"], found["lo"], found["hi"]) == (here, here.lo, here.hi)
    assert found["theorem"] == "unbiased_bits"


def test_options_may_be_written_with_dashes(capsys):
    line = "error --workers 4 --step-s 0.1 --L 1 --sigma2 1 --eta .05 --gap 1 --tau 8 --time-s 3600 --bits 0 --json"
    assert main(line.split()) == 0
    cluster = rd.Cluster(workers=4, step_s=0.1)
    here = rd.error_bound(L=1, sigma2=1, eta=0.05, gap=1, tau=8, time_s=3600, cluster=cluster, bits=0)
    assert json.loads(capsys.readouterr().out)["value"] == here


def test_several_values_give_a_table(capsys):
    assert main(["bits", "--d", "1000", "--omega", "1", "3"]) == 0
    out = capsys.readouterr().out
    assert "500.0" in out
    assert "207.5187" in out


def test_infinities_are_kept(capsys):
    assert main(["operators", "--json"]) == 0
    found = {entry["operator"]: entry for entry in json.loads(capsys.readouterr().out)["operators"]}
    assert found["identity"]["limit"] == "Infinity"


def test_nothing_feasible_is_status_1(capsys):
    assert main(["plan", "--d", "10", "--workers", "2", "--operators", "signsgd", "--target", "0.1"]) == 1
    assert "not covered" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bits --d -3 --omega 1", "ratedist bits: d must satisfy 1 <= d, an integer; got d = -3: give"),
        ("bits --d 10 --omega nan", "omega must satisfy 0 < omega, finite; got omega = 'nan': give"),
        ("bits --d 10 --alpha 1.5", "alpha must satisfy 0 < alpha < 1; got alpha = 1.5: give"),
        ("plan --d 10 --workers 2 --operators warp --target 0.1", "unknown operator 'warp'; it must be"),
        ("certify worst_case --d 1", "got 'worst_case': try worst_case_bits"),
        ("certify", "certify needs a theorem"),
        ("certify worst_case_bits 3", "symbols are given as options; got '3'"),
        ("certify worst_case_bits --d", "--d needs a value"),
        ("check nowhere:nothing", "'nowhere:nothing' must be an operator or package.module:object; No module"),
        ("check my_compressor:third", "no attribute 'third'"),
        ("check my_compressor:halve --omega 1 --alpha 0.5", "claim omega or alpha, not both"),
        ("check my_compressor:Box", "expected an instance"),
        ("measure missing.npy", "file must exist; got missing.npy"),
        ("measure my_compressor.py", "file must end in .npy or .pt"),
        ("tau --workers 0 --L 1 --sigma2 1 --eta 1 --gap 1 --time_s 1", "workers must satisfy"),
    ],
)
def test_bad_input_is_one_line_and_status_2(line, words, folder, capsys):
    assert main(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert not out
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["walk"], ["bits"], ["bits", "--d", "1", "--colour", "3"], []])
def test_usage_errors_are_one_line_and_status_2(arguments):
    command = [sys.executable, "-m", "ratedist", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1


def gradient(path):
    assert main(["measure", str(path), "--operators", "topk:0.5", "--draws", "1", "--json"]) == 0


def test_gradients_come_from_arrays_tensors_lists_and_dictionaries(folder, capsys):
    x = torch.arange(1.0, 7.0)
    np.save("a.npy", x.numpy())
    torch.save(x, "b.pt")
    torch.save([x[:2], x[2:]], "c.pt")
    torch.save({"w": x[:3].reshape(1, 3), "step": torch.tensor(3), "b": x[3:]}, "d.pt")
    found = []
    for name in ("a.npy", "b.pt", "c.pt", "d.pt"):
        gradient(name)
        found.append(json.loads(capsys.readouterr().out))
    assert all(record["operators"] == found[0]["operators"] for record in found)
    assert found[0]["d"] == 6


class Bomb:
    """Unpickling this would write a file."""

    def __reduce__(self):
        return open, ("exploded", "w")


def test_nothing_is_unpickled(folder, capsys):
    torch.save(Bomb(), "bomb.pt")
    np.save("bomb.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    (folder / "text.npy").write_text("no array")
    (folder / "text.pt").write_text("no tensor")
    torch.save("words", "words.pt")
    for name in ("bomb.pt", "bomb.npy", "text.npy", "text.pt", "words.pt"):
        assert main(["measure", name]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (folder / "exploded").exists()


@pytest.mark.thorough
def test_measure_covers_one_operator_of_every_kind(folder, capsys):
    from operators import all_operators

    assert main(["measure", "gradient.npy", "--draws", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["operators"]
    assert {row["operator"].partition(":")[0] for row in found} == set(all_operators())


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_says_what_every_option_is(name):
    (commands,) = (action for action in build(name)._actions if action.dest == "command")
    parser = commands.choices[name]
    assert [action.dest for action in parser._actions if not action.help] == []


def test_what_is_summed_on_the_way_has_a_name(capsys):
    assert main(["allreduce", "--d", "1e6", "--m", "8", "--operator", "shared_scale:12,block=256"]) == 0
    table = capsys.readouterr().out
    assert "shared_scale:word_bits=12,block=256 summed on the way" in table
    assert "shared_scale_error" in table

    line = "plan --d 1e6 --workers 8 --operators sign_vote shared_scale:12 --target 0.1 --json --codec"
    assert main([*line.split(), "shared_scale:12=2e-9,1e-9", "sign_vote=0,0"]) == 0
    best, other = json.loads(capsys.readouterr().out)["ranking"]
    assert (best["operator"], best["exchange"]) == ("shared_scale:word_bits=12", "sum")
    assert best["encode_s"] == pytest.approx(2e-3)
    assert (other["operator"], other["feasible"]) == ("sign_vote", False)

    assert main(["allreduce", "--d", "1e6", "--m", "8", "--operator", "shared_scale:4"]) == 2
    assert "got word_bits = 4 for m = 8 ranks" in capsys.readouterr().err
