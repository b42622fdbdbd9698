"""What type checkers see of the front door: a wrong argument is an error, the type of the answer follows."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_overloads, get_type_hints

import numpy as np
import pytest

import ratedist as rd
from bounds import Bound
from operators.ddp import register
from ratedist.calls import all_calls
from ratedist.cluster.links import Link

ROOT = Path(__file__).parents[1]
RIGHT = """\
from typing import assert_type

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

import ratedist as rd
from bounds import Interval
from bounds.bound import Best
from bounds.dynamics.outer import OuterStep
from bounds.estimate import assumed
from bounds.limits import unbiased_bits
from operators import EDEN, QSGD
from operators.ddp import CompressedGradients, SummedGradients, register
from operators.laws import Report
from operators.summed.shared_scale import SharedScale

cluster, codec = rd.Cluster(workers=4), rd.Codec(1e-9, 1e-9)
seconds = {"encode_s_per_coordinate": 1e-9, "decode_s_per_coordinate": 1e-9}
x, tensor = np.random.default_rng(0).standard_normal(8), torch.ones(8)


def halved(x: torch.Tensor) -> torch.Tensor:
    return x.half().float()


def packed(x: np.ndarray) -> tuple[bytes, np.ndarray]:
    return x.astype(np.float16).tobytes(), x


def hook(state: object, bucket: list[torch.Tensor]) -> torch.futures.Future[torch.Tensor]:
    return torch.futures.Future()


class Coin:
    def encode(self, x: np.ndarray) -> bytes:
        return x.tobytes()

    def decode(self, message: bytes, d: int) -> np.ndarray:
        return np.frombuffer(message, count=d)


