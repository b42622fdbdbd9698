"""Generated questions to every call of the calculator, and what every answer must satisfy.

``python -m tests.ratedist.every_call POINTS [LOG]`` asks so many points in all, in turns of one per call, and resumes
after the last point of its log.
"""

from __future__ import annotations

import json
import math
import random
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import ratedist
from bounds import AssumptionViolated, Side, all_bounds
from bounds.properties import Property
from ratedist.calls import all_calls
from ratedist.calls import arguments as kinds
from ratedist.calls.arguments import REQUIRED, Argument
from ratedist.calls.pilot import PILOT_EXAMPLE
from ratedist.records import Quantity, to_json

LIMIT_S = 60
LEFT_OUT = 0.4  # share of the arguments with a default that a question leaves out
STRANGE = 0.01  # share of the numbers that are no numbers in range
EXTREME = (0, 1e-300, 1e-30, 1e-9, 1e-3, 0.5, 1, 1.5, 2, 1e3, 1e9, 1e30, 1e300)
NOT_IN_RANGE: tuple[Any, ...] = (-1, "nan", "inf", "", "1e400", "one", [], [1, -1], True)
COUNTS = (1, 2, 3, 4, 7, 8, 16, 100, 1000, 10**6)
POOLS: dict[str, tuple[Any, ...]] = {
    "d": (1, 2, 3, 7, 64, 1000, "1e6", 25_600_000, "1e9", "1e12", "1e18", "1e100"),
    "m": (1, 2, 3, 8, 64, 1024, 10**6),
    "workers": (1, 2, 3, 4, 8, 16, 64, 1024, 10**6),
    "nodes": (1, 2, 4, 8),
    "tau": (*COUNTS, 10**9),
    "taus": ([1], [1, 2], [1, 2, 4], [2, 8], [1, 8]),
    "bits": (0, 1e-9, 1, 8, 19.93, 1e3, 2e6, 8.192e8, 1e12, 1e30),
    "omega": (0, 1e-300, 1e-12, 1e-3, 0.1, 1, 10, 1e6, 1e12, 1e100),
    "alpha": (0, 1e-300, 1e-12, 1e-3, 0.1, 0.5, 0.9, "0.999999999", 1),
    "eta": (1e-12, 1e-3, 0.01, 0.05, 0.5, 0.9, 1, 2),
    "L": (1e-6, 0.5, 1, 1, 1, 2, 100, "1.2:0.8:2"),
    "sigma2": (0, 1e-9, 0.1, 1, 1, 1, 1e6, "1:0.5:2"),
    "gap": (0, 1e-9, 0.5, 1, 1, 1e6, "1:0.5:2"),
    "G": (1e-3, 0.1, 1, 10, 1e6),
    "time_s": (1e-9, 1e-3, 0.3, 1, 1.9, 60, 600, 3600, 1e4, 1e8),
    "delay_s": (0, 1e-9, 0.01, 0.1, 1, 10, 1e6),
    "step_s": (0, 1e-6, 0.08, 0.1, 1, 100),
    "target": (1e-6, 0.01, 0.1, 0.9, 1, 10, 1e6),
    "condition": (1, 2, 100, 1e6),
    "latency_s": (0, 1e-7, 50e-6, 0.01, 1),
    "bandwidth_bit_per_s": (1, 1e6, 1e9, 1e10, 1e12),
    "parameters": (1, 1000, "124M", "8B", "1e12"),
    "tokens": (1, "1M", "2.5B", "160B", "1e13"),
    "batch_tokens": (1, 1024, "0.5M", "4M"),
    "flop_per_s": (1, 1e12, 4e14, 3.2e15),
    "bits_per_value": (0.1, 1, 4, 16, 32),
    "gradient_bits_per_value": (1, 8, 16, 32),
    "utilisations": (0.5, 1, [0.5, 0.8], [0.01, 1.0]),
    "momenta": (0, 0.5, 0.9, [0, 0.9], "0.99"),
    "mu": (1e-6, 0.001, 0.1, 1),
    "delay": (0, 1, 2, 10, 1000),
    "local_weight": (0, 0.25, 0.999),
    "in_flight": (0, 1, 2, 8, 100),
    "parts": (1, 2, 4, 8),
    "buckets": (1, 2, 4),
    "level": (0.5, 0.9, 0.95, 0.999),
    "sums_at_once": (1, 2),
    "zeta2": (0, 0.01, 1),
    "R0": (0.1, 1, 10),
    "third_derivative": (0, 0.5, 10),
    "encode_s_per_coordinate": (0, 1e-10, 1e-6),
    "decode_s_per_coordinate": (0, 1e-10, 1e-6),
    "steps": (1, 100, 10**6),
    "seed": (0, 1, 12345),
    "draws": (1, 2, 3),
}
WORDS: dict[str, tuple[Any, ...]] = {
    "curvature": ("convex", 0, 0.1, 1, "concave"),
    "exchange": ("sum", "gather", "two_shot", "auto", "node_gather", "node_two_shot"),
    "compute": ("exponential", "constant", "half_exponential"),
    "topology": ("ring", "tree", "parameter_server"),
    "inside": ("nvlink4,3e-6", "1e12,1e-6"),
    "between": ("infiniband_ndr,5e-6", "1e11,1e-5"),
    "merge": ("blocking", "overwrite", "delayed", "eager", "corrected"),
    "outer": ("0.7:0.9", "1", "0:0", "3:0.99"),
}
OPERATORS = (
    *("identity", "tcdq", "tcdq:omega=1", "tcdq:omega=0.1", "qsgd:4", "qsgd:1", "topk:0.01", "topk:1", "scaled_sign"),
    *("eden:bits_per_coordinate=2", "natural", "randomk:0.1", "terngrad", "sparse_dithering:nu=0.5", "sign"),
    *("shared_scale:12,block=256", "sign_vote", "summed_powersgd:4", "tcdq:omega=1e12", "nonsense", "klevel:k=4"),
)
QUICKLY_JUDGED = ("scaled_sign", "topk:1", "topk:0.01", "sign", "nonsense")  # 0.7 s a point; others up to 18 s
VECTORS = (
    *([1.0], [3.0, -4.0], [1e-44], [1e30, 1.0], [0.0, 0.0], [1.0] * 7, [0.1 * (-1) ** i * i for i in range(1, 60)]),
)


