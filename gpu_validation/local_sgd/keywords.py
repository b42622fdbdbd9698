"""Keywords of all that average periodically, stated once."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Final, Literal, ParamSpec, TypedDict

from bounds.schedules import Schedule
from operators import Feedback, Key, Operator
from operators.summed import Summed

from ..distributed.quorum import Quorum
from .candidates import Candidates, ExchangePart
from .merge_rules import Blocking, Corrected, Delayed, Eager, Merge, Overwrite
from .mixing import Elastic, Gossip, Mixing, Sampled
from .outer import SGD, BlockMomentum, Nesterov, OuterFactory
from .parts import Gather, Membership, Nodes, Pacing, TwoShot

P = ParamSpec("P")
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


# Of each keyword the noun and the parts; the first part with a parameter is the one that an error names.
_PARTS: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "merge": ("a merge rule", (Corrected, Blocking, Overwrite, Delayed, Eager)),
    "exchange": ("an exchange", (TwoShot, Gather, Candidates)),
    "membership": ("the membership", (Nodes, Quorum)),
    "outer": ("an outer optimizer", (Nesterov, SGD, BlockMomentum)),
    "mixing": ("a mixing", (Elastic, Gossip, Sampled)),
    "schedule": ("a pacing", (Pacing,)),
}
# Words of version 0.1 and of other libraries.
_OTHER_WORDS: Final = {
    "block_momentum": "outer=BlockMomentum(beta)",
    "compressor": "operator=",
    "exchange_operator": "exchange=TwoShot(operator, means)",
    "gossip": "mixing=ring(m)",
    "group": "process_group=",
    "nodes": "membership=Nodes(ranks_per_node)",
    "outer_optimizer": "outer=Nesterov(lr, momentum)",
    "overlap": "merge=Corrected()",
    "period": "schedule=",
    "quorum": "membership=Quorum(...)",
    "fragment_sync_delay": "merge=Overwrite(delay=...)",
    "fragment_update_alpha": "merge=Overwrite(local_weight=...)",
    "model_fragments": "merge=Overwrite(fragments=...)",
    "second": "exchange=TwoShot(operator, means)",
    "seed": "key=Key(seed)",
    "sync_every": "schedule=",
    "tau": "schedule=",
    "uneven": "membership=Uneven()",
}


def name_parts(
    keywords: type | None = None, *, schedule: str = "schedule"
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate a constructor: an unknown keyword, or one passed by position, raises TypeError with the remedy.

    ``keywords`` is the TypedDict of its ``**settings``; ``schedule`` is its word for the schedule.
    """

    def decorate(init: Callable[P, None]) -> Callable[P, None]:
        kinds = {p.name: p.kind for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD}
        by_position = [name for name, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        accepted = [*kinds, *(keywords.__annotations__ if keywords else ())]

        @functools.wraps(init)
        def checked(*positional: P.args, **named: P.kwargs) -> None:
            owner = type(positional[0]).__name__
            if len(positional) > len(by_position):
                raise TypeError(
                    f"{owner} takes {' and '.join(by_position[1:]) or 'nothing'} by position; got "
                    f"{len(positional) - 1} values: name the others, such as {schedule}=8 or operator=QSGD(16)"
                )
            for name in [name for name in named if name not in accepted]:
                raise TypeError(f"{owner} has no keyword {name!r}: {_remedy(name, named[name], accepted, schedule)}")
            init(*positional, **named)

        return checked

    return decorate


def _remedy(name: str, value: object, accepted: list[str], schedule: str) -> str:
    if name in _OTHER_WORDS:
        return f"use {_OTHER_WORDS[name].replace('schedule=', f'{schedule}=')}"
    for keyword, (noun, parts) in _PARTS.items():
        for part in parts:
            parameters = inspect.signature(part).parameters
            if name in parameters:
                given = repr(value) if isinstance(value, bool | int | float | str | Operator) else "..."
                needed = [p.name for p in parameters.values() if p.default is p.empty and p.name != name]
                call = ", ".join([f"{other}=..." for other in needed] + [f"{name}={given}"])
                word = schedule if keyword == "schedule" else keyword
                return f"{name} belongs to {noun}; use {word}={part.__name__}({call})"
    near = difflib.get_close_matches(name, accepted, n=1)
    return f"use {near[0]}" if near else f"it takes {', '.join(accepted[1:])}"