assert_type(rd.bits_lower_bound(d=1e9, omega="0.1"), rd.Quantity)
assert_type(rd.bits_lower_bound(d=np.arange(1, 3), alpha=0.1), rd.Quantity | rd.Quantities)
assert_type(rd.bits_lower_bound(d=[10, 20], omega=1), rd.Quantity | rd.Quantities)
assert_type(rd.bits_lower_bound(d=tensor, omega=[[0.1], [0.2]]), rd.Quantity | rd.Quantities)
assert_type(rd.solve(d=10**6, bits=2e6, omega=None), rd.Quantity)
assert_type(rd.solve(bits=[1e3, 1e4], omega=1), rd.Quantity | rd.Quantities)
assert_type(rd.runtime(cluster, tau=8), rd.Quantity)
assert_type(rd.certify("worst_case_bits", d=10, alpha="0.3"), rd.Quantity)
assert_type(rd.error_bound(eta=0.05, tau=8, time_s="60", cluster=cluster, L="1:0.5:2", gap=assumed(1)), rd.Quantity)
assert_type(rd.error_bound(eta=[0.1, 0.2], tau=8, time_s=60, cluster=cluster), rd.Quantity | rd.Quantities)
assert_type(rd.error_bound(eta=0.1, tau=8, time_s=60, cluster=cluster, L=x), rd.Quantity | rd.Quantities)
assert_type(rd.error_bound(eta=0.1, tau=8, time_s=60, cluster=cluster, curvature="convex"), rd.Quantity)
assert_type(rd.tau_star(eta=0.05, time_s=600, cluster=cluster, bits=np.float64(32), curvature=0.1), rd.TauResult)
assert_type(rd.certify_tau(time_s=10, delay_s=1, zeta2=1, taus=[1, 2]), rd.CertifiedTau)
assert_type(rd.plan(d=1e6, cluster=cluster, operators=["qsgd:4", QSGD(), SharedScale(12)], target=0.1), rd.Ranking)
assert_type(rd.plan(d=1e6, cluster=cluster, target=0.1, codec=codec, exchange="two_shot"), rd.Ranking)
assert_type(rd.plan(d=1e6, cluster=cluster, target=0.1, codec={"qsgd:4": codec, "identity": "free"}), rd.Ranking)
assert_type(rd.plan(d=1e6, cluster=cluster, target=0.1, codec=seconds), rd.Ranking)
assert_type(rd.plan(d=1e6, cluster=cluster, target=0.1, codec={"qsgd:4": seconds}), rd.Ranking)
assert_type(rd.plan(pilot="pilot.json", cluster=cluster), rd.PilotPlan)
assert_type(rd.plan(pilot=rd.pilot("pilot.json"), cluster=cluster, operators=["qsgd:4", QSGD()]).best, rd.PilotChoice)
assert_type(rd.outer(eta=1, tau=10, L=1, mu="1/10", merge="delayed", outer="0.7:0.9", momenta=[0.9]), rd.OuterAdvice)
assert_type(rd.outer(eta=1, tau=10, L=1, mu=0.1, outer=OuterStep(0.7), momenta=x), rd.OuterAdvice)
assert_type(rd.allreduce(d=10, m=4, operator="qsgd:4", exchange="two_shot"), rd.AllReduce)
assert_type(rd.allreduce(d=10, m=4, operator=SharedScale(12), codec="free", latency_s="1e-3"), rd.AllReduce)
assert_type(rd.check("qsgd:4", budget="quick", seed=1), Report)
assert_type(rd.check(QSGD()), Report)
assert_type(rd.check(Coin()), Report)
assert_type(rd.check(halved, claim=None), Report)
assert_type(rd.check(lambda x: x.sign()), Report)
assert_type(rd.measure("qsgd:4", [1.0, 2.0]).bits, float)
assert_type(rd.measure(packed, x).gap, float | None)
assert_type(rd.gap(halved, tensor, draws=2), rd.Quantity)
assert_type(rd.compare(["eden", halved, EDEN()], x, bits=2, progress=lambda row: print(row.family)), rd.Comparison)
assert_type(rd.compare([packed], [1, 2], bits=[1, 2]), rd.Comparison)
assert_type(rd.measured_curve(["qsgd:4", halved], rd.sources.Gaussian()), rd.Curve)
assert_type(rd.measured_curve([QSGD()], tensor), rd.Curve)
assert_type(rd.operators(d="1e6"), rd.Catalogue)
assert_type(rd.measure_codec("qsgd:4", d=1e4), rd.Codec)
assert_type(rd.pilot("pilot.json"), rd.Pilot)
assert_type(rd.predict("pilot.json", cluster, operator="qsgd:4", exchange="two_shot", tau="4"), rd.Prediction)
assert_type(rd.predict(rd.pilot("pilot.json"), cluster, overlap=True).limits, str)
assert_type(rd.pretrain(cluster, parameters="8B", tokens=1, batch_tokens=1, flop_per_s=1), rd.Pretraining)
assert_type(rd.cite("worst_case_bits", "sphere_bits"), str)
assert_type(rd.own(lambda x: x.half().float(), bits=16, name="half"), rd.Own)
assert_type(rd.own((halved, halved), bits=lambda d: 16 * d), rd.Own)
assert_type(rd.own(hook, bits=32, library="torch"), rd.Own)
assert_type(rd.Link.named("nvlink4", latency_s="3e-6", count=8), rd.Link)
assert_type(rd.Link.read("inside", "nvlink4,3e-6"), rd.Link)
assert_type(rd.step_in_flight_s(cluster, tau=4, bits=1e6), float)
assert_type(rd.step_overlapped_s(cluster, bits=1e6, backward_fraction=0.5), float)
assert_type(unbiased_bits(d=10, omega="0.1"), float)
assert_type(unbiased_bits(d=np.arange(3), omega=1), float | np.ndarray)
assert_type(unbiased_bits.holds_at(d=10, omega=1), bool)
assert_type(unbiased_bits.holds_at(d=[10, 20], omega=1), bool | np.ndarray)
assert_type(unbiased_bits.best(d=10, omega=1), Best)
assert_type(unbiased_bits.enclose(d=10, omega="1/3"), Interval)


def hooks(model: DistributedDataParallel, summed: SharedScale) -> None:
    assert_type(register(model, summed), SummedGradients)
    assert_type(register(model, QSGD(levels=4)), CompressedGradients)
    assert_type(register(model, "qsgd:4", scope="layer"), CompressedGradients)
"""
WRONG = """\
import numpy as np
from torch.nn.parallel import DistributedDataParallel

import ratedist as rd
from bounds.limits import unbiased_bits
from operators import QSGD
from operators.ddp import register
from operators.summed.shared_scale import SharedScale

cluster, x = rd.Cluster(workers=4), np.ones(8)


