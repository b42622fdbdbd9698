"""Which compressor, and how many local steps: every operator asked for, ranked, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from bounds import plan as planner
from bounds.setting import properties

from .. import numbers
from ..cluster.cluster import Cluster, checked_cluster
from ..cluster.codec import NUMBERS, Codecs, checked_codecs
from ..cluster.compressors import compressor_of
from ..cluster.travel import DENSE_BITS
from ..numbers import real, refusal, whole
from ..pilots.pilot import Pilot
from ..pilots.plan import PilotPlan, plan_of_pilot
from ..plans.choosing import WAYS, Asked, Way, best_rates, choice_of, cost_of_choice
from ..plans.problem import CONDITION, Uncertain, not_said, problem_of, read_constants
from ..plans.ranking import Choice, Ranking, of_estimates, with_coding
from .arguments import Control, Specifications, coding_seconds
from .call import Call, Command, Route
from .shared import CLUSTER_EXAMPLE, MOST_PILOT_BYTES, coordinates, measured_pilot, with_steps_of

if TYPE_CHECKING:
    from operators import Operator
    from operators.summed import Summed

MOST_OPERATORS = 64
MOST_DIMENSION = 10**12  # over HTTP


@overload
def plan(
    *,
    d: numbers.Number,
    cluster: Cluster,
    operators: Iterable[str | Operator | Summed] | None = None,
    target: numbers.Number | None = None,
    time_s: numbers.Number | None = None,
    L: Uncertain | None = None,
    sigma2: Uncertain | None = None,
    gap: Uncertain | None = None,
    G: numbers.Number | None = None,
    eta: numbers.Number | None = None,
    condition: numbers.Number | None = None,
    codec: Codecs | None = None,
    setting: Iterable[str] | None = None,
    exchange: Way = "auto",
    curvature: Literal["convex"] | None = None,
) -> Ranking: ...
@overload
def plan(
    *,
    pilot: Pilot | str,
    cluster: Cluster,
    operators: Iterable[str | Operator] | None = None,
    codec: Codecs | None = None,
    exchange: Way = "auto",
    d: numbers.Number | None = None,
) -> PilotPlan: ...
def plan(
    *,
    d: numbers.Number | None = None,
    pilot: Pilot | str | None = None,
    cluster: Cluster | None = None,
    operators: Iterable[Any] | None = None,
    target: numbers.Number | None = None,
    time_s: numbers.Number | None = None,
    L: Uncertain | None = None,
    sigma2: Uncertain | None = None,
    gap: Uncertain | None = None,
    G: numbers.Number | None = None,
    eta: numbers.Number | None = None,
    condition: numbers.Number | None = None,
    codec: Codecs | None = None,
    setting: Iterable[str] | None = None,
    exchange: Way = "auto",
    curvature: Literal["convex"] | None = None,
) -> Ranking | PilotPlan:
    """Rank compressors for a model on a cluster: by theorems for d parameters, or by what a pilot predicts.

    Parameters
    ----------
    d : array_like, optional
        Number of parameters of the model; either this or pilot.
    pilot : Pilot or str, optional
        A file of gpu_validation.pilot instead of d and a theorem's constants, or resnet20 or transformer, recorded.  In
        Python also a ``Pilot``.  Beside it only cluster, operators, codec and exchange are taken; beside a recorded
        pilot also d, the parameters of a model whose gradients have the recorded statistics.
    cluster : Cluster
        Workers and links, such as ``pilot.cluster(workers=64)``.
    operators : iterable of str or Operator or Summed or None, optional
        Compressors to rank, such as tcdq:omega=1, or shared_scale:12, summed on the way; unless given, identity and
        TCDQ at its best rates.  In Python also ``Operator`` instances; "sign_vote" and "summed_powersgd:4" are summed
        on the way too.  The best rates are sought for gathered messages, and for each of two shots.  With a pilot, some
        that it has tried; unless given, all of them.
    target : array_like, optional
        Error to reach; either this or time_s.
    time_s : array_like, seconds, optional
        Seconds after which the error counts; either this or target.
    L : array_like, optional
        Smoothness constant of F, or an estimate as in ``error_bound``.
    sigma2 : array_like, optional
        Variance of one worker's gradient, or an estimate.
    gap : array_like, optional
        F(x_1) - inf F, or an estimate.
    G : array_like, optional
        Root of a bound on ``E|g|^2`` of every worker's gradient; biased operators need it.
    eta : array_like, optional
        Learning rate, unless it is chosen.
    condition : array_like, optional
        Condition number L/mu, 100 unless given; only without L, sigma2 and gap.
    codec : Codec or mapping or str, optional
        Seconds of encoding and decoding: ENCODE,DECODE for all operators, SPEC=ENCODE,DECODE for one, free, or measured
        on this machine (default).  In Python a ``Codec`` for all, a mapping from specifications to one, or "free"; by
        default each operator is timed (``measure_codec``).  With a pilot, the default is what the pilot has measured on
        its machine; give the seconds of a GPU if it codes there.
    setting : iterable of str or None, optional
        Names of what is known of problem and gradients, such as ["same_f", "unbiased_gradients"]; a theorem that needs
        more is then "not covered".  Unless given, what is needed stands in the assumptions.
    exchange : {"auto", "gather", "two_shot", "node_gather", "node_two_shot"}, optional
        How messages that cannot be summed travel.  "gather": all of them to all ranks; "two_shot": compressed shards to
        their owners and compressed means to all, with one operator at both stages; on nodes also after exact sums
        inside, once a node.  "auto" takes what costs least for each operator.
    curvature : "convex" or None, optional
        What is known of F, with L, sigma2 and gap.  If it is convex, local steps cost less and more of them are safe.

    Raises
    ------
    ValueError
        For bad arguments.

    Notes
    -----
    With L, sigma2 and gap (smooth, averaging of local updates): reach ``E|grad F|^2`` <= target soonest, or the
    least error within time_s; tau and the learning rate (unless eta fixes it) are chosen for each.  Biased operators
    need G too, the root of a bound on ``E|g|^2`` of every worker's gradient.  L, sigma2 and gap may be estimates, as in
    ``error_bound``: planned at their values, with the cost at their ends and a status that says so.  Without them:
    rounds of DIANA (strongly convex, condition number ``condition``, 100 unless given) with full gradients until ``E|x
    - x*|^2`` <= target ``|x_0 - x*|^2``, target < 1; its first round averages uncompressed gradients.

    A round computes, encodes, communicates and decodes, one after the other.  Dense messages are summed on their way,
    short floats in binary32 (see ``travel``).  Compressed messages are gathered, and every rank decodes all of them.
    Unbiased operators may use two shots, in which a rank decodes as much as two vectors have.  Methods of
    ``operators.summed`` take a sum for each of their rounds.  Their constant is one of all ranks' messages together
    (``Summed.claim``), and the proofs use no more.  An operator that no PROVED or VERIFIED theorem covers is ranked
    last, with the reason.

    With a pilot: every operator that it has tried and binary32, on every way, averaged every 1, 2, 4, ... steps and as
    many as the pilot has looked at, waiting, during the backward pass, or in flight whole or in fragments, by the least
    predicted time to a loss (``docs/concepts/prediction.md``).  It is no guarantee; the worst case of a theorem, where
    there is one, stands beside it.

    Examples
    --------
    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    >>> asked = ["tcdq:omega=1", "qsgd:4", "topk:0.01"]
    >>> found = rd.plan(d=25_600_000, cluster=cluster, operators=asked, target=0.1, codec=rd.Codec(1e-10, 1e-11))
    >>> [(choice.operator, choice.feasible) for choice in found.ranking]
    [('tcdq:omega=1', True), ('qsgd:levels=4', True), ('topk:fraction=0.01', False)]
    """
    cluster, search, constants = checked_cluster(cluster), operators is None, {"L": L, "sigma2": sigma2, "gap": gap}
    asked = _asked(["identity"] if operators is None else operators)
    if pilot is not None:
        rest = {"target": target, "time_s": time_s, **constants, "G": G, "eta": eta, "condition": condition}
        measured = measured_pilot(pilot, d)
        _refuse_beside_a_pilot({**rest, "setting": setting, "curvature": curvature})
        codecs = checked_codecs(codec)
        measured = measured if codecs is None else measured.with_codecs(codecs)
        return plan_of_pilot(measured, cluster, None if search else asked, _way(exchange))
    if d is None:
        raise ValueError("a plan needs d or a pilot; got neither: give d, the parameters, or what a pilot has measured")
    dimension = coordinates(d)
    codecs = checked_codecs(codec)
    given = None if setting is None else properties([setting] if isinstance(setting, str) else setting)
    problem, assumed = problem_of(
        constants, G=G, target=target, time_s=time_s, eta=eta, condition=condition, curvature=curvature
    )
    if isinstance(problem, planner.Conditioned):
        dense_bits = DENSE_BITS * dimension
        dense_s = cluster.averaging_s(dense_bits).midpoint
        problem = replace(problem, dense_bits=dense_bits, dense_s=dense_s)
    asked_for = {"target": target, "time_s": time_s, "eta": eta}
    goal = {name: None if value is None else real(name, value) for name, value in asked_for.items()}
    if (goal["target"] is None) == (goal["time_s"] is None):
        raise ValueError(f"give either target or time_s; got target = {target}, time_s = {time_s}: drop or add one")
    operators_asked = [compressor_of(specification) for specification in asked]
    by: Literal["seconds", "error"] = "error" if goal["target"] is None else "seconds"
    about = Asked(dimension, cluster, problem, goal, codecs, given, _way(exchange))

    def choices_for(problem: planner.Smooth | planner.Conditioned) -> list[Choice]:
        asked_here = replace(about, problem=problem)
        return [choice_of(operator, asked_here) for operator in operators_asked] + (
            best_rates(asked_here) if search else []
        )

    choices = choices_for(problem)
    uncertain = read_constants(constants)[1] if isinstance(problem, planner.Smooth) else {}
    if isinstance(problem, planner.Smooth) and uncertain:
        choices = of_estimates(choices, choices_for, problem, uncertain, by)
    means = "seconds are means: guarantees count rounds, a run may take longer or need fewer"
    assumed_all = (assumed, *_needs(choices), cluster.in_words(), means, f"d = {dimension}")
    return Ranking(
        with_coding(_ranked(choices, about), dimension, by),
        assumed_all,
        by,
        assumed=(*_not_said(problem, condition), *not_said(uncertain), *cluster.assumed(), *_not_said_of(codec)),
        needs=_hypotheses(choices),
        cluster=cluster,
        cost_of=cost_of_choice(about),
        goal=_goal(problem, goal),
    )


def _goal(problem: planner.Smooth | planner.Conditioned, goal: Mapping[str, float | None]) -> str:
    """Return what is small after the plan's seconds, in words."""
    if isinstance(problem, planner.Conditioned):
        return f"until E|x - x*|^2 <= {goal['target']:g} |x_0 - x*|^2"
    of = "E|grad F|^2, averaged over the steps"
    return f"until {of}, <= {goal['target']:g}" if goal["time_s"] is None else f"of {of}, after {goal['time_s']:g} s"


