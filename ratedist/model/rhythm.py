"""When averages are made, in how many messages, and what is computed while these travel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..numbers import refusal, whole

BACKWARD_SHARE = 2 / 3  # of a step: two of its three matrix products a layer
FIRST_BUCKET_BYTES, BUCKET_BYTES = 2**20, 25 * 2**20  # of torch's DistributedDataParallel
DENSE_BYTES = 4


@dataclass(frozen=True)
class Rhythm:
    """When the workers average.

    Parameters
    ----------
    tau : int
        Local steps between two averages of the same parameter.
    in_flight : int, optional
        Steps made while a message travels, at most tau/parts; 0: the workers wait.
    parts : int, optional
        Fragments of the model, sent one after the other, every tau/parts steps.
    buckets : int, optional
        Messages of a gradient, of which all but the last travel during the backward pass; only where workers average
        after every step and wait.
    """

    tau: int = 1
    in_flight: int = 0
    parts: int = 1
    buckets: int = 1

    @property
    def messages(self) -> int:
        """Into how many the model is cut."""
        return self.parts * self.buckets

    @property
    def steps(self) -> int:
        """Local steps between two messages of a worker, whatever their fragments."""
        return self.tau // self.parts

    @property
    def oldest(self) -> int:
        """How many steps old the oldest gradient is that an average adds up."""
        return self.tau + self.in_flight

    def in_words(self) -> str:
        """Return what follows the name of operator and exchange; nothing where workers average after every step."""
        buckets = f", in {self.buckets} buckets during the backward pass" if self.buckets > 1 else ""
        steps = "" if self.tau == 1 else f", averaging every {self.tau} steps"
        parts = f" in {self.parts} fragments" if self.parts > 1 else ""
        flight = "" if self.in_flight == self.steps else f" for {self.in_flight} of {self.steps} steps"
        return buckets + steps + parts + (f", in flight{flight}" if self.in_flight else "")


def rhythm_of(*, tau: Any, overlap: bool, parts: Any = 1, in_flight: Any = None, buckets: Any = 1) -> Rhythm:
    """Return the rhythm that a user has described.

    Parameters
    ----------
    tau : int
        Local steps between two averages of the same parameter.
    overlap : bool
        Whether averages travel while the workers go on.
    parts : int, optional
        Fragments of the model.
    in_flight : int or None, optional
        Steps made while a message travels; None: all between two messages.
    buckets : int, optional
        Messages of a gradient.

    Raises
    ------
    ValueError
        For numbers that do not fit together.
    """
    steps, fragments, messages = whole("tau", tau), whole("parts", parts), whole("buckets", buckets)
    if not overlap and (fragments > 1 or in_flight is not None):
        given = f"parts = {parts}" if fragments > 1 else f"in_flight = {in_flight}"
        raise ValueError(f"{given} is of averages in flight; got no overlap: give overlap too, or leave it out")
    if steps % fragments:
        raise ValueError(f"tau must be a multiple of parts; got tau = {tau}, parts = {parts}: fragments take turns")
    if messages > 1 and (steps > 1 or overlap):
        raise ValueError(
            f"buckets travel during the backward pass of every step; got buckets = {buckets} beside tau = {tau}"
            f"{' in flight' * overlap}: leave one of them out"
        )
    between = steps // fragments
    flight = between if in_flight is None else whole("in_flight", in_flight)
    if not 1 <= flight <= between:
        raise refusal("in_flight", f"1 <= in_flight <= tau/parts = {between}", in_flight)
    return Rhythm(steps, flight if overlap else 0, fragments, messages)


def buckets_of(d: int) -> int:
    """Return into how many equal messages a gradient is cut for the backward pass.

    Parameters
    ----------
    d : int
        Trained parameters.

    Notes
    -----
    As many as DistributedDataParallel makes unless told otherwise, of 25 MiB; two for what is shorter than that and
    longer than its first bucket of 1 MiB.
    """
    length = DENSE_BYTES * d
    return 1 if length <= FIRST_BUCKET_BYTES else max(2, -(-length // BUCKET_BYTES))


def rhythms(*, longest: int, d: int, workers: int) -> Iterator[Rhythm]:
    """Yield the rhythms that a plan looks at.

    Powers of two of local steps, fragments and steps in flight, and the most that the pilot has looked at; in flight
    only while no gradient is older than that.  Fragments and buckets have a coordinate for every worker.

    Parameters
    ----------
    longest : int
        The most local steps that the pilot has looked at.
    d : int
        Trained parameters.
    workers : int
        That train.
    """
    buckets = buckets_of(d)
    if 1 < buckets <= d // workers:
        yield Rhythm(buckets=buckets)
    for tau in rounds_of(longest):
        yield Rhythm(tau)
        for parts in rounds_of(tau):
            if tau % parts == 0 and (parts == 1 or (parts & (parts - 1) == 0 and parts <= d // workers)):
                between = tau // parts
                for in_flight in rounds_of(between):
                    if tau + in_flight <= longest:
                        yield Rhythm(tau, in_flight, parts)


def rounds_of(longest: int) -> list[int]:
    """Return the powers of two up to a number, and the number.

    Parameters
    ----------
    longest : int
        The number, >= 1.
    """
    return sorted({1 << k for k in range(longest.bit_length())} | {longest})