def named(x: np.ndarray) -> str:
    return "x"


rd.bits_lower_bound(d=1e9)
rd.bits_lower_bound(d=1e9, omega=1, alpha=0.5)
rd.bits_lower_bound(d=None, omega=1)
rd.bits_lower_bound(d=1e9, omega=1).lower
rd.solve(d=10, bits=20, gamma=None)
rd.solve(d=10, bits={1: 2}, omega=None)
rd.runtime(4, tau=8)
rd.runtime(cluster, tau=8, exchange="shout")
rd.certify(worst_case_bits=1)
rd.certify("worst_case_bits", d=object())
rd.allreduce(d=10, m=4, operator="qsgd:4", exchange="shout")
rd.allreduce(d=10, m=4, operator=4)
rd.error_bound(eta=0.05, tau=8, time_s=60)
rd.error_bound(eta=0.05, tau=8, time_s=60, cluster=4)
rd.error_bound(eta=None, tau=8, time_s=60, cluster=cluster)
rd.error_bound(eta=0.05, tau=8, time_s=60, cluster=cluster, curvature=[0.1, 0.2])
rd.error_bound(eta=0.05, tau=8, time_s=60, cluster=cluster, L=(1, None))
rd.error_bound(eta=0.05, tau=8, time_s=60, cluster=cluster).values
rd.tau_star(eta=[0.05, 0.1], time_s=60, cluster=cluster)
rd.tau_star(eta=0.05, time_s=60, cluster=cluster, gap={"gap": 1})
rd.tau_star(eta=0.05, time_s=60, cluster=cluster).taus
rd.certify_tau(time_s=10, delay_s=None)
rd.certify_tau(time_s=10, delay_s=1, taus=4)
rd.certify_tau(time_s=10, delay_s=1, workers=[4])
rd.plan(d=10, cluster="four", target=0.1)
rd.plan(d=[10, 20], cluster=cluster, target=0.1)
rd.plan(d=10, cluster=cluster, target=0.1, operators=[4])
rd.plan(d=10, cluster=cluster, target=0.1, exchange="shout")
rd.plan(d=10, cluster=cluster, target=0.1, codec=1e-9)
rd.plan(d=10, cluster=cluster, target=0.1, codec="costly")
rd.plan(d=10, cluster=cluster, target=0.1, curvature=0.5)
rd.plan(pilot=4, cluster=cluster)
rd.plan(pilot="pilot.json")
rd.plan(pilot="pilot.json", cluster=cluster, target=0.1)
rd.plan(pilot="pilot.json", cluster=cluster, G=10)
rd.plan(pilot="pilot.json", cluster=cluster, operators=[SharedScale(12)])
rd.plan(pilot="pilot.json", cluster=cluster, exchange="shout")
rd.outer(eta=1, tau=10, L=1)
rd.outer(eta=1, tau=10, L=1, mu=0.1, merge="late")
rd.outer(eta=1, tau=10, L=1, mu=0.1, outer=(0.7, 0.9))
rd.allreduce(d=10, m=None, operator="qsgd:4")
rd.allreduce(d=10, m=4, operator="qsgd:4", codec=4)
rd.allreduce(d=10, m=4, operator="qsgd:4", latency_s=[1, 2])
rd.check(4)
rd.check("qsgd:4", budget="endless")
rd.check("qsgd:4", claim=0.1)
rd.check(named)
rd.measure(4, x)
rd.measure("qsgd:4", "x")
rd.measure("qsgd:4", 3.0)
rd.measure("qsgd:4", x, draws="many")
rd.measure(named, x)
rd.gap(4, x)
rd.gap("qsgd:4", None)
rd.compare("qsgd:4", 4)
rd.compare(["tcdq", 4], x)
rd.compare(["tcdq"], x, bits="two")
rd.compare(["tcdq"], x, source="yes")
rd.measured_curve("qsgd:4", "gaussian")
rd.measured_curve([4], x)
rd.operators(d=None)
rd.operators(d=[1, 2])
rd.measure_codec("qsgd:4", d=None)
rd.measure_codec(4)
rd.pilot(4)
rd.predict(4, cluster)
rd.predict("pilot.json", cluster, exchange="shout")
rd.pretrain(cluster, parameters=None, tokens=1, batch_tokens=1, flop_per_s=1)
rd.cite(4)
rd.own("qsgd:4")
rd.own(named)
rd.own(lambda x: x, bits="16")
rd.own(lambda x: x, library="jax")
rd.Link.named("nvlink4", latency_s=None)
rd.Link.read("inside", 4)
rd.step_in_flight_s(cluster, tau=4, bits=1e6, exchange="shout")
rd.step_overlapped_s(cluster, bits=None, backward_fraction=0.5)
unbiased_bits(d=None, omega=1)
unbiased_bits(d=10, omega=1).shape
unbiased_bits.holds_at(d=10, omega={})
unbiased_bits.best(d=[1, 2])
unbiased_bits.enclose(d=10, omega=[1])


