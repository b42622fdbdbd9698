"""Settings of a run that all ranks must share, checked before any message."""

from __future__ import annotations

import logging
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import torch

from bounds.schedules import Fixed, GradientRetention, RateAndRetention, Schedule
from operators import Feedback, Key, Operator
from operators.exchange import Exchange, choose
from operators.exchange.choice import check as check_exchange
from operators.exchange.choice import lengths
from operators.fingerprint import Fingerprint, fingerprint, made_optimizer
from operators.summed import Summed

from .ladder import Ladder
from .merge_rules import RULES, Overlap
from .mixing import Full, Mixing
from .outer import OuterFactory

log = logging.getLogger("gpu_validation")

OptimizerState = Literal["keep", "average", "reset"]


@dataclass(frozen=True)
class Settings:
    """Checked settings of ``PeriodicAveraging``, which explains each of them.

    ``schedule``, ``operator``, ``mixing``, ``key``, ``optimizer_state``, ``block_momentum``, ``steps``, ``piggyback``,
    ``exchange``, ``second``, ``errors``, ``outer``, ``overlap``, ``delay``, ``fragments``, ``local_weight``,
    ``ranks_per_node`` and ``uneven`` have the meaning they have there.

    Parameters
    ----------
    least : int, optional
        Smallest number of ranks of a quorum; 0 without one.
    ladder : Ladder or None, optional
        Candidates for the operator of every round; ``operator`` is None then.

    Raises
    ------
    ValueError
        For values out of range and for settings that exclude each other.
    """

    schedule: int | Schedule | Literal["auto"]
    operator: Operator | Feedback | Summed | None
    mixing: Mixing | Literal["full"]
    key: Key
    optimizer_state: OptimizerState
    block_momentum: float
    steps: int | None
    piggyback: bool = False
    exchange: Exchange = "gather"
    second: Operator | Feedback | None = None
    errors: bool = True
    outer: OuterFactory | Sequence[OuterFactory] | None = None
    overlap: Overlap = "none"
    delay: int | None = None
    fragments: int | Sequence[str] = 1
    local_weight: float = 0.0
    ranks_per_node: int = 1
    uneven: bool = False
    least: int = 0
    ladder: Ladder | None = None

    def __post_init__(self) -> None:
        whole = ["delay", "ranks_per_node", "steps", "least"]
        if isinstance(self.fragments, Sequence) and not isinstance(self.fragments, str):
            object.__setattr__(self, "fragments", tuple(self.fragments))
        else:
            whole.append("fragments")
        if isinstance(self.outer, Sequence):
            object.__setattr__(self, "outer", tuple(self.outer))
        whole += [] if isinstance(self.schedule, Schedule | str) else ["schedule"]
        for name in whole:
            value = getattr(self, name)
            if value is not None or name not in ("delay", "steps"):
                object.__setattr__(self, name, whole_number(name, value))
        for name in ("block_momentum", "local_weight"):
            object.__setattr__(self, name, _real(name, getattr(self, name)))
        self.rule  # noqa: B018  raises for an invalid schedule
        if not isinstance(self.mixing, Mixing) and self.mixing != "full":
            raise ValueError(f'mixing must be "full" or a mode of gpu_validation.local_sgd.mixing; got {self.mixing!r}')
        if self.optimizer_state not in ("keep", "average", "reset"):
            raise ValueError(f"optimizer_state must be keep, average or reset; got {self.optimizer_state!r}")
        check_exchange(self.exchange)
        if self.second is not None and (self.operator is None or self.exchange == "gather"):
            raise ValueError(
                'second compresses the means of two shots: give an operator and exchange="two_shot" or "auto" with it, '
                f"or leave it out; got operator = {self.operator} and exchange = {self.exchange!r}"
            )
        if isinstance(self.operator, Summed) and (self.exchange == "two_shot" or self.second is not None):
            raise ValueError(
                f"{self.operator} is summed on the way and has an exchange of its own: leave exchange and second out; "
                f"got exchange = {self.exchange!r} and second = {self.second}"
            )
        if not 0 <= self.block_momentum < 1:
            raise ValueError(f"block_momentum must satisfy 0 <= beta < 1; got {self.block_momentum}")
        self._check_outer()
        self._check_overlap()
        self._check_nodes()
        self._check_uneven()
        self._check_quorum()
        self._check_ladder()
        if not self.mode.common and (self.operator is not None or self.moves_outside):
            raise ValueError(
                "an operator, outer and block_momentum need a common model at the start of every round; "
                f"{type(self.mode).__name__} has none: use full or sampled averaging, or leave them out"
            )
        if self.piggyback and not isinstance(self.mode, Full):
            raise ValueError(f'piggyback needs mixing="full"; got {type(self.mode).__name__}: leave piggyback out')
        if self.measures and not self.mode.common:
            raise ValueError(
                f"{type(self.rule).__name__} needs an averaged model; {type(self.mode).__name__} has none: use "
                "full or sampled averaging, or another schedule"
            )

    def _check_outer(self) -> None:
        if not all(map(callable, self.outers)):
            raise ValueError(
                "outer must be Nesterov(lr, momentum), SGD(lr, momentum) or make an optimizer of torch from a list of "
                f"tensors; got {self.outer!r}"
            )
        if isinstance(self.outer, tuple) and len(self.outers) != self.parts:
            raise ValueError(
                f"outer needs one optimizer for all fragments, or one per fragment; got {len(self.outers)} for "
                f"{self.parts} fragments"
            )
        if self.outer is not None and self.block_momentum:
            raise ValueError(
                "block_momentum is an outer heavy ball itself: give outer or block_momentum, not both; got "
                f"{self.outer!r} and {self.block_momentum}"
            )

    def _check_overlap(self) -> None:
        if self.overlap not in ("none", *RULES):
            raise ValueError(f"overlap must be none, {', '.join(RULES)}; got {self.overlap!r}")
        if not self.overlaps:
            if self.delay is not None or self.fragments != 1 or self.local_weight or isinstance(self.outer, tuple):
                raise ValueError(
                    "delay, fragments, their outer optimizers and local_weight need overlap: set overlap, or leave "
                    f"them out; got delay = {self.delay}, fragments = {self.fragments} and local_weight = "
                    f"{self.local_weight}"
                )
            return
        if not 0 <= self.local_weight < 1:
            raise ValueError(f"local_weight must satisfy 0 <= local_weight < 1; got {self.local_weight}")
        if self.local_weight and self.overlap != "overwrite":
            raise ValueError(
                f'local_weight needs overlap="overwrite"; got overlap = {self.overlap!r} and local_weight = '
                f"{self.local_weight}: change overlap, or leave local_weight out"
            )
        self._check_flight_times()
        wrong = {
            f"mixing = {self.mixing!r}": not isinstance(self.mode, Full),
            'optimizer_state = "average"': self.optimizer_state == "average",
            f"block_momentum = {self.block_momentum}": self.block_momentum > 0,
            "piggyback": self.piggyback,
            f"operator = {self.operator}": self.overlap == "eager" and self.operator is not None,
        }
        for setting, refused in wrong.items():
            if refused:
                raise ValueError(
                    f'overlap="{self.overlap}" does not work with {setting}: use full averaging without piggyback, '
                    "keep "
                    'or reset the optimizers, and take momentum from outer=SGD(lr, momentum); "eager" needs '
                    "operator=None"
                )

    def _check_nodes(self) -> None:
        if self.ranks_per_node == 1:
            return
        if self.operator is None or isinstance(self.operator, Summed) or not isinstance(self.mode, Full):
            raise ValueError(
                "ranks_per_node needs full averaging and an operator that is not a Summed: set them, or leave "
                f"ranks_per_node out; got ranks_per_node = {self.ranks_per_node}, "
                f"operator = {self.operator} and mixing = {self.mixing!r}"
            )

    def _check_uneven(self) -> None:
        wrong = {
            f"mixing = {self.mixing!r}": not isinstance(self.mode, Full),
            "piggyback": self.piggyback,
            'optimizer_state = "average"': self.optimizer_state == "average",
            f"ranks_per_node = {self.ranks_per_node}": self.ranks_per_node > 1,
            'overlap = "eager"': self.overlap == "eager",
            f"overlap and {self.rule}": self.overlaps and not isinstance(self.rule, Fixed),
        }
        for setting, refused in wrong.items():
            if self.uneven and refused:
                raise ValueError(
                    f"uneven inputs do not work with {setting}: use full averaging without nodes or piggyback, keep or "
                    "reset the optimizers, and with overlap fix tau"
                )

    def _check_quorum(self) -> None:
        wrong = {
            f"mixing = {self.mixing!r}": not isinstance(self.mode, Full),
            f"schedule = {self.rule}": not isinstance(self.rule, Fixed),
            f'overlap = "{self.overlap}"': self.overlaps,
            f"operator = {self.operator}": isinstance(self.operator, Feedback),
            f"second = {self.second}": isinstance(self.second, Feedback),
            f"ranks_per_node = {self.ranks_per_node}": self.ranks_per_node > 1,
            'optimizer_state = "average"': self.optimizer_state == "average",
            "uneven": self.uneven,
        }
        for setting, refused in wrong.items():
            if self.least and refused:
                raise ValueError(
                    f"a quorum does not work with {setting}: use full averaging without overlap, a fixed tau and "
                    "operators without memory, and keep or reset the optimizers"
                )

    def _check_ladder(self) -> None:
        if not self.chooses:
            return
        wrong = {
            f"schedule = {self.schedule!r}": self.schedule != "auto",
            f"exchange = {self.exchange!r}": self.exchange == "two_shot",
            f"mixing = {self.mixing!r}": not isinstance(self.mode, Full),
            f'overlap = "{self.overlap}"': self.overlaps,
            f"ranks_per_node = {self.ranks_per_node}": self.ranks_per_node > 1,
            "uneven": self.uneven,
            "piggyback": self.piggyback,
            "errors = False": not self.errors,
        }
        for setting, refused in wrong.items():
            if refused:
                raise ValueError(
                    f'operator="auto" does not work with {setting}: give schedule="auto", full averaging without '
                    "overlap, and errors=True; leave the others out"
                )

    def _check_flight_times(self) -> None:
        tau = self.rule.tau if isinstance(self.rule, Fixed) else None
        if self.parts < 1 or (self.parts > 1 and tau is None):
            raise ValueError(
                f"fragments must be >= 1, and their rounds need a fixed tau; got {self.fragments} with {self.rule}"
            )
        if self.delay is None:
            return
        if self.overlap in ("delayed", "eager"):
            raise ValueError(f'overlap="{self.overlap}" always takes a whole round: leave delay out')
        if self.delay < 0 or (tau is not None and self.delay > tau):
            raise ValueError(f"delay must satisfy 0 <= delay <= tau; got delay = {self.delay} with {self.rule}")

    @property
    def parts(self) -> int:
        """The number of fragments."""
        return self.fragments if isinstance(self.fragments, int) else len(self.fragments)

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of the modules that are fragments; empty for fragments of equal length."""
        return () if isinstance(self.fragments, int) else tuple(self.fragments)

    @property
    def outers(self) -> tuple[OuterFactory, ...]:
        """The factories of the outer optimizers, which are none, one for all fragments, or one per fragment."""
        return () if self.outer is None else tuple(self.outer) if isinstance(self.outer, Sequence) else (self.outer,)

    @property
    def overlaps(self) -> bool:
        """Whether averages overlap with local steps."""
        return self.overlap != "none"

    @property
    def hidden_bytes(self) -> bool:
        """Whether bytes are sent in another pattern than one averaging of all ranks per round."""
        return self.overlaps or self.uneven or self.least > 0

    @property
    def waiting(self) -> Settings:
        """The settings of the engine itself, which sends nothing if averages are in flight."""
        if not self.overlaps:
            return self
        return replace(self, operator=None, exchange="gather", second=None, ranks_per_node=1)

    @property
    def moves_outside(self) -> bool:
        """Whether the common model takes an outer step instead of moving to the mean."""
        return self.outer is not None or self.block_momentum > 0

    @property
    def rule(self) -> Schedule:
        """The rule for tau that ``schedule`` stands for."""
        if isinstance(self.schedule, int):
            return Fixed(self.schedule)
        if isinstance(self.schedule, str):
            if self.schedule != "auto":
                raise ValueError(f'schedule must be a number, a rule or "auto"; got {self.schedule!r}')
            return RateAndRetention() if self.chooses else GradientRetention(overlapped=self.overlaps)
        return self.schedule

    @property
    def chooses(self) -> bool:
        """Whether the operator is chosen in every round."""
        return self.ladder is not None

    @property
    def measures(self) -> bool:
        """Whether the rule for tau needs measurements."""
        return isinstance(self.rule, Schedule) and self.rule.measures

    @property
    def mode(self) -> Mixing:
        """The mixing mode that ``mixing`` stands for."""
        return self.mixing if isinstance(self.mixing, Mixing) else Full()

    def carried_bits(self, d: int, rank: int) -> int:
        """Return the bits of a rank's message that only carry an output and do not count."""
        if self.operator is None or isinstance(self.operator, Summed):
            return 0
        return self.operator.carried_bits(self.message_d(d, rank))

    def message_d(self, d: int, rank: int) -> int:
        """Return the number of coordinates in a rank's message; in a node, those of its shard."""
        return lengths(d, self.ranks_per_node)[rank % self.ranks_per_node]

    def chosen_exchange(self, *, d: int, m: int) -> Literal["gather", "two_shot", "sum"]:
        """Return the exchange to use, the same on every rank.

        The choice depends on d and m.  In nodes it is made for one shard and the number of nodes.
        """
        if isinstance(self.operator, Summed):
            return "sum"
        if self.operator is None or self.exchange == "gather":
            return "gather"
        shard = -(-d // self.ranks_per_node)
        choice = choose(self.exchange, self.operator, self.second, d=shard, m=m // self.ranks_per_node)
        log.info("%s", choice)
        return choice.exchange

    @property
    def shared_key(self) -> Key:
        """The key without a rank."""
        return replace(self.key, rank=None)

    def check_optimizer(self, optimizer: torch.optim.Optimizer | None) -> None:
        """Raise ValueError if an optimizer is needed and missing."""
        adapts = not isinstance(self.rule, Fixed)
        if optimizer is None and (adapts or self.optimizer_state != "keep" or self.block_momentum):
            raise ValueError("an adaptive schedule, optimizer_state and block_momentum need the optimizer: pass it")

    def fingerprint(self) -> Fingerprint:
        """Return a digest of every setting by name; ``outer`` counts by the optimizer that it makes."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values |= {"key": self.shared_key, "schedule": self.rule, "mixing": self.mode}
        optimizers = tuple(made_optimizer(outer) for outer in self.outers)
        return fingerprint(values | {"outer": optimizers[0] if len(optimizers) == 1 else optimizers or None})


def whole_number(name: str, value: Any) -> int:
    """Convert an integer of any library to int; ``name`` is the setting that an error names.

    Raises ValueError for any other value, including True and False.
    """
    if not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)
        except TypeError:
            pass
    also = ', a rule of bounds.schedules or "auto"' if name in ("schedule", "local_sgd_steps") else ""
    raise ValueError(f"{name} must be a whole number{also}; got {value!r}: give an integer such as 8")


def _real(name: str, value: Any) -> float:
    """Convert a number of any library to float."""
    if not isinstance(value, bool | np.bool_ | str):
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise ValueError(f"{name} must be a number; got {value!r}: give one such as 0.9")