class Fault(AssertionError):  # noqa: N818  what the harness looks for
    """An answer that no call may give."""


def number_for(argument: Argument, draw: random.Random) -> Any:
    """Return a value for a number: from the pool of its name, between two of it, or out of range."""
    if draw.random() < STRANGE:
        return draw.choice(NOT_IN_RANGE)
    pool = POOLS.get(argument.name, EXTREME)
    if isinstance(argument.kind, kinds.Numbers) and draw.random() < 0.15:
        return [value for value in draw.choices(pool, k=3) if not isinstance(value, list)] or draw.choice(pool)
    if draw.random() < 0.7:
        return draw.choice(pool)
    plain = [float(v) for v in pool if isinstance(v, int | float) and v > 0]
    if not plain:
        return draw.choice(pool)
    between = math.exp(draw.uniform(math.log(min(plain)), math.log(max(plain))))
    return round(between) if all(isinstance(v, int) for v in pool if not isinstance(v, str)) else between


def value_for(argument: Argument, draw: random.Random) -> Any:
    """Return a value for an argument by its kind."""
    match argument.kind:
        case kinds.Workers():
            return workers_for(argument.kind.parts, draw)
        case kinds.Specification():
            return draw.choice(OPERATORS)
        case kinds.Specifications():
            return draw.sample(OPERATORS, draw.randint(1, 3))
        case kinds.Coordinates():
            return list(draw.choice(VECTORS))
        case kinds.Names():
            return draw.sample([p.name.lower() for p in Property], draw.randint(0, 3))
        case kinds.Coding():
            pair = {name: draw.choice(POOLS[name]) for name in ("encode_s_per_coordinate", "decode_s_per_coordinate")}
            return draw.choice(("free", pair))
        case kinds.Measured():
            return PILOT_EXAMPLE
        case kinds.Whole():
            return draw.choice(POOLS[argument.name])
        case kinds.Flag():
            return draw.random() < 0.5
        case kinds.Text() if argument.name in WORDS:
            return draw.choice(WORDS[argument.name])
    return number_for(argument, draw)