def _not_said(problem: planner.Smooth | planner.Conditioned, condition: Any) -> tuple[str, ...]:
    """Return what is assumed of F without L, sigma2 and gap."""
    if isinstance(problem, planner.Smooth):
        return ()
    number = () if condition is not None else (f"condition number {CONDITION}",)
    return ("strongly convex F, full gradients", *number)


def _not_said_of(codec: Any) -> tuple[str, ...]:
    return ("codecs as fast as on this machine",) if codec is None else ()


def _hypotheses(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Return the hypotheses of all theorems that were used, each once."""
    from bounds import all_bounds

    used = dict.fromkeys(choice.theorem for choice in choices if choice.feasible)
    return tuple(dict.fromkeys(words for name in used for words in all_bounds()[name].setting.hypotheses()))


def _asked(operators: Iterable[Any]) -> list[Any]:
    asked = [operators] if isinstance(operators, str) else list(operators)
    if not 1 <= len(asked) <= MOST_OPERATORS:
        raise ValueError(
            f"operators must name 1 to {MOST_OPERATORS} compressors; got {len(asked)}: "
            'give for example ["tcdq:omega=1", "identity"]'
        )
    return asked


def _refuse_beside_a_pilot(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} goes with a plan by theorems; got {name} = {value} beside a pilot, which has measured what "
                "counts: leave it out"
            )


def _needs(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Return what each theorem that was used is about and needs, from its setting."""
    from bounds import all_bounds

    used = dict.fromkeys(choice.theorem for choice in choices if choice.feasible)
    return tuple(f"{name}: {all_bounds()[name].setting.text()}" for name in used)


def _ranked(choices: Sequence[Choice], asked: Asked) -> tuple[Choice, ...]:
    feasible = sorted((c for c in choices if c.feasible), key=asked.cost)
    least = asked.cost(feasible[0])[0] if feasible else 0.0
    ranked = [replace(c, relative_cost=asked.cost(c)[0] / least if least else 1.0) for c in feasible]
    return (*ranked, *(c for c in choices if not c.feasible))


def _way(exchange: Any) -> Way:
    if exchange not in WAYS:
        raise ValueError(f"exchange must be one of {', '.join(WAYS)}; got {exchange!r}: choose one of them")
    return cast(Way, exchange)


def _run(
    *, codec: list[str] | None = None, pilot: str | None = None, cluster: Cluster, **given: Any
) -> Ranking | PilotPlan:
    if pilot is None:
        return plan(codec=coding(codec), cluster=cluster, **given)
    return _by(Pilot.read(pilot), cluster, codec=coding(codec), **given)


def _by(pilot: Pilot, cluster: Cluster, **given: Any) -> PilotPlan:
    asked: dict[str, Any] = {"pilot": pilot, "cluster": with_steps_of(pilot, cluster), **given}
    return cast(PilotPlan, plan(**asked))


def coding(given: list[str] | None) -> Any:
    """Return one word, one pair for all operators, or pairs by specification."""
    if given is None:
        return None
    named: dict[str, Any] = {}
    for text in given:
        specification, _, pair = text.rpartition("=")
        seconds = pair.split(",")
        if len(seconds) != 2 and not (len(given) == 1 and not specification):
            raise ValueError(f"codec must be ENCODE,DECODE or SPEC=ENCODE,DECODE; got {text!r}: as in qsgd:4=2e-9,1e-9")
        named[specification] = dict(zip(NUMBERS, seconds, strict=True)) if len(seconds) == 2 else pair
    if "" in named and len(given) > 1:
        raise ValueError(f"codec takes one pair for all operators or pairs by SPEC; got {' '.join(given)}: name each")
    return named.get("", named)


def _answer(*, d: numbers.Number | None = None, pilot: Pilot | None = None, **given: Any) -> Ranking | PilotPlan:
    if pilot is not None:
        return _by(pilot, d=d, **given)
    if d is not None and whole("d", d) > MOST_DIMENSION:
        raise refusal("d", f"d <= {MOST_DIMENSION} over HTTP", d)
    return plan(d=d, **given)


RANKED = "tcdq:omega=1, tcdq:omega=0.1, identity, natural, randomk:0.1, qsgd:4096, topk:0.01"
CALL = Call(
    name="plan",
    summary="rank compressors for a model and a cluster",
    place=6,
    function=plan,
    command=Command(
        examples=(
            "--d 25600000 --workers 16 --step-s 0.08 --operators tcdq:omega=1 qsgd:4 topk:0.01 --target 0.1",
            "--d 25600000 --workers 64 --step-s 0.08 --compute constant --target 0.1 --codec free",
            "--d 1e6 --workers 8 --operators shared_scale:12,block=256 tcdq:omega=0.1 --target 0.1 --codec free",
            "--d 1e6 --workers 4 --operators identity tcdq:omega=1 --target 0.1 --L 1 --sigma2 1 --gap 1 --json",
            "--d 1e8 --workers 8 --operators identity tcdq:omega=1 --target 0.1 --codec tcdq:omega=1=9e-11,5e-11",
            "--d 7e9 --workers 64 --nodes 8 --inside nvlink4,3e-6 --bandwidth-bit-per-s 1e11 --target 0.1 --codec free",
            "--pilot pilot.json --workers 64 --nodes 8 --inside nvlink4,3e-6 --between infiniband_ndr,5e-6",
            "--pilot transformer --d 1.3e9 --workers 64 --step-s 0.5 --bandwidth-bit-per-s 1e11",
        ),
        run=_run,
        kinds={"operators": Specifications(), "codec": coding_seconds()},
        record=lambda result: result.to_dict() | {"turns": list(result.turns)},
        ok=lambda result: result.ranking[0].feasible,
    ),
    route=Route(
        about="A model, a cluster and compressors; "
        "with L, sigma2 and gap averaging of local updates is planned too.\n\n"
        "pilot: what gpu_validation.pilot has measured, instead of d, the constants and the cluster's steps; it "
        "is used for the answer and kept nowhere.\n\n"
        "codec: seconds of coding; if left out, the pilot has measured it, or each operator is timed on the server, "
        "once a worker process.",
        example={
            "d": 25600000,
            "cluster": CLUSTER_EXAMPLE,
            "operators": ["tcdq:omega=1", "qsgd:4", "topk:0.01"],
            "target": 0.1,
            "codec": {"encode_s_per_coordinate": 8.5e-9, "decode_s_per_coordinate": 4.3e-9},
        },
        run=_answer,
        kinds={"operators": Specifications()},
        stated=False,
        most_bytes=MOST_PILOT_BYTES,
    ),
    controls={
        "d": Control("Parameters", "d", decades=(2, 12), whole=True),
        "operators": Control("Operators to rank", start=RANKED),
        "target": Control("Target of the plan", decades=(-6, -0.01)),
        "condition": Control("Condition number", "κ", decades=(0, 5), start=str(CONDITION)),
    },
)
