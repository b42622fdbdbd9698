"""Inline code of the front page and the documentation runs as its blocks do."""

import ast
import inspect
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import is_typeddict

import api
import numpy as np
import pytest
import torch
import torch.distributed as dist
from inline import definitions, inline_code
from pages import DOCS
from test_docstrings import public
from test_pages import assert_preset_exists

from ratedist.interfaces.cli import main
from ratedist.interfaces.commands import added_command
from ratedist.interfaces.parser import build_added, named

PREAMBLE = """
import numpy as np, sympy as sp, torch, operators.laws, ratedist, ratedist as rd
from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel
from bounds.claims import *
from bounds.schedules import AdaComm, Fixed, Observation
from bounds.symbols import *
from gpu_validation import *
from gpu_validation.adapters.model_updates import trainable_parameters
from gpu_validation.averaging.mixing import *
from gpu_validation.workloads import *
from operators import *
from operators.laws import *
from operators.laws.kit.examples import EVERYTHING as domain
from operators.ddp import register
from ratedist.sources import *
from sympy import Rational

x, W = np.random.default_rng(0).standard_normal(1000), np.full((4, 4), 0.25)
d, m, clients, workers, i, seed, step, rank, layer = 1000, 4, 2, 4, 1, 0, 7, 2, 3
omega, alpha, reason, name, path, group = 1.0, 0.3, "it promises nothing", "digits", "state.pt", None
operator, key = QSGD(levels=16), Key(seed=0)
schedule, state, observation = Fixed(8), None, Observation(time_s=0.0, step=0, eta=0.1)
model = DistributedDataParallel(torch.nn.Linear(300, 200))
loss = model(torch.ones(300)).square().sum()
hook = register(DistributedDataParallel(torch.nn.Linear(3, 2)), operator)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rule = AdaComm(tau_0=8, interval_s=2.0)
averaging = PeriodicAveraging(model.module, optimizer, schedule=rule, operator=operator, telemetry=True)
for _ in range(3):
    next(model.parameters()).data += 1
    averaging.step(loss)
    averaging.average()
report = averaging.report()
my_compressor = lambda x: x
"""
MINE = """
from dataclasses import dataclass
from gpu_validation.workloads import Quadratic
from operators import ScaledSign

@dataclass(frozen=True)
class Coin(ScaledSign):
    bias: float = 0.5

class Gentle(Quadratic):
    name = "gentle"

def f(x):
    return x / 2

g = f

f.bits = 1
"""
ELSEWHERE = {
    'init_process_group("nccl")': "needs a GPU for each rank",
    "network.switch_count().bytes": "needs network namespaces; tests/gpu_validation/network counts by it",
}
UNTRIED = {
    "pip": "installs from the network",
    "sbatch": "needs a cluster",
    "export": "is the shell's own, and sets a variable",
}
PIECES = inline_code()


@pytest.fixture
def space(tmp_path, monkeypatch):
    """The names of PREAMBLE, in a group of one rank and a folder of its own."""
    monkeypatch.chdir(tmp_path)
    torch.save(torch.ones(3), "state.pt")
    (tmp_path / "mine.py").write_text(MINE)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    found: dict = {"__name__": "page"}
    try:
        exec(PREAMBLE, found)
        yield found
    finally:
        dist.destroy_process_group()
        sys.modules.pop("mine", None)


def of_kind(*kinds):
    return [pytest.param(p, id=f"{Path(p.page).stem}: {p.code}") for p in PIECES if p.kind in kinds]


@pytest.mark.parametrize("piece", of_kind("run"))
def test_calls_run(piece, space):
    if piece.code in ELSEWHERE:
        return
    exec(definitions(piece.page), space)
    if piece.code.startswith("PeriodicAveraging("):
        space["model"] = space["model"].module  # the pages about local steps speak of a model without DDP
    exec(piece.code, space)


@pytest.mark.parametrize("piece", of_kind("form"))
def test_forms_call_what_exists_by_keywords_that_it_has(piece, space):
    exec(definitions(piece.page), space)
    for call in ast.walk(ast.parse(piece.code)):
        if isinstance(call, ast.Call):
            function = eval(ast.unparse(call.func), space)
            assert callable(function)
            assert {word.arg for word in call.keywords} <= set(inspect.signature(function).parameters)


@cache
def keywords():
    """Every keyword of a public function or class, and of those of torch that the pages use."""
    values = (value for _, value, _ in public() if callable(value) and not is_typeddict(value))
    functions = [value for value in values if not api.is_exception(value)]
    functions += [torch.load, torch.nn.parallel.DistributedDataParallel, torch.nn.Module.register_buffer]
    return {name for function in functions for name in inspect.signature(function).parameters}


@pytest.mark.parametrize("piece", of_kind("keyword"))
def test_keywords_are_those_of_a_public_function(piece, space):
    name, _, value = piece.code.partition("=")
    assert name in keywords()
    if value and "..." not in value:
        exec(definitions(piece.page), space)
        eval(value, space)


@pytest.mark.parametrize("piece", of_kind("method"))
def test_methods_are_those_of_a_public_class(piece):
    name = piece.code.removesuffix("()")
    functions = {full.rpartition(".")[2] for full, _, _ in public()}
    classes = [torch.Tensor, *(value for _, value, _ in public() if inspect.isclass(value))]
    assert name in functions or any(hasattr(value, name) for value in classes)


@pytest.mark.every(3)
@pytest.mark.parametrize("piece", of_kind("command"))
def test_commands_run_or_are_understood(piece, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    program, *words = shlex.split(piece.code)
    if words == ["--version"]:
        assert program == "ratedist"
    elif program == "ratedist" and (added := added_command(words[0])):
        if words[0] == "attach":
            assert str(build_added("attach", added).parse_args(words).folder) == "runs/a"
        if words[0] == "run" and words[1] != "NAME":
            assert_preset_exists(words[1])
    elif program == "ratedist":
        assert named(words[0]) is not None
        if words[1:]:
            run_calculator(words, tmp_path)
    elif program == "gpu-validation":
        assert not words
    elif program == "make":
        assert f"\n{words[0]}:" in (DOCS.parent / "Makefile").read_text()
    elif program == "torchrun":
        from torch.distributed.run import get_args_parser

        assert get_args_parser().parse_args(words).training_script == "train.py"
    else:
        assert program in UNTRIED


def run_calculator(words, folder):
    """Run the command with the files that the pages speak of."""
    (folder / "mine.py").write_text(MINE)
    np.save(folder / "gradient.npy", np.random.default_rng(0).standard_normal(500).astype(np.float32))
    (folder / "package").mkdir()
    (folder / "package/module.py").write_text("from operators import ScaledSign\n\nobject = ScaledSign()\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "package"]:
        del sys.modules[name]
    assert main([*words, *(["--budget", "quick"] if words[0] == "check" else [])]) == 0


def test_what_is_not_run_stands_on_a_page():
    codes = {piece.code for piece in PIECES}
    assert set(ELSEWHERE) <= codes
    assert set(UNTRIED) <= {code.split()[0] for code in codes}


def test_a_call_that_fails_is_found():
    assert {"run", "form", "keyword", "method", "command"} == {piece.kind for piece in PIECES}
    assert sum(piece.kind == "run" for piece in PIECES) >= 30