def request_for(arguments: tuple[Argument, ...], draw: random.Random) -> dict[str, Any]:
    """Return a request: what must be given, and some of the rest."""
    return {
        argument.name: value_for(argument, draw)
        for argument in arguments
        if argument.default is REQUIRED or draw.random() >= LEFT_OUT
    }


def workers_for(parts: tuple[Argument, ...], draw: random.Random) -> dict[str, Any]:
    """Return workers and links, most often such as exist: links of nodes only with nodes, and whole nodes."""
    asked = request_for(parts, draw)
    if draw.random() < 0.1:
        return asked
    for name in ("inside", "between", "nodes"):
        asked.pop(name, None)
    if draw.random() < 0.2:
        nodes, of_each = draw.choice((1, 2, 4)), draw.choice((1, 2, 8))
        asked |= {"nodes": nodes, "workers": nodes * of_each}
        asked |= {name: draw.choice(WORDS[name]) for name in ("inside", "between")}
        for name in ("bandwidth_bit_per_s", "latency_s", "topology"):
            asked.pop(name, None)
    return asked


def question(name: str, seed: int) -> dict[str, Any]:
    """Return the request of a call that a seed stands for."""
    draw = random.Random(f"{name} {seed}")
    call = all_calls()[name]
    arguments = call.route.arguments if call.route is not None else call.command.arguments
    asked = request_for(arguments, draw)
    if name in ("certify", "solve"):
        limits = [b.name for b in all_bounds().values() if {s.name for s in b.parameters} <= {"d", "omega", "alpha"}]
        theorem = draw.choice(list(all_bounds()) if name == "certify" else limits)
        if name == "certify" or "theorem" in asked:
            asked["theorem"] = theorem
        if name == "certify":
            bound = all_bounds()[theorem]
            asked["at"] = {s.name: number_for(Argument(s.name, kinds.Number()), draw) for s in bound.parameters}
        if draw.random() < 0.9:
            asked.pop("setting", None)
    if name == "solve":
        letter = draw.choice(("omega", "alpha"))
        asked.pop("alpha" if letter == "omega" else "omega", None)
        asked[draw.choice(("d", "bits", letter))] = None
        for other in ("d", "bits", letter):
            asked.setdefault(other, draw.choice(POOLS[other]))
    if name == "bits":
        asked.pop(draw.choice(("omega", "alpha")), None)
        if "omega" not in asked and "alpha" not in asked:
            asked["alpha"] = draw.choice(POOLS["alpha"])
    if name == "certify_tau":
        asked = _one_form(asked, draw)
    if name == "plan":
        asked = _planned(asked, draw)
    if name == "check":
        asked["op"] = draw.choice(QUICKLY_JUDGED)
    if draw.random() < 0.9:
        asked = _consistent(name, asked, draw)
    if name == "cite":
        asked = {"names": draw.sample([*all_bounds(), "tau_star", "tau_convex", "tau_curved"], draw.randint(1, 3))}
    return asked


