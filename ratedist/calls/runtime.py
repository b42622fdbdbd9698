"""What time buys: the seconds of a local step, its share of an averaging included."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, overload

from .. import numbers
from ..cluster.cluster import Cluster, Exchange, checked_cluster
from ..numbers import read, real
from ..plans.problem import spread
from ..records import Quantities, Quantity, Statement
from .call import Call, Command, Route
from .shared import CLUSTER_EXAMPLE, message_bits, parameters_not_said

FINITE_COMPUTE = "steps are independent between workers and over time"


@overload
def runtime(
    cluster: Cluster,
    *,
    tau: numbers.Number,
    bits: numbers.Number | None = None,
    d: numbers.Number | None = None,
    exchange: Exchange = "sum",
) -> Quantity: ...
@overload
def runtime(
    cluster: Cluster,
    *,
    tau: numbers.Numbers,
    bits: numbers.Numbers | None = None,
    d: numbers.Numbers | None = None,
    exchange: Exchange = "sum",
) -> Quantity | Quantities: ...
def runtime(
    cluster: Cluster,
    *,
    tau: numbers.Numbers,
    bits: numbers.Numbers | None = None,
    d: numbers.Numbers | None = None,
    exchange: Exchange = "sum",
) -> Quantity | Quantities:
    """Return mean seconds of one local step, its share of an averaging included.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    tau : array_like
        Local steps between averagings.
    bits : array_like, bits, optional
        Bits of one worker's message; 0 counts latency alone.  Either this or d, unless there is one worker.
    d : array_like, optional
        Number of parameters, sent in binary32, instead of bits.  Arrays broadcast.
    exchange : {"sum", "gather"}, optional
        How messages travel.  "sum": added on their way (dense ones); "gather": all to all ranks (compressed ones).

    Raises
    ------
    ValueError
        For arguments outside the ranges, and without the length of a message.

    Notes
    -----
    c(tau) = E max over workers of the mean of tau steps + D(bits)/tau.

    Examples
    --------
    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    >>> rd.runtime(cluster, tau=8, bits=32 * 25_600_000)
    Quantity(0.156797471 s, certified in [0.15679747127180324, 0.1567974712718044], runtime_model)
    """
    cluster = checked_cluster(cluster)
    if exchange not in ("sum", "gather"):
        raise ValueError(f"exchange must be sum or gather; got {exchange!r}: choose one of them")
    given = {"tau": read("tau", tau), "bits": message_bits(cluster, bits, d)}

    assumed = (*cluster.assumed(), *parameters_not_said(d))

    def one(at: dict[str, str]) -> Quantity:
        bits_each = real("bits", at["bits"])
        value, interval = cluster.step_seconds_value(int(Fraction(at["tau"])), bits_each, exchange)

        def state() -> Statement:
            synchronous = cluster.step_seconds(1, bits_each, exchange).midpoint
            advice = _saving(value, synchronous, cluster.step().mean_s)
            return replace(_runtime_statement(cluster, at, exchange, advice), assumed=assumed)

        return Quantity(value, statement=state, interval=interval)

    return spread(given, one, replace(_runtime_statement(cluster, given, exchange, ""), assumed=assumed))


def _saving(value: float, synchronous: float, mean: float) -> str:
    if mean == 0:
        return "Computing takes no time here: raise tau as far as the error allows"
    return (
        f"{synchronous / value:.3g} times faster than averaging after every step; no tau gains more than "
        f"{synchronous / mean:.3g} times"
    )


def _runtime_statement(cluster: Cluster, at: dict[str, Any], exchange: Exchange, advice: str) -> Statement:
    return Statement(
        quantity="mean seconds of one local step, its share of the averaging included",
        unit="s",
        side="tight",
        theorem="runtime_model",
        reference="wang2018, Section 3, arXiv:1810.08313",
        status="proved",
        assumptions=(cluster.in_words(), FINITE_COMPUTE),
        advice=advice,
        verdict=f"{{value}} per local step (optimizer step) with tau = {at['tau']}, its share of an averaging included."
        if isinstance(at["tau"], str)
        else "",
        facts={"gain": advice},
        formula=r"c(\tau) = E\max_{i\le m}\frac1\tau\sum_{k\le\tau} Y_{i,k} + \frac D\tau",
        at={**at, "cluster": cluster},
        function=partial(runtime, cluster, exchange=exchange),
    )


CALL = Call(
    name="runtime",
    summary="seconds of one local step, its share of an averaging included",
    place=3,
    function=runtime,
    command=Command(examples=("--workers 16 --step-s 0.08 --tau 1 4 16 --bits 8.192e8",)),
    route=Route(
        about="Local steps between averagings, and the length of a message.",
        example={"cluster": CLUSTER_EXAMPLE, "tau": 8, "bits": 8.192e8},
    ),
)
