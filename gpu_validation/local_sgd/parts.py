"""Parts of an averaging: what is sent (exchange), who takes part (membership), and what a schedule observes (pacing).

The other parts are in ``merge_rules``, ``outer``, ``candidates`` and ``mixing``.  Every part checks its own values.
"""

from __future__ import annotations

import logging
import operator as integers
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from bounds.schedules import Schedule
from operators import Feedback, Operator
from operators.exchange import choose
from operators.summed import Summed

from ..distributed.quorum import Quorum
from .clock import Clock

log = logging.getLogger("gpu_validation")


# -- exchange --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Gather:
    """Exchange in which every rank sends its message to all others: (m - 1) b bits per coordinate.

    Parameters
    ----------
    operator : Operator or Feedback or None, optional
        Compresses the movement of a round; None sums whole models exactly.
    errors : bool, optional
        Whether a rank also measures the compression error of its own movement.
    """

    operator: Operator | Feedback | None = None
    errors: bool = field(default=True, kw_only=True)

    name: ClassVar = "gather"
    means: ClassVar[None] = None


@dataclass(frozen=True)
class TwoShot:
    """Exchange over owners of shards: (1 - 1/m)(b1 + b2) bits per coordinate.

    Every rank sends each shard to its owner, which sends the compressed mean of its shard to all.

    Parameters
    ----------
    operator : Operator or Feedback
        Compresses the movement of a round.
    means : Operator or Feedback or None, optional
        Compresses the means; None uses ``operator``, so that a Feedback keeps a residual at both ends.
    errors : bool, optional
        Whether a rank also measures the compression error of its own movement; it then decodes its own shards too.

    Raises
    ------
    ValueError
        Without an operator, and for a Summed, which has an exchange of its own.
    """

    operator: Operator | Feedback
    means: Operator | Feedback | None = None
    errors: bool = field(default=True, kw_only=True)

    name: ClassVar = "two_shot"

    def __post_init__(self) -> None:
        for stage in (self.operator, self.operator if self.means is None else self.means):
            if not isinstance(stage, Operator | Feedback):
                raise ValueError(
                    f"{type(self).__name__} needs operators for movements and means; got {stage}: use Gather() for "
                    "whole models, and Sum(method) for a Summed"
                )


@dataclass(frozen=True)
class Cheapest(TwoShot):
    """``Gather`` or ``TwoShot``, whichever sends fewer bytes by the operators' declared sizes."""

    def chosen(self, *, d: int, m: int) -> Gather | TwoShot:
        """Return the exchange with fewer bytes.

        Parameters
        ----------
        d : int
            Number of coordinates.
        m : int
            Number of ranks.
        """
        choice = choose("auto", self.operator, self.means, d=d, m=m)
        log.info("%s", choice)
        if choice.exchange == "gather":
            return Gather(self.operator, errors=self.errors)
        return TwoShot(self.operator, self.means, errors=self.errors)


@dataclass(frozen=True)
class Sum:
    """Exchange in which messages are added on the way, as ``operators.summed`` defines.

    Parameters
    ----------
    operator : Summed
        The method.

    Raises
    ------
    ValueError
        For an operator that is not a Summed.
    """

    operator: Summed

    name: ClassVar = "sum"
    means: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not isinstance(self.operator, Summed):
            raise ValueError(f"Sum needs a method of operators.summed; got {self.operator}: use Gather or TwoShot")


# -- membership ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class All:
    """All ranks take part in every averaging, each after the same number of local steps."""


@dataclass(frozen=True)
class Uneven:
    """Ranks may have different numbers of local steps; each rank ends with ``leave``.

    Every averaging begins with a roll call of 8 bytes from every rank to every other.
    """


@dataclass(frozen=True)
class Nodes:
    """Consecutive ranks form a node and sum their movements exactly, one shard per rank.

    Nodes exchange the compressed means of the shards.  A node then sends as much over the slow link as one rank would.

    Parameters
    ----------
    ranks_per_node : int
        Ranks of a node, >= 1.

    Raises
    ------
    ValueError
        For any other value.
    """

    ranks_per_node: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks_per_node", whole_number("ranks_per_node", self.ranks_per_node))
        if self.ranks_per_node < 1:
            raise ValueError(f"ranks_per_node must be >= 1; got {self.ranks_per_node}")


Membership = All | Uneven | Nodes | Quorum


# -- pacing ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Pacing:
    """A schedule and what it observes.

    Parameters
    ----------
    schedule : int or Schedule or {"auto"}
        Local steps per round (>= 1), a rule of ``bounds.schedules``, or "auto".
    steps : int or None, optional
        Local steps of the whole run, if known.
    clock : Clock or None, optional
        Measures seconds for the schedule and for the record of averagings; None is the wall clock.
    piggyback : bool, optional
        Whether loss, clock and learning rate travel with the models.  The clock is then read before the averaging.
        Otherwise they need a collective of their own after it.

    Raises
    ------
    ValueError
        For numbers that are not whole, and for another string.
    """

    schedule: int | Schedule | Literal["auto"]
    steps: int | None = None
    clock: Clock | None = field(default=None, compare=False)
    piggyback: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.schedule, str) and self.schedule != "auto":
            raise ValueError(f'schedule must be a number, a rule or "auto"; got {self.schedule!r}')
        if not isinstance(self.schedule, Schedule | str):
            object.__setattr__(self, "schedule", whole_number("schedule", self.schedule))
        if self.steps is not None:
            object.__setattr__(self, "steps", whole_number("steps", self.steps))

    @classmethod
    def of(cls, schedule: int | Schedule | Literal["auto"] | Pacing) -> Pacing:
        """Return the pacing that a schedule stands for.

        Parameters
        ----------
        schedule : int or Schedule or {"auto"} or Pacing
            A schedule, or a pacing, which is returned.
        """
        return schedule if isinstance(schedule, Pacing) else cls(schedule)


# -- numbers ---------------------------------------------------------------------------------------------
def whole_number(name: str, value: Any) -> int:
    """Convert an integer of any library to int; ``name`` is the setting that an error names.

    Raises ValueError for any other value, including True and False.
    """
    if not isinstance(value, bool | np.bool_):
        try:
            return integers.index(value)
        except TypeError:
            pass
    also = ', a rule of bounds.schedules or "auto"' if name in ("schedule", "local_sgd_steps") else ""
    raise ValueError(f"{name} must be a whole number{also}; got {value!r}: give an integer such as 8")


def real_number(name: str, value: Any) -> float:
    """Convert a number of any library to float; raises ValueError for any other value."""
    if not isinstance(value, bool | np.bool_ | str):
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise ValueError(f"{name} must be a number; got {value!r}: give one such as 0.9")