def _consistent(name: str, asked: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return the same question without what contradicts itself: for most points that is all that is refused."""
    if name in ("error", "tau", "runtime"):
        if "bits" in asked:
            asked.pop("d", None)
        elif "d" not in asked:
            asked["bits"] = draw.choice(POOLS["bits"])
        if asked.get("exchange") not in (None, "sum", "gather"):
            asked["exchange"] = draw.choice(("sum", "gather"))
        if asked.get("curvature") == "concave":
            asked["curvature"] = "convex"
        if name != "runtime" and draw.random() < 0.8:  # within the condition of most theorems, with whole rounds
            asked |= {"eta": draw.choice((1e-12, 1e-3, 0.01, 0.05)), "L": draw.choice((1e-6, 0.5, 1, "1.2:0.8:2"))}
            asked["time_s"] = draw.choice((600, 3600, 1e4, 1e8))
            if name == "error":
                asked["tau"] = draw.choice((1, 2, 3, 8, 16))
            asked.pop("d", None)
            asked["bits"] = draw.choice((0, 1, 1e3, 2e6, 8.192e8))
    if name == "plan" and "pilot" not in asked:
        constants = ("L", "sigma2", "gap")
        if draw.random() < 0.7:
            asked |= {each: draw.choice(POOLS[each]) for each in constants}
            asked.pop("condition", None)
        else:
            for each in (*constants, "G", "eta", "curvature"):
                asked.pop(each, None)
        if isinstance(asked.get("d", ""), str):
            asked["d"] = draw.choice((1, 2, 1000, "1e6", "1e9"))
    if name == "predict":
        asked["tau"] = draw.choice((1, 2))
        for each in ("parts", "in_flight", "buckets"):
            asked.pop(each, None)
        if asked["tau"] == 1 and not asked.get("overlap"):
            asked["buckets"] = draw.choice((1, 2, 4))
        asked["operator"] = draw.choice((None, "qsgd:16", "topk:0.01"))
    if name == "pretrain" and asked.get("overlap") is None:
        asked.pop("parts", None)
        asked.pop("in_flight", None)
    return asked


def _one_form(asked: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return a question of certify_tau with the constants of one of its two forms, and few steps a round."""
    noisy = ("eta", "gap", "sigma2", "workers")
    asked["taus"] = draw.choice(POOLS["taus"])
    if draw.random() < 0.9:
        asked.pop("zeta2", None)
        asked |= {name: draw.choice([v for v in POOLS[name] if not isinstance(v, str)]) for name in noisy}
    return asked


def _planned(asked: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    asked.setdefault("codec", "free")
    if draw.random() < 0.9:
        asked.pop("pilot", None)
        asked.setdefault("d", draw.choice(POOLS["d"]))
        asked.setdefault("operators", ["identity", "tcdq:omega=1"])
        asked.pop("setting", None)
        if "target" in asked or "time_s" not in asked:
            asked.pop("time_s", None)
            asked.setdefault("target", 0.1)
    return asked


def asked(name: str, request: dict[str, Any]) -> Any:
    """Return what a call answers, before it is made plain."""
    call = all_calls()[name]
    if call.route is not None:
        return call.route.answer(request)
    return call.command.run(**request)


def judge(name: str, request: dict[str, Any]) -> str:
    """Ask and return "answered" or "refused".

    Raises
    ------
    Fault
        For any other exception, a warning, an answer that is no JSON or no table, and contradicting numbers.
    """
    try:
        with _in_time(), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = asked(name, request)
            json.dumps(to_json(_record(name, result)), allow_nan=False)
            _printed(name, result)
            LAWS.get(name, _nothing_more)(request, result)
            if isinstance(result, Quantity):
                _stated(result)
    except ValueError as refused:
        if not str(refused) or isinstance(refused, UnicodeError) or type(refused).__module__ not in _RAISED:
            raise Fault(f"{type(refused).__name__}: {refused}") from refused
        _remedied(name, request, str(refused))
        return "refused"
    except Fault:
        raise
    except Exception as failure:
        raise Fault(f"{type(failure).__name__}: {failure}") from failure
    return "answered"


def _remedied(name: str, request: dict[str, Any], sentence: str) -> None:
    """A value that a refusal gives as an example is not refused for the same rule."""
    found = re.search(r"such as (\w+)=([-+.\de]+)$", sentence)
    if not found or found[1] not in request:
        return
    argument, example = found[1], float(found[2])
    rule = sentence.partition(";")[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked(name, request | {argument: example})
    except ValueError as again:
        if str(again).startswith(f"{rule};"):
            raise Fault(f"the remedy of {sentence!r} is refused as well") from again
    except Exception:
        return  # another point, and judged as such


_RAISED = ("builtins", "bounds.bound", "bounds.plan.records", "bounds.enclosure", "ratedist.numbers")


def _record(name: str, result: Any) -> Any:
    call = all_calls()[name]
    return result if call.route is not None or call.command is None else call.command.record(result)


def _printed(name: str, result: Any) -> None:
    from rich.console import Console

    call = all_calls()[name]
    if call.command is not None and name != "check":
        console = Console(width=100, file=open("/dev/null", "w"))  # noqa: SIM115
        with console.file:
            console.print(call.command.show(result))
    if hasattr(result, "explain"):
        result.explain()


@contextmanager
def _in_time() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise Fault(f"no answer within {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _need(holds: bool, words: str) -> None:
    if not holds:
        raise Fault(words)


def _nothing_more(request: dict[str, Any], result: Any) -> None:
    """No law of its own."""


def _stated(number: Quantity) -> None:
    """Check a number against its own interval, and that its theorem and its source can be cited."""
    _need(not math.isnan(number), "nan")
    for name in (number.theorem, number.statement.reference.split(",")[0]):
        _need(ratedist.cite(name).startswith("@"), f"{name} cannot be cited")
    if number.certified:
        _need(number.lo <= number <= number.hi, f"{float(number)} outside [{number.lo}, {number.hi}]")


def _bits(request: dict[str, Any], result: Any) -> None:
    """No lower bound exceeds an upper bound in the same letters, and every recommended call can be made."""
    if not isinstance(result, Quantity):
        return
    _need(result >= 0, "fewer than no bits")
    letter = "omega" if "omega" in result.statement.at else "alpha"
    point = {name: float(Fraction(str(result.statement.at[name]))) for name in ("d", letter)}
    for bound in _uppers(letter):
        with suppress(AssumptionViolated, ValueError):
            _need(float(bound(**point)) >= result.lo * (1 - 1e-9), f"{bound.name} is below")
    _follow(result)


@cache
def _uppers(letter: str) -> tuple[Any, ...]:
    """Return the upper bounds on bits for every vector, in d and a constant."""
    return tuple(
        b
        for b in all_bounds().values()
        if b.side is Side.UPPER and b.unit == "bit" and {s.name for s in b.parameters} == {"d", letter}
        if b.setting.about() == all_bounds()["unbiased_bits"].setting.about()
    )


def _follow(result: Quantity) -> None:
    """Make every call that an answer recommends."""
    for advised in result.statement.advised:
        arguments: dict[str, Any] = dict(advised.arguments)
        if "x" in advised.yours:
            arguments["x"] = [math.sin(3.7 * k + 1) * (1 + k % 5) for k in range(40)]
        try:
            getattr(ratedist, advised.call)(**arguments)
        except ValueError as refused:
            _need("makes no error on x" in str(refused), f"{advised.in_words()} raises: {refused}")


def _solved(request: dict[str, Any], result: Any) -> None:
    """The bound at the answer is the bits that were given."""
    if isinstance(result, Quantity):
        _need(result.lo <= result.hi, "an empty interval")


def _error(request: dict[str, Any], result: Any) -> None:
    """A vacuous bound says so; a recommended call has a smaller bound, which then says something."""
    if not isinstance(result, Quantity):
        return
    at = result.statement.at
    _need(result >= 0, "a negative error")
    if result.certified:
        start = 2 * float(Fraction(at["L"])) * float(Fraction(at["gap"]))
        _need(("says nothing" in result.statement.advice) == (float(result) >= start), "vacuous, or not, unsaid")
        for advised in result.statement.advised:
            followed = float(ratedist.error_bound(**advised.arguments))
            _need(followed < float(result), f"{advised.in_words()} has no smaller bound")
            _need(float(result) < start or followed < start, f"{advised.in_words()} says nothing either")


def _tau(request: dict[str, Any], result: Any) -> None:
    """The advised period fits into the budget, and a known curvature needs no cap."""
    _need(result.tau >= 1, "no local step")
    _need("None" not in result.explain(), "None in a sentence")
    cluster, advice = result.statement.at["cluster"], result.statement.advice
    if cluster.workers == 1:
        _need("pays" not in advice and "safe" not in advice, "a tau is advised to one worker")
    for tau in map(int, re.findall(r"every (\d+)", advice)):
        seconds = tau * cluster.step_seconds_value(tau, float(Fraction(result.statement.at["bits"])))[0]
        late = seconds > float(Fraction(result.statement.at["time_s"])) * (1 + 1e-9)
        _need(not late or "longer than the budget" in advice, f"a round of {tau} steps does not fit")


def _certified(request: dict[str, Any], result: Any) -> None:
    """No proved upper bound is below what is attained; None has a reason."""
    reasons = {(row["tau"], row["value"]) for row in result.missing}
    for row in result.rows:
        if "least" not in row:
            _need(row["lo"] <= row["hi"], "an empty interval")
            continue
        for name in ("published", "sharp", "certified"):
            if row[name] is None:
                _need((row["tau"], name) in reasons, f"no reason for {name}")
            else:
                _need(row["least"] <= row[name] * (1 + 1e-9), f"{name} is below what is attained")


def _planned_well(request: dict[str, Any], result: Any) -> None:
    """What is ranked is sorted and better than the start."""
    if not hasattr(result, "by"):
        return
    costs = [getattr(choice, result.by) for choice in result.ranking if choice.feasible]
    _need(costs == sorted(costs), "the ranking is not sorted")


def _pretrained(request: dict[str, Any], result: Any) -> None:
    """No suggested rhythm with at most the asked tau is slower than the one asked for."""
    for row in result.diloco:
        if row["suggested"] and row["tau"] <= result.rows[-1]["tau"]:
            _need(row["step_s"] <= 1.0101 * result.rows[-1]["step_s"], "the suggestion is slower")


def _timed(request: dict[str, Any], result: Any) -> None:
    """The advised saving is that over the same question with tau = 1."""
    if not isinstance(result, Quantity) or "times faster" not in result.statement.advice:
        return
    every = asked("runtime", request | {"tau": 1})
    _need(f"{float(every) / float(result):.3g} times faster" in result.statement.advice, "another saving than is said")


def _near(request: dict[str, Any], result: Any) -> None:
    """A recommended compressor comes nearer to the limit on the same vector."""
    for advised in result.statement.advised:
        _need(ratedist.gap(x=request["x"], **advised.arguments) < result, f"{advised.in_words()} is no nearer")


def _reduced(request: dict[str, Any], result: Any) -> None:
    """Limits are below what is received."""
    _need(result.is_vacuous == (result.nmse is not None and result.nmse >= 1), "vacuous, or not, unsaid")
    if result.limit_bits is not None and result.ideal_bits is not None:
        _need(result.limit_bits <= result.ideal_bits * (1 + 1e-9), "the limit is above the ideal")


LAWS: dict[str, Callable[[dict[str, Any], Any], None]] = {
    "bits": _bits,
    "solve": _solved,
    "error": _error,
    "tau": _tau,
    "certify_tau": _certified,
    "plan": _planned_well,
    "pretrain": _pretrained,
    "allreduce": _reduced,
    "runtime": _timed,
    "gap": _near,
}


def points(number: int, start: int = 0) -> Iterator[tuple[str, int]]:
    """Yield calls in turn with the seeds of their questions; in a turn a quick call comes ``QUICK`` times."""
    turn = [
        (name, again)
        for name, call in all_calls().items()
        if name not in FILES
        for again in range(1 if name in SLOW else QUICK)
    ]
    for place in range(start, number):
        name, again = turn[place % len(turn)]
        yield name, place // len(turn) * (1 if name in SLOW else QUICK) + again


FILES = ("pilot", "compare", "measure")  # they read a file
SLOW = (
    *("check", "theorems", "operators", "gap", "certify_tau", "plan"),
    *("tau", "runtime", "outer", "pretrain"),
)  # a tenth of a second and more a point
QUICK = 8  # points of any other call in a turn: of 10^5, a slow call has 1 515 and a quick one 12 121


def main(words: list[str]) -> int:
    """Ask many points and log every fault; the last line of the log says how far it came."""
    number, log = int(words[0]), Path(words[1] if len(words) > 1 else "every_call.log")
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    start = max((line["place"] + 1 for line in done), default=0)
    counts: dict[str, int] = {}
    with log.open("a") as out:
        for place, (name, seed) in enumerate(points(number, start), start):
            began = time.monotonic()
            try:
                outcome = judge(name, question(name, seed))
            except Fault as fault:
                outcome = f"FAULT {fault}"
            counts[outcome.split()[0]] = counts.get(outcome.split()[0], 0) + 1
            line = {"place": place, "call": name, "seed": seed, "outcome": outcome, "s": time.monotonic() - began}
            out.write(json.dumps(line) + "\n")
            out.flush()
    sys.stdout.write(f"{counts}\n")
    return int("FAULT" in counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
