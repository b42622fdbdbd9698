"""Parts of a run that all ranks must share, checked before any message, and the keywords that name them."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, ParamSpec, TypedDict

import torch

from bounds.schedules import Fixed, GradientRetention, RateAndRetention, Schedule
from operators import Feedback, Key, Operator
from operators.exchange.choice import lengths
from operators.fingerprint import Fingerprint, fingerprint, made_optimizer
from operators.summed import Summed

from ..processes.quorum import Quorum
from ..records.numbers import whole_number
from .exchange.parts import Candidates, Cheapest, ExchangePart, Gather, Sum, TwoShot, exchange_of
from .membership.parts import All, Membership, Nodes, Uneven
from .merge.rules import Blocking, Corrected, Delayed, Eager, Merge, Overwrite
from .mixing import Elastic, Full, Gossip, Mixing, Sampled
from .outer import SGD, BlockMomentum, Nesterov, OuterFactory
from .pacing.clock import Clock
from .structure import shard_of

P = ParamSpec("P")
Outer = OuterFactory | BlockMomentum | Sequence[OuterFactory]


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
    """The parts with their schedule: all that ``SimulatedWorkers`` takes besides models and optimizers.

    Notes
    -----
    ``PeriodicAveraging`` describes each keyword.  A keyword that is left out has its default there: whole models are
    averaged after every step, all workers take part, and all wait for the mean.
    """

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


@dataclass(frozen=True)
class Settings:
    """Checked parts of an averaging; ``PeriodicAveraging`` explains each of them.

    ``exchange``, ``merge``, ``outer``, ``mixing``, ``membership`` and ``key`` have the meaning they have there;
    ``pacing`` is its ``schedule``.

    Raises
    ------
    ValueError
        For parts that do not work together.
    """

    pacing: Pacing
    exchange: ExchangePart
    merge: Merge = Blocking()  # noqa: RUF009  frozen
    outer: Outer | None = None
    mixing: Mixing = Full()  # noqa: RUF009  frozen
    membership: Membership = All()  # noqa: RUF009  frozen
    key: Key = Key(0)  # noqa: RUF009  frozen

    @classmethod
    def of(cls, *, schedule: Any = 1, operator: Any = None, exchange: Any = None, **parts: Any) -> Settings:
        """Return the settings that keywords of ``PeriodicAveraging`` stand for."""
        return cls(Pacing.of(schedule), exchange_of(operator, exchange), **parts)

    def __post_init__(self) -> None:
        if isinstance(self.outer, Sequence):
            object.__setattr__(self, "outer", tuple(self.outer))
        for name, kind, examples in (
            ("merge", Merge, "Blocking(), Corrected(), Overwrite(), Delayed() or Eager()"),
            ("mixing", Mixing, "a mode of gpu_validation.averaging.mixing, such as Full() or ring(m)"),
            ("membership", Membership, "All(), Uneven(), Nodes(ranks_per_node) or a Quorum"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"{name} must be {examples}; got {getattr(self, name)!r}")
        self.merge.check(self.rule)
        self._check_outer()
        for part, active, clashes, remedy in self._clashes():
            for setting, clashing in clashes.items():
                if active and clashing:
                    raise ValueError(f"{part} does not work with {setting}: {remedy}")

    def _check_outer(self) -> None:
        if not all(map(callable, self.outers)):
            raise ValueError(
                "outer must be Nesterov(lr, momentum), SGD(lr, momentum), BlockMomentum(beta) or make an optimizer of "
                f"torch from a list of tensors; got {self.outer!r}"
            )
        if isinstance(self.outer, tuple) and len(self.outer) != self.merge.parts:
            raise ValueError(
                f"outer needs one optimizer for all fragments, or one per fragment; got {len(self.outer)} for "
                f"{self.merge.parts} fragments"
            )

    def _clashes(self) -> Iterator[tuple[str, bool, dict[str, bool], str]]:
        """Yield every part that excludes others, whether it is active, what it excludes, and the remedy."""
        fixed, in_flight, operator = isinstance(self.rule, Fixed), self.merge.in_flight, self.operator
        mixing = {f"mixing = {self.mixing!r}": not isinstance(self.mixing, Full)}
        schedule = {f"schedule = {self.rule}": not fixed}
        states = {'optimizer_state = "average"': self.merge.optimizer_state == "average"}
        piggyback, flight = {"piggyback": self.pacing.piggyback}, {f"merge = {self.merge}": in_flight}
        members = {f"membership = {self.membership}": not isinstance(self.membership, All)}
        auto = {f"schedule = {self.rule}": self.pacing.schedule != "auto"}
        remedy = 'give schedule="auto", full averaging of all ranks and Blocking()'
        yield "Candidates", self.chooses, auto | mixing | flight | members | piggyback, remedy
        yield "piggyback", self.pacing.piggyback, mixing, "use full averaging"
        block = {f"outer = {self.outer}": isinstance(self.outer, BlockMomentum)}
        remedy = "use full averaging without piggyback, and take momentum from outer=SGD(lr, momentum)"
        yield f"merge = {self.merge}", in_flight, mixing | block | piggyback, remedy
        sent = {f"operator = {operator}": operator is not None}
        moves = {f"outer = {self.outer}": self.moves_outside, f"schedule = {self.rule}": self.measures}
        remedy = "it has no common model: use full or sampled averaging"
        yield type(self.mixing).__name__, not self.mixing.common, sent | moves, remedy
        yield "Eager", isinstance(self.merge, Eager), sent, "send whole models, or use another merge"
        alone = {f"operator = {operator}": operator is None or isinstance(operator, Summed)}
        remedy = "use full averaging, and an operator that is not a Summed"
        yield "Nodes", isinstance(self.membership, Nodes), mixing | alone, remedy
        eager = {f"merge = {self.merge}": isinstance(self.merge, Eager)}
        late = {f"merge = {self.merge} and {self.rule}": in_flight and not fixed}
        remedy = "use full averaging without piggyback, keep or reset the optimizers, and in flight fix tau"
        yield "Uneven", self.uneven, mixing | piggyback | states | eager | late, remedy
        memory = {
            f"{name} = {value}": isinstance(value, Feedback)
            for name, value in (("operator", operator), ("means", self.exchange.means))
        }
        remedy = "use full averaging, Blocking(), a fixed tau and operators without memory; do not average optimizers"
        yield "a quorum", self.least > 0, mixing | schedule | flight | memory | states, remedy

    @property
    def operator(self) -> Operator | Feedback | Summed | None:
        """What compresses movements; None for whole models, and where it is chosen in every round."""
        return self.exchange.operator

    @property
    def ranks_per_node(self) -> int:
        """Ranks that sum exactly; 1 without nodes."""
        return self.membership.ranks_per_node if isinstance(self.membership, Nodes) else 1

    @property
    def uneven(self) -> bool:
        """Whether ranks may have different numbers of steps."""
        return isinstance(self.membership, Uneven)

    @property
    def least(self) -> int:
        """Smallest number of ranks of a quorum; 0 without one."""
        return self.membership.least if isinstance(self.membership, Quorum) else 0

    @property
    def outers(self) -> tuple[OuterFactory, ...]:
        """The factories of the outer optimizers, which are none, one for all fragments, or one per fragment."""
        if self.outer is None or isinstance(self.outer, BlockMomentum):
            return ()
        return tuple(self.outer) if isinstance(self.outer, Sequence) else (self.outer,)

    @property
    def hidden_bytes(self) -> bool:
        """Whether bytes are sent in another pattern than one averaging of all ranks per round."""
        return self.merge.in_flight or self.uneven or self.least > 0

    @property
    def moves_outside(self) -> bool:
        """Whether the common model takes an outer step instead of moving to the mean."""
        return self.outer is not None

    @property
    def rule(self) -> Schedule:
        """The rule for tau that ``schedule`` stands for."""
        schedule = self.pacing.schedule
        if isinstance(schedule, Schedule):
            return schedule
        if isinstance(schedule, int):
            return Fixed(schedule)
        return RateAndRetention() if self.chooses else GradientRetention(overlapped=self.merge.in_flight)

    @property
    def chooses(self) -> bool:
        """Whether the operator is chosen in every round."""
        return isinstance(self.exchange, Candidates)

    @property
    def measures(self) -> bool:
        """Whether the rule for tau needs measurements."""
        return self.rule.measures

    def carried_bits(self, d: int, rank: int) -> int:
        """Return the bits of a rank's message that only carry an output and do not count."""
        if self.operator is None or isinstance(self.operator, Summed):
            return 0
        return self.operator.carried_bits(self.message_d(d, rank))

    def message_d(self, d: int, rank: int) -> int:
        """Return the number of coordinates in a rank's message; in a node, those of its shard."""
        return lengths(d, self.ranks_per_node)[rank % self.ranks_per_node]

    def chosen_exchange(self, *, d: int, m: int) -> Gather | TwoShot | Sum:
        """Return the exchange to use, the same on every rank.

        The choice depends on d and m.  In nodes it is made for one shard and the number of nodes.
        """
        exchange, ranks = self.exchange, self.ranks_per_node
        assert not isinstance(exchange, Candidates)  # chosen in every round
        return exchange.chosen(d=-(-d // ranks), m=m // ranks) if isinstance(exchange, Cheapest) else exchange

    @property
    def shared_key(self) -> Key:
        """The key without a rank."""
        return replace(self.key, rank=None)

    def check_optimizer(self, optimizer: torch.optim.Optimizer | None) -> None:
        """Raise ValueError if an optimizer is needed and missing."""
        adapts = not isinstance(self.rule, Fixed)
        if optimizer is None and (
            adapts or self.merge.optimizer_state != "keep" or isinstance(self.outer, BlockMomentum)
        ):
            raise ValueError("an adaptive schedule, optimizer_state and BlockMomentum need the optimizer: pass it")

    def fingerprint(self) -> Fingerprint:
        """Return a digest of every part by name; ``outer`` counts by the optimizers that it makes."""
        exchange, shape = self.exchange, (type(self.exchange), self.exchange.means)
        optimizers = tuple(made_optimizer(outer) for outer in self.outers) or self.outer
        return fingerprint(
            {
                "schedule": self.rule,
                "steps": self.pacing.steps,
                "piggyback": self.pacing.piggyback,
                "operator": exchange.operator,
                "exchange": (*shape, getattr(exchange, "errors", True)),
                "candidates": exchange if self.chooses else None,
                "merge": self.merge,
                "outer": optimizers,
                "mixing": self.mixing,
                "membership": type(self.membership) if self.least else self.membership,
                "least": self.least,
                "key": self.shared_key,
            }
        )


def place_of(model: torch.nn.Module, settings: Settings) -> int:
    """Return the number of this rank's shard, 0 for a model that is not sharded; refuse settings that do not fit.

    Raises
    ------
    ValueError
        For a sharded model with a schedule that is not fixed, averaged optimizer states, uneven inputs, a quorum, or an
        operator beside parameters that every rank has in full.
    """
    shards = {name: shard_of(p) for name, p in model.named_parameters() if p.requires_grad}
    places = {number for number, count in shards.values() if count > 1}
    if not places:
        return 0
    whole = [name for name, (_, count) in shards.items() if count == 1]
    wrong = {
        f"schedule = {settings.rule}": not isinstance(settings.rule, Fixed),
        'optimizer_state = "average"': settings.merge.optimizer_state == "average",
        "uneven": settings.uneven,
        "a quorum": settings.least > 0,
        f"operator = {settings.operator} and whole parameters {whole[:3]}": whole and settings.operator is not None,
    }
    for setting, refused in wrong.items():
        if refused:
            raise ValueError(
                f"a sharded model does not work with {setting}: fix tau, keep or reset the optimizers, give all ranks "
                "as many steps, and with an operator shard every parameter"
            )
    return max(places)
