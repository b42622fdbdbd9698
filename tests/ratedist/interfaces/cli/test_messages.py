"""Wrong input is answered by one sentence in words of the field, whatever the command; faults have their own status."""

import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from operators import all_operators, parse
from ratedist.calls import call_of
from ratedist.interfaces import cli, parser
from ratedist.interfaces.cli import main

CLUSTER = "--workers 4 --bits 0 --L 1 --sigma2 1 --eta 0.01 --gap 1 --time_s 600"
PLAN = "plan --d 1000 --workers 4 --target 0.1 --operators"
OF_PYTHON = ("NoneType", "instances of", "not supported", "Traceback", "object has no", "positional", "None,", "= None")
WRONG = {
    "bits --d 10": "give exactly one of omega and alpha; got neither: add one",
    "bits --d 10 --omega 1 --alpha .5": "got omega = 1, alpha = .5: drop one",
    "bits --d 1__000 --omega 1": "got d = '1__000': give the number of coordinates as a whole number",
    "bits --d 1.3X --omega 1": "got d = '1.3X': give",
    "bits --d '' --omega 1": "got d = '': give",
    "certify nonsense": "got 'nonsense': see ratedist certify --list",
    "certify worst_case_bit": "got 'worst_case_bit': try worst_case_bits",
    "solve --d 10 --bits 3 --theorem nonsense": "got 'nonsense': see",
    f"{PLAN} qsgd:banana": "levels of qsgd must be a whole number; got 'banana': give one",
    f"{PLAN} qsgd:1.5": "levels of qsgd must be a whole number; got '1.5'",
    f"{PLAN} qsgd:4:5": "levels of qsgd must be a whole number; got '4:5'",
    f"{PLAN} tcdq:omega=": "omega of tcdq must be a number; got ''",
    f"{PLAN} tcdq:omega": "omega of tcdq must be a number; got 'omega'",
    f"{PLAN} topk:2": "fraction must satisfy 0 < fraction <= 1; got fraction = 2",
    f"{PLAN} ''": "unknown operator ''; it must be a name of the catalogue: try",
    f"{PLAN} induced:biased=3": "biased of induced must be an operator in parentheses; got '3'",
    f"error {CLUSTER} --tau 1.5": "tau must satisfy 1 <= tau, an integer; got tau = 1.5",
    "check :b": "':b' must be an operator or package.module:object; Empty module name",
    "check qsgd:banana": "levels of qsgd must be a whole number",
    "check qsgd:4 --seed -1": "seed must satisfy seed >= 0; got seed = -1: give a natural number",
    "serve --host ''": "host must name an address; got '': 127.0.0.1 for this machine alone",
    "measure nothing.npy": "file must exist; got nothing.npy",
    "operators --d 1e13": "d must satisfy d <= 1000000000000",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_is_one_sentence_without_the_words_of_python(line, capsys):
    assert main(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert not out
    assert WRONG[line] in err
    assert len(err.splitlines()) == 1
    assert not [word for word in OF_PYTHON if word in err]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "check qsgd:4 --alpha .1 --alpha .2",
            "--alpha must be given once; got it again with 0.2: drop one of the two",
        ),
        ("check qsgd:4 --seed 0 --seed 0", "--seed must be given once; got it again with 0: drop one of the two"),
        ("bits --d 10 --omega 1 --omega 2 3", "--omega must be given once; got it again with 2 3: drop one of the two"),
    ],
)
def test_option_that_is_given_twice_is_refused(line, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(shlex.split(line))
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", all_operators())
def test_no_field_of_any_operator_takes_a_word_for_a_number(name):
    said = []
    for text in ("banana", "1e400", "nan", "-7", "()", "1.5"):
        try:
            operator = parse(f"{name}:{text}")
            operator.claim(100)
            operator.bits(100)
        except ValueError as refused:
            said.append(str(refused))
    assert not [sentence for sentence in said if any(word in sentence for word in OF_PYTHON)]


def test_tau_beyond_the_learning_rate_is_status_1(capsys):
    assert main(shlex.split(f"tau {CLUSTER.replace('0.01', '2')}")) == 1
    assert "eta L > 1" in capsys.readouterr().out


def replace_run(monkeypatch, name, run):
    call = call_of(name)
    changed = replace(call, command=replace(call.command, run=run))
    monkeypatch.setattr(parser, "named", {name: changed}.get)


def test_a_missing_library_is_named_with_its_extra(monkeypatch, capsys):
    def missing(**_):
        raise ModuleNotFoundError("No module named 'hypothesis'", name="hypothesis")

    replace_run(monkeypatch, "check", missing)
    assert main(["check", "qsgd:4"]) == 2
    assert capsys.readouterr().err == (
        'ratedist check: this command needs hypothesis, which is not installed: pip install "ratedist[laws]"\n'
    )


def test_a_fault_has_its_own_status(monkeypatch, capsys):
    def broken(**_):
        raise TypeError("unsupported operand")

    replace_run(monkeypatch, "operators", broken)
    assert main(["operators"]) == cli.CRASHED
    err = capsys.readouterr().err
    assert (
        err
        == "ratedist operators: a fault of ratedist, not of the command (TypeError: unsupported operand): report it\n"
    )


OTHERS = ("hypothesis", "pytest", "matplotlib", "sklearn")


@pytest.mark.thorough
@pytest.mark.parametrize("missing", [OTHERS, (*OTHERS, "fastapi", "uvicorn", "starlette", "pydantic")])
def test_commands_need_no_extra_but_serve(missing, tmp_path):
    np.save(tmp_path / "g.npy", np.arange(1.0, 9.0, dtype=np.float32))
    code = (
        f"import sys\nfor name in {missing!r}: sys.modules[name] = None\n"
        "from ratedist.interfaces.cli import main\n"
        "for line in ('bits --d 10 --omega 1', 'operators', 'measure g.npy --operators qsgd:4',"
        " 'check scaled_sign --budget quick --seed 1'): assert main(line.split()) == 0, line\n"
        "sys.exit(main(['serve', '--port', '0']) if 'fastapi' not in sys.modules else main(['serve']))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False
    )
    assert found.returncode == 2, found.stderr
    assert len(found.stderr.splitlines()) == 1
    if "fastapi" in missing:
        assert 'pip install "ratedist[serve]"' in found.stderr


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m ratedist certify --list | head -n 1"
    found = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=120, check=False
    )
    assert found.stderr == ""