def hooks(model: DistributedDataParallel, summed: SharedScale) -> None:
    register(model, summed, second=QSGD(levels=4))
    register(model, 4)
    register(model, QSGD(levels=4), scope="model")
    register(model, QSGD)()
"""


def public_calls():
    """Every function of the front door by its name, and the methods by which a bound is asked."""
    functions = {name: getattr(rd, name) for name in rd.__all__ if inspect.isfunction(getattr(rd, name))}
    of_files = {call.function.__name__: call.function for call in all_calls().values() if call.function is not None}
    assert of_files.items() <= functions.items()
    links = {f"Link.{name}": getattr(Link, name).__func__ for name in ("named", "read")}
    bounds = {f"Bound.{name}": getattr(Bound, name) for name in ("__call__", "holds_at", "best", "enclose")}
    return functions | links | bounds


CALLS = public_calls()


def names_for_checkers(module):
    """What a module imports under ``if TYPE_CHECKING:``."""
    names = {}
    for node in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module.__file__, "exec"), dict(vars(module)), names)
    return names


def seen_types(function):
    """(name, type) of every parameter and of the answer, in each signature that type checkers see."""
    for signature in get_overloads(function) or [function]:
        hints = get_type_hints(signature, localns=names_for_checkers(sys.modules[function.__module__]))
        stated = [name for name in inspect.signature(signature).parameters if name not in ("self", "cls")]
        yield from ((name, hints.get(name, Any)) for name in [*stated, "return"])


def is_vague(hint, refused=(Any, object)):
    """Whether a type holds ``Any``, or ``object`` but for what a function of the user's own returns unread."""
    if isinstance(hint, list):
        return any(is_vague(part, refused) for part in hint)
    if get_origin(hint) is Callable:
        taken, returned = get_args(hint)
        return is_vague(taken, refused) or is_vague(returned, refused=(Any,))
    return any(hint is each for each in refused) or any(is_vague(part, refused) for part in get_args(hint))


@pytest.mark.parametrize("name", CALLS)
def test_no_call_takes_or_gives_what_is_not_said(name):
    assert [part for part, hint in seen_types(CALLS[name]) if is_vague(hint)] == []


def test_what_is_not_said_is_seen():
    def silent(a, b: Any, c: dict[str, Any], d: object | None, e: Callable[..., Any], f: Callable[[Any], int]): ...
    def spoken(a: int, b: Callable[..., object], c: Literal["x"], d: np.ndarray | None) -> str: ...

    assert [name for name, hint in seen_types(silent) if is_vague(hint)] == [*"abcdef", "return"]
    assert not any(is_vague(hint) for _, hint in seen_types(spoken))


def test_answers_have_types():
    for function in (
        rd.bits_lower_bound,
        rd.solve,
        rd.runtime,
        rd.error_bound,
        rd.certify,
        rd.plan,
        register,
        Bound.__call__,
    ):
        assert len(get_overloads(function)) >= 2, function
        assert inspect.signature(function).return_annotation not in ("Any", inspect.Signature.empty), function


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("Bound.")])
def test_every_call_has_a_right_and_a_wrong_line(name):
    assert f"assert_type(rd.{name}(" in RIGHT
    assert f"\nrd.{name}(" in WRONG


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
    wrong = {
        number for number, line in enumerate(lines, 1) if line.strip().startswith(("rd.", "unbiased_bits", "register("))
    }
    assert len(wrong) >= 70
    assert errors(WRONG, tmp_path) == wrong
