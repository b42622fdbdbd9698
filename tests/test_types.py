"""What type checkers see of the front door: a wrong argument is an error, the type of the answer follows."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_overloads

import pytest

import ratedist as rd
from operators.ddp import register

ROOT = Path(__file__).parents[1]
RIGHT = """\
from typing import assert_type

import numpy as np
from torch.nn.parallel import DistributedDataParallel

import ratedist as rd
from operators import QSGD
from operators.ddp import CompressedGradients, SummedGradients, register
from operators.summed.shared_scale import SharedScale

assert_type(rd.bits_lower_bound(d=1e9, omega="0.1"), rd.Quantity)
assert_type(rd.bits_lower_bound(d=np.arange(1, 3), alpha=0.1), rd.Quantity | rd.Quantities)
assert_type(rd.bits_lower_bound(d=[10, 20], omega=1), rd.Quantity | rd.Quantities)
assert_type(rd.solve(d=10**6, bits=2e6, omega=None), rd.Quantity)
assert_type(rd.solve(bits=[1e3, 1e4], omega=1), rd.Quantity | rd.Quantities)
assert_type(rd.runtime(rd.Cluster(workers=4), tau=8), rd.Quantity)
assert_type(rd.certify("worst_case_bits", d=10, alpha="0.3"), rd.Quantity)
assert_type(rd.allreduce(d=10, m=4, operator="qsgd:4", exchange="two_shot"), rd.AllReduce)


def hooks(model: DistributedDataParallel, summed: SharedScale) -> None:
    assert_type(register(model, summed), SummedGradients)
    assert_type(register(model, QSGD(levels=4)), CompressedGradients)
    assert_type(register(model, "qsgd:4", scope="layer"), CompressedGradients)
"""
WRONG = """\
from torch.nn.parallel import DistributedDataParallel

import ratedist as rd
from operators import QSGD
from operators.ddp import register
from operators.summed.shared_scale import SharedScale

rd.bits_lower_bound(d=1e9)
rd.bits_lower_bound(d=1e9, omega=1, alpha=0.5)
rd.bits_lower_bound(d=None, omega=1)
rd.bits_lower_bound(d=1e9, omega=1).lower
rd.solve(d=10, bits=20, gamma=None)
rd.solve(d=10, bits={1: 2}, omega=None)
rd.runtime(4, tau=8)
rd.runtime(rd.Cluster(workers=4), tau=8, exchange="shout")
rd.certify(worst_case_bits=1)
rd.certify("worst_case_bits", d=object())
rd.allreduce(d=10, m=4, operator="qsgd:4", exchange="shout")
rd.allreduce(d=10, m=4, operator=4)


def hooks(model: DistributedDataParallel, summed: SharedScale) -> None:
    register(model, summed, second=QSGD(levels=4))
    register(model, 4)
    register(model, QSGD(levels=4), scope="model")
    register(model, QSGD)()
"""


def test_answers_have_types():
    for function in (rd.bits_lower_bound, rd.solve, rd.runtime, rd.certify, register):
        assert len(get_overloads(function)) >= 2, function
        assert inspect.signature(function).return_annotation not in ("Any", inspect.Signature.empty), function


def errors(code, tmp_path):
    """Lines at which mypy finds an error."""
    file = tmp_path / "calls.py"
    file.write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {
        int(line.split(":")[1])
        for line in done.stdout.splitlines()
        if line.startswith(str(file)) and ": error:" in line
    }


@pytest.mark.thorough
def test_mypy_finds_every_wrong_call_and_no_right_one(tmp_path):
    assert errors(RIGHT, tmp_path) == set()
    lines = WRONG.splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.strip().startswith(("rd.", "register("))}
    assert errors(WRONG, tmp_path) == wrong
