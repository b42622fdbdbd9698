"""Wrappers whose memory fails only after many messages, and mergers that fail only for many workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from operators import EF21, ErrorFeedback, Feedback, Identity, Key, MajorityVote, Mean, Message, Operator, TopK

from .base import Wrong

State = dict[str, torch.Tensor]


# -- memory ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Kept(Feedback):
    """Error feedback whose memory has another name; ``kept(memory, x, step)`` changes what is kept."""

    operator: Operator = TopK(fraction=0.3)  # noqa: RUF009  frozen
    name = "kept"

    def init(self, d: int) -> State:
        return {"what is left": torch.zeros(d), "step": torch.tensor(0)}

    def kept(self, memory: torch.Tensor, x: torch.Tensor, step: int) -> torch.Tensor:
        return memory

    def encode(self, state: Any, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        if x.shape != state["what is left"].shape or not x.isfinite().all():
            raise ValueError("x must be finite, and as long as the memory")
        step, wanted = int(state["step"]), state["what is left"] + x
        message = self.operator.encode(wanted, key=key)
        left = wanted - self.operator.decode(message, d=x.numel(), key=key)
        return {"what is left": self.kept(left, x, step), "step": state["step"] + 1}, message

    def decode(self, state: Any, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        return {}, self.operator.decode(message, d=d, key=key)

    @classmethod
    def examples(cls) -> tuple[Kept, ...]:
        return (cls(),)


def keeping(kept: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]) -> Feedback:
    return type("Wrong", (Kept,), {"kept": lambda self, memory, x, step: kept(memory, x, step)})()


MEMORY = {
    "a thousandth of the memory is lost a step": keeping(lambda m, x, t: 0.999 * m),
    "the memory is cleared every 50 messages": keeping(lambda m, x, t: 0 * m if t % 50 == 49 else m),
    "the memory is dropped after 120 messages": keeping(lambda m, x, t: 0 * m if t > 120 else m),
    "the memory is kept in bfloat16": keeping(lambda m, x, t: m.bfloat16().float()),
    "small entries of the memory are lost": keeping(lambda m, x, t: torch.where(m.abs() < 0.05 * m.abs().max(), 0, m)),
    "the memory is clipped": keeping(lambda m, x, t: m.clamp(-2, 2)),
    "a zero gradient is added twice": keeping(lambda m, x, t: m if x.any() else 1.01 * m),
}


class Following(EF21):
    """The estimate shrinks at both ends in every tenth step, so that they stay in step."""

    def decode(self, state: Any, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        after, y = EF21.decode(self, state, message, d=d, key=key)
        return {name: 0.99 * value for name, value in after.items()}, y

    def encode(self, state: Any, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        after, message = EF21.encode(self, state, x, key=key)
        return {name: 0.99 * value for name, value in after.items()}, message


# -- many workers ------------------------------------------------------------------------------------------------
Votes = Callable[[np.ndarray], np.ndarray]  # from the votes of n workers, shape (n, d), to what is signed


def voting(count: Votes) -> MajorityVote:
    def merge(self: MajorityVote, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        total = np.asarray(count(self.decoded(messages, d, keys)), np.float32)
        return self.downlink.encode(torch.from_numpy(total), key=keys[0])

    return type("Wrong", (MajorityVote,), {"merge": merge})()


def of_groups(votes: np.ndarray) -> np.ndarray:
    """A vote of the votes of groups of eight."""
    return np.sign(np.stack([np.sign(part.sum(axis=0)) for part in np.array_split(votes, -(-len(votes) // 8))])).sum(0)


VOTES: dict[str, Votes] = {
    "counts kept in eight bits": lambda v: v.astype(np.int8).sum(axis=0, dtype=np.int8),
    "only 64 votes are counted": lambda v: v[:64].sum(axis=0),
    "two more votes than half are asked for": lambda v: np.where((v > 0).sum(axis=0) > len(v) // 2 + 1, 1.0, -1.0),
    "a vote of the votes of groups of eight": of_groups,
    "the first of more than eight workers counts three times": lambda v: v.sum(axis=0) + 2 * v[0] * (len(v) > 8),
    "pairs are counted, an odd worker is not": lambda v: v[: max(1, len(v) // 2 * 2)].sum(axis=0),
}


def merging(mean: Votes, operator: Operator | None = None) -> Mean:
    def merge(self: Mean, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        y = np.asarray(mean(self.decoded(messages, d, keys)), np.float32)
        return self.down.encode(torch.from_numpy(y), key=keys[0].shared().fold_in(0))

    return type("Wrong", (Mean,), {"merge": merge})(operator or Identity())


MEANS: dict[str, Votes] = {
    "divided by a multiple of 16": lambda v: v.sum(axis=0) / (len(v) if len(v) < 16 else len(v) // 16 * 16),
    "summed in 16 bits for more than eight": lambda v: v.mean(axis=0, dtype=np.float16 if len(v) > 8 else None),
    "the last of more than 100 is left out": lambda v: v[:100].mean(axis=0),
    "divided by 127 where there are more": lambda v: v.sum(axis=0) / min(len(v), 127),
    "pairs from six workers on": lambda v: v[: len(v) if len(v) < 6 else len(v) // 2 * 2].mean(axis=0),
    "sixteen workers a tree, averaged alike": lambda v: np.stack(
        [part.mean(axis=0) for part in (v[i : i + 16] for i in range(0, len(v), 16))]
    ).mean(axis=0),
}


WRONG = [
    *(Wrong("feedback", what, wrapper) for what, wrapper in MEMORY.items()),
    Wrong("feedback", "a hundredth of the estimate is lost at both ends", Following(TopK(fraction=0.3))),
    *(Wrong("aggregates", what, voting(count)) for what, count in VOTES.items()),
    *(Wrong("aggregates", what, merging(mean)) for what, mean in MEANS.items()),
]
HONEST = [
    Wrong("honest", "memory under another name", Kept()),
    Wrong("honest", "error feedback", ErrorFeedback(TopK(fraction=0.3))),
    Wrong("honest", "EF21", EF21(TopK(fraction=0.3))),
    Wrong("honest", "vote", voting(lambda v: v.sum(axis=0))),
    Wrong("honest", "mean", merging(lambda v: v.mean(axis=0))),
]
