"""The cost of one operator on a cluster for each exchange, and the rates at which it costs least."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from bounds import plan as planner
from bounds.claims import Claim, Unbiased
from bounds.properties import Property
from bounds.runtime import RuntimeModel

from ..cluster.cluster import Cluster
from ..cluster.codec import Codec, codec_of
from ..cluster.compressors import claim_text, compressor_of
from ..cluster.travel import (
    DENSE_BITS,
    Travel,
    gathered_by_nodes,
    in_two_shots,
    in_two_shots_of_nodes,
    stated_bits,
    summed_travel,
    travel,
)
from ..records import number_text
from .problem import vacuous_plan
from .ranking import Choice
from .run import PlannedRun, Rhythm, scaled

if TYPE_CHECKING:
    from operators import Operator
    from operators.summed import Summed


# -- one operator --------------------------------------------------------------------------------------

Way = Literal["auto", "gather", "two_shot", "node_gather", "node_two_shot"]
WAYS: tuple[Way, ...] = ("auto", "gather", "two_shot", "node_gather", "node_two_shot")


@dataclass(frozen=True)
class Asked:
    """What a plan is about, but for the compressor.

    Parameters
    ----------
    d : int
        Number of parameters of the model.
    cluster : Cluster
        Workers and links.
    problem : Smooth or Conditioned
        What is minimised.
    goal : dict of str to float or None
        target, time_s and eta.
    codecs : optional
        Seconds of encoding and decoding, as ``checked_codecs`` returns them.
    setting : frozenset of Property or None
        What is known of problem and gradients.
    exchange : {"auto", "gather", "two_shot", "node_gather", "node_two_shot"}
        How compressed messages may travel.
    """

    d: int
    cluster: Cluster
    problem: planner.Smooth | planner.Conditioned
    goal: dict[str, float | None]
    codecs: Any
    setting: frozenset[Property] | None
    exchange: Way = "auto"

    @property
    def exchanges(self) -> tuple[Way, ...]:
        """The ways that are looked at."""
        return ways_of(self.exchange, self.cluster)

    def cost(self, choice: Choice) -> tuple[float, float, float]:
        """Return what choices are ranked by.

        Parameters
        ----------
        choice : Choice
            A feasible one.
        """
        if self.goal["target"] is not None:
            return choice.seconds, choice.bits, choice.error
        return choice.error, choice.bits, choice.seconds


def ways_of(exchange: Way, cluster: Cluster) -> tuple[Way, ...]:
    """Return the ways that a plan looks at.

    Parameters
    ----------
    exchange : {"auto", "gather", "two_shot", "node_gather", "node_two_shot"}
        How compressed messages may travel.
    cluster : Cluster
        Workers and links.
    """
    if exchange != "auto":
        return (exchange,)
    return WAYS[1:] if (cluster.nodes or 1) > 1 else WAYS[1:3]


def choice_of(operator: Operator | Summed, asked: Asked) -> Choice:
    """Return the better of the ways that an operator's messages may go; gathered where neither is covered.

    Parameters
    ----------
    operator : Operator or Summed
        The compressor, at both stages of two shots; what is summed on the way has that way only.
    asked : Asked
        The plan.
    """
    from operators.summed import Summed

    if isinstance(operator, Summed):
        return _summed(operator, asked)
    gathered = _gathered(operator, asked)
    if gathered.exchange == "sum":
        return gathered
    kinds = asked.exchanges
    choices = [gathered if kind == "gather" else sent(kind, operator, operator, asked) for kind in kinds]
    feasible = [choice for choice in choices if choice.feasible]
    return min(feasible, key=asked.cost) if feasible else choices[0]


def _gathered(operator: Operator, asked: Asked) -> Choice:
    from operators import specification

    name, d = specification(operator), asked.d
    try:
        claim = operator.claim(d)
        operator.bits(d)
    except ValueError as failure:
        return Choice(name, False, (f"not at d = {d}: {failure}",))
    try:
        bits = stated_bits(operator, d)
    except ValueError as failure:
        return Choice(name, False, (str(failure),))
    return _travelling(operator, None, travel(operator, claim, bits, d, asked.cluster), asked)


def _summed(method: Summed, asked: Asked) -> Choice:
    from operators import specification

    try:
        way = summed_travel(method, asked.d, asked.cluster)
    except ValueError as failure:
        return Choice(specification(method), False, (f"not for {asked.cluster.workers} workers: {failure}",))
    return _travelling(method, None, way, asked)


def sent(kind: Way, first: Operator, second: Operator, asked: Asked) -> Choice:
    """Return what another way than a gather of all messages would cost.

    Parameters
    ----------
    kind : {"two_shot", "node_gather", "node_two_shot"}
        The way.
    first, second : Operator
        Of the workers, or their nodes, and of the owners; what nodes gather has the first alone.
    asked : Asked
        The plan.
    """
    from operators import specification

    try:
        if kind == "node_gather":
            way = gathered_by_nodes(first, asked.d, asked.cluster)
        elif kind == "node_two_shot":
            way = in_two_shots_of_nodes(first, second, asked.d, asked.cluster)
        else:
            way = in_two_shots(first, second, asked.d, asked.cluster)
    except ValueError as failure:
        return Choice(specification(first), False, (str(failure),), exchange=kind)
    return _travelling(first, None if way.second is None else second, way, asked)


def _travelling(operator: Operator | Summed, second: Operator | None, way: Travel, asked: Asked) -> Choice:
    """Return the cost of one operator's messages on one way; with the owners' operator in two shots."""
    from operators import specification

    name, d, cluster, problem, goal = specification(operator), asked.d, asked.cluster, asked.problem, asked.goal
    returned = "" if second is None else specification(second)
    way_of_it: dict[str, Any] = {"exchange": way.exchange, "returned": returned, "message_bits": way.bits}
    try:
        codec = codec_of(asked.codecs, operator, d) if way.encoded or way.decoded else None
        back = codec if second is None else codec_of(asked.codecs, second, d)
    except ValueError as failure:
        return Choice(name, False, (str(failure),), **way_of_it)
    seconds = averaging(way, codec, back, d, cluster)
    try:
        option = planner.plan(
            [planner.Candidate(name, way.claim, way.bits, way.second)],
            runtime=RuntimeModel(cluster.step(), delay_s=sum(seconds.values()), m=cluster.workers),
            problem=problem,
            target=goal["target"],
            time_s=goal["time_s"],
            eta=goal["eta"],
            setting=asked.setting,
        ).best
    except planner.Infeasible as failure:
        reasons = (failure.reasons[name], f"an averaging {_averaging_text(seconds)}", _message_text(way, d))
        return Choice(name, False, reasons, **way_of_it, **seconds)
    costs = {"coded": way.encoded + way.decoded} | way_of_it | seconds
    return _chosen(option, way, codec, asked, costs)


def cost_of_choice(asked: Asked) -> Callable[[Choice, float], float]:
    """Return the seconds (or error) of a choice of a plan by theorems, with the bandwidth times a factor.

    Parameters
    ----------
    asked : Asked
        The plan.
    """

    def cost(choice: Choice, scale: float) -> float:
        cluster, problem = scaled(asked.cluster, "between", bandwidth=scale), asked.problem
        if isinstance(problem, planner.Conditioned):
            problem = replace(problem, dense_s=cluster.averaging_s(DENSE_BITS * asked.d).midpoint)
        way: Way = "gather" if choice.exchange == "sum" else choice.exchange  # type: ignore[assignment]
        scaled_asked = replace(asked, cluster=cluster, problem=problem, exchange=way)
        first: Any = compressor_of(choice.operator)
        if way == "gather":
            again = choice_of(first, scaled_asked)
        else:
            again = sent(way, first, compressor_of(choice.returned) if choice.returned else first, scaled_asked)  # type: ignore[arg-type]
        return asked.cost(again)[0] if again.feasible else math.inf

    return cost


def averaging(way: Travel, codec: Codec | None, back: Codec | None, d: int, cluster: Cluster) -> dict[str, Any]:
    """Return seconds of encoding, of the links and of decoding in one averaging.

    Parameters
    ----------
    way : Travel
        How the messages go.
    codec, back : Codec or None
        Of the workers' operator and, in two shots, of the owners'.
    d : int
        Number of coordinates.
    cluster : Cluster
        Workers and links.
    """
    length = d / way.pieces
    encode, decode = codec.of_messages(length) if codec else (0.0, 0.0)
    encode_s, decode_s = way.encoded * d * encode, way.decoded * d * decode
    if way.second is not None and codec is not None and back is not None:  # a worker's own, then the owners' codec
        owners = way.encoded - way.first_encoded, way.decoded - way.last_decoded
        encode_back, decode_back = back.of_messages(length)
        encode_s = d * (way.first_encoded * encode + owners[0] * encode_back)
        decode_s = d * (owners[1] * decode + way.last_decoded * decode_back)
    return {"encode_s": encode_s, "communicate_s": way.communicate_s(cluster), "decode_s": decode_s}


def _chosen(option: planner.Option, way: Travel, codec: Codec | None, asked: Asked, costs: dict[str, Any]) -> Choice:
    d, cluster, problem = asked.d, asked.cluster, asked.problem
    timed = asked.goal["time_s"] is not None
    seconds = {name: costs[name] for name in ("encode_s", "communicate_s", "decode_s")}
    status = option.status.value if option.status else ""
    dense = isinstance(problem, planner.Conditioned) and option.bits != option.rounds * way.bits
    start_s = problem.dense_s if dense and isinstance(problem, planner.Conditioned) else None
    run = PlannedRun(
        way,
        cluster,
        rounds=option.rounds,
        rhythm=Rhythm(option.tau),
        coding_s=seconds["encode_s"] + seconds["decode_s"],
        start_bits=None if start_s is None else DENSE_BITS * d,
    )
    reasons = (
        f"{option.theorem} ({status}): {_rounds_text(option, timed)} with {_constants(way)}",
        f"a round computes {run.compute_s:.4g} s, {_averaging_text(seconds)}",
        *(() if start_s is None else (f"the first averages uncompressed gradients, {start_s:.4g} s",)),
        _message_text(way, d),
        *(() if codec is None else (codec.in_words(),)),
    )
    if empty := vacuous_plan(problem, option, asked.goal["target"]):
        return Choice(option.name, False, (empty, *reasons), vacuous=True, **costs)
    return Choice(
        operator=option.name,
        feasible=True,
        reasons=reasons,
        theorem=option.theorem,
        status=status,
        seconds=option.seconds,
        rounds=option.rounds,
        tau=option.tau,
        eta=option.eta,
        bits=option.bits,
        error=option.error,
        compute_s=run.compute_s,
        start_s=start_s,
        limits=run.limits(),
        **costs,
    )


def _rounds_text(option: planner.Option, timed: bool) -> str:
    return f"{'on average at least ' if timed else ''}{number_text(option.rounds)} round{'s' * (option.rounds != 1)}"


def _constants(way: Travel) -> str:
    if way.second is None:
        return _constant(way.claim)
    return f"{_constant(way.claim)} to the owners, {way.second.omega:.4g} back"


def _constant(claim: Claim) -> str:
    return f"omega = {claim.omega:.4g}" if isinstance(claim, Unbiased) else claim_text(claim)


def _averaging_text(seconds: dict[str, Any]) -> str:
    return ", ".join(f"{name.removesuffix('_s')}s {value:.4g} s" for name, value in seconds.items() if value) or (
        "sends nothing"
    )


def _message_text(way: Travel, d: int) -> str:
    saved = f", {DENSE_BITS * d / way.bits:.4g} times fewer than binary32" if way.bits < DENSE_BITS * d else ""
    return f"a message has {number_text(math.ceil(way.bits))} bits{saved}, {way.words}"


# -- best rates of TCDQ --------------------------------------------------------------------------------

OMEGAS = tuple(2.0**k for k in range(-10, 5))
SWEEPS = 3


def best_rates(asked: Asked) -> list[Choice]:
    """Return TCDQ at the rates that cost least: gathered, and in two shots with a rate for each stage, on every level.

    Rates on a grid of factors of two in omega; those of two shots in turns, from equal ones.

    Parameters
    ----------
    asked : Asked
        The plan.
    """
    from operators import TCDQ

    choices = []
    for kind in asked.exchanges:
        if kind == "gather":
            choices.append(_least(asked, lambda omega: choice_of(TCDQ(omega), replace(asked, exchange="gather")))[0])
        elif kind == "node_gather":
            choices.append(_least(asked, lambda omega: sent("node_gather", TCDQ(omega), TCDQ(omega), asked))[0])
        else:
            choices.append(_of_both_stages(partial(_shots, asked, kind), asked))
    return choices


def _shots(asked: Asked, kind: Way, first: float, second: float) -> Choice:
    from operators import TCDQ

    return sent(kind, TCDQ(first), TCDQ(second), asked)


def _of_both_stages(shots: Callable[[float, float], Choice], asked: Asked) -> Choice:
    best, first = _least(asked, lambda omega: shots(omega, omega))
    second = first
    for _ in range(SWEEPS):
        before = first, second
        near = _near(first), _near(second)
        best, second = _least(asked, lambda omega, first=first: shots(first, omega), near[1])  # type: ignore[misc]
        best, first = _least(asked, lambda omega, second=second: shots(omega, second), near[0])  # type: ignore[misc]
        if (first, second) == before:
            break
    return best


def _least(
    asked: Asked, candidate: Callable[[float], Choice], omegas: tuple[float, ...] = OMEGAS
) -> tuple[Choice, float]:
    tried = [(candidate(omega), omega) for omega in omegas]
    feasible = [pair for pair in tried if pair[0].feasible]
    return min(feasible, key=lambda pair: asked.cost(pair[0])) if feasible else tried[0]


def _near(omega: float) -> tuple[float, ...]:
    """Return the rates of the grid within a factor of 16."""
    return tuple(other for other in OMEGAS if omega / 16 <= other <= 16 * omega)
