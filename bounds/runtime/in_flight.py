"""Seconds of a local step when an average travels while the workers go on, whole or in fragments.

Setting.  All workers wait for one another where a message is sent and where its mean is merged in.  A round of tau
steps sends after tau - delta of them; the mean arrives D seconds later, and who has made delta steps before waits::

    tau c = E max_i S_i(tau - delta) + E max(max_i S_i(delta), D).

At delta = tau this is E max(max_i S_i(tau), D), at delta = 0 the blocking E max_i S_i(tau) + D.  Workers that wait for
the message alone, not for one another, are no slower.  P fragments
have a P-th of the coordinates each and are staggered by tau/P steps.  The same then holds of every fragment, with tau/P
in the place of tau and the D of its shorter message.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .checks import nonnegative, positive, positive_integer
from .law import Law
from .model import Bits, RuntimeModel


def seconds_per_step_in_flight(
    model: RuntimeModel,
    *,
    tau: int,
    in_flight: int | None = None,
    parts: int = 1,
    m: int | None = None,
    bits: float | None = None,
) -> float:
    """Return the mean time of one local step, waiting included, in seconds.

    Parameters
    ----------
    model : RuntimeModel
        Step times and the time of one averaging, which must be fixed.
    tau : int
        Local steps between two averages of the same fragment, a multiple of parts.
    in_flight : int or None, optional
        Steps made while a message travels, 0 to tau/parts; None: all of them.
    parts : int, optional
        Fragments of the model, sent one after the other.
    m : int or None, optional
        Workers, unless the model has them.
    bits : float or None, bits, optional
        Length of one worker's message of the whole model; needed only with a communication cost.

    Raises
    ------
    ValueError
        For arguments outside these ranges, or an averaging of random length.
    """
    tau, parts = positive_integer("tau", tau), positive_integer("parts", parts)
    if tau % parts:
        raise ValueError(f"tau must be a multiple of parts; got tau = {tau}, parts = {parts}: fragments take turns")
    steps = tau // parts
    flight = steps if in_flight is None else in_flight
    if not (isinstance(flight, int) and 0 <= flight <= steps):
        raise ValueError(f"in_flight must be an integer from 0 to tau/parts = {steps}; got {in_flight}")
    if isinstance(model.delay_s, Law):
        raise ValueError(f"averages in flight need a fixed delay_s; got {model.delay_s!r}: give its mean")
    workers = model.workers(m)
    message: Bits = None if bits is None else bits / parts
    arrival_s = model.seconds_per_averaging(m=workers, bits=message)
    before_s = (steps - flight) * model.step.expected_max(m=workers, tau=steps - flight) if flight < steps else 0.0
    meanwhile_s = model.step.expected_max_above(arrival_s, m=workers, tau=flight) if flight else arrival_s
    return (before_s + meanwhile_s) / steps


@dataclass(frozen=True)
class FragmentLoad:
    """What fragments ask of a worker's link.

    Parameters
    ----------
    travelling : int
        Fragments that are under way at the same time.
    peak_bit_per_s : float, bit/s
        Bandwidth while they are.
    mean_bit_per_s : float, bit/s
        Over a whole round.
    """

    travelling: int
    peak_bit_per_s: float
    mean_bit_per_s: float


def fragment_load(*, bits: float, parts: int, tau: int, in_flight: int, step_s: float) -> FragmentLoad:
    """Return the bandwidth at which no step has to wait, for steps of equal length.

    A fragment of bits/parts has in_flight steps to travel, and one leaves every tau/parts steps.

    Parameters
    ----------
    bits : float, bits
        What one worker sends of the whole model.
    parts : int
        Fragments, >= 1.
    tau : int
        Local steps between two averages of the same fragment, a multiple of parts.
    in_flight : int
        Steps that a fragment travels, 1 to tau.
    step_s : float, seconds
        Of one local step, > 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    tau, parts, in_flight = (
        positive_integer(name, value) for name, value in (("tau", tau), ("parts", parts), ("in_flight", in_flight))
    )
    if tau % parts or in_flight > tau:
        raise ValueError(
            f"tau must be a multiple of parts and in_flight <= tau; got tau = {tau}, parts = {parts}, "
            f"in_flight = {in_flight}"
        )
    bits, step_s = nonnegative("bits", bits), positive("step_s", step_s)
    travelling = math.ceil(in_flight * parts / tau)
    return FragmentLoad(travelling, travelling * bits / parts / (in_flight * step_s), bits / (tau * step_s))
