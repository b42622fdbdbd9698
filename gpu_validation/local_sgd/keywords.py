"""Keywords of all that average periodically, stated once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from bounds.schedules import Schedule
from operators import Feedback, Key, Operator
from operators.summed import Summed

from .candidates import ExchangePart
from .merge_rules import Merge
from .mixing import Mixing
from .outer import BlockMomentum, OuterFactory
from .parts import Membership, Pacing

Outer = OuterFactory | BlockMomentum | Sequence[OuterFactory]


class Parts(TypedDict, total=False):
    """Keywords with which ``PeriodicAveraging`` and all that makes one describe an averaging."""

    operator: Operator | Feedback | Summed | Literal["auto"] | None
    exchange: ExchangePart | None
    merge: Merge
    outer: Outer | None
    mixing: Mixing
    membership: Membership
    key: Key


class ScheduledParts(Parts, total=False):
    """The parts with their schedule."""

    schedule: int | Schedule | Literal["auto"] | Pacing
