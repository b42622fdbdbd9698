"""Parts of a run that all ranks must share, checked before any message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from bounds.schedules import Fixed, GradientRetention, RateAndRetention, Schedule
from operators import Feedback, Key, Operator
from operators.exchange.choice import lengths
from operators.fingerprint import Fingerprint, fingerprint, made_optimizer
from operators.summed import Summed

from ..distributed.quorum import Quorum
from .candidates import Candidates, ExchangePart, exchange_of
from .keywords import Outer
from .merge_rules import Blocking, Eager, Merge
from .mixing import Full, Mixing
from .outer import BlockMomentum, OuterFactory
from .parts import All, Cheapest, Gather, Membership, Nodes, Pacing, Sum, TwoShot, Uneven


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
            ("mixing", Mixing, "a mode of gpu_validation.local_sgd.mixing, such as Full() or ring(m)"),
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
