"""Wrong wrappers with memory and wrong mergers, each with the law that must convict it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bounds.claims import Claim, Contractive, Unbiased
from operators import (
    EF21,
    QSGD,
    DeepGradientCompression,
    ErrorFeedback,
    GlobalTopK,
    Identity,
    Key,
    MajorityVote,
    Mean,
    Message,
    ScaledSign,
    TopK,
)


@dataclass(frozen=True)
class WrapperMutant:
    """what : the mistake.  wrong : the wrapper or merger.  parent : the right one.  law : must convict."""

    what: str
    wrong: Any
    parent: Any
    law: str


WRAPPER_MUTANTS: list[WrapperMutant] = []


def mutant(what: str, parent: Any, law: str, **methods: Any) -> None:
    cls = type(parent)
    wrong = type(f"Wrong{cls.__name__}", (cls,), methods)(**vars(parent))
    WRAPPER_MUTANTS.append(WrapperMutant(what, wrong, parent, law))


def _undecoded_residual(self: ErrorFeedback, state: dict, x: torch.Tensor, *, key: Key) -> tuple[dict, Message]:
    """The residual of the value before coding: signs times the exact mean, not what was sent for zeros."""
    wanted = x + state["residual"]
    uncoded = wanted.abs().mean() * wanted.sign() * 0.999
    return {"residual": wanted - uncoded}, self.operator.encode(wanted, key=key)


def _no_memory(self: ErrorFeedback, state: dict, x: torch.Tensor, *, key: Key) -> tuple[dict, Message]:
    return state, self.operator.encode(x + state["residual"], key=key)


def _decaying(self: ErrorFeedback, state: dict, x: torch.Tensor, *, key: Key) -> tuple[dict, Message]:
    wanted = x + state["residual"]
    message = self.operator.encode(wanted, key=key)
    return {"residual": 0.9 * (wanted - self.operator.decode(message, d=x.numel(), key=key))}, message


def _in_place(self: ErrorFeedback, state: dict, x: torch.Tensor, *, key: Key) -> tuple[dict, Message]:
    state["residual"] += x
    message = self.operator.encode(state["residual"], key=key)
    state["residual"] -= self.operator.decode(message, d=x.numel(), key=key)
    return state, message


def _sender_uncoded(self: EF21, state: dict, x: torch.Tensor, *, key: Key) -> tuple[dict, Message]:
    """The sender follows x itself; the receiver what it was sent."""
    message = self.operator.encode(x - state["estimate"], key=key)
    return {"estimate": x.float()}, message


def _momentum_kept(self: DeepGradientCompression, state: dict, x: torch.Tensor, *, key: Key) -> tuple[dict, Message]:
    """u is not cleared where it was sent."""
    u = self.momentum * state["u"] + x
    v = state["v"] + u
    message = self.operator_at(int(state["step"])).encode(v, key=key)
    sent = self.operator_at(int(state["step"])).decode(message, d=v.numel()) != 0
    return {"u": u, "v": torch.where(sent, 0, v), "step": state["step"] + 1}, message


def _forgetful_exchange(
    self: GlobalTopK, residuals: Sequence[torch.Tensor], x: Sequence[torch.Tensor], *, keys: Sequence[Key]
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Entries dropped inside the tree are not returned."""
    wanted = [r + v for r, v in zip(residuals, x, strict=True)]
    messages = [self.uplink.encode(w, key=k) for w, k in zip(wanted, keys, strict=True)]
    d = wanted[0].numel()
    sent = [self.uplink.decode(m, d=d) for m in messages]
    result = self.downlink.decode(self.merge(messages, d=d, keys=keys), d=d)
    return [w - s for w, s in zip(wanted, sent, strict=True)], result


def _sum_for_mean(self: Mean, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
    total = self.decoded(messages, d, keys).sum(axis=0) / max(1, len(messages) - 1)
    return self.down.encode(torch.from_numpy(total), key=keys[0].shared().fold_in(0))


def _anything_merged(self: Mean, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
    if not messages:
        return self.down.encode(np.zeros(d), key=Key(0))
    return Mean.merge(self, messages, d=d, keys=keys)


def _cover_up(self: Mean, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
    """Damaged messages are left out in silence."""
    good = []
    for message, key in zip(messages, keys, strict=True):
        try:
            self.operator.decode(message, d=d, key=key)
        except ValueError:
            continue
        good.append((message, key))
    return Mean.merge(self, [m for m, _ in good], d=d, keys=[k for _, k in good])


def _vote_in_eight_bits(self: MajorityVote, messages: Sequence[Message], d: int, keys: Sequence[Key]) -> Message:
    total = self.decoded(messages, d, keys).astype(np.int8).sum(axis=0, dtype=np.int8)
    return self.downlink.encode(torch.from_numpy(total).float(), key=keys[0])


def _too_good(self: Mean, d: int, n: int) -> Claim:
    up = self.operator.claim(d)
    assert isinstance(up, Unbiased)
    return Unbiased(up.omega / n**2)


mutant("residual of the undecoded value", ErrorFeedback(ScaledSign()), "feedback-mass", encode=_undecoded_residual)
mutant("residual never updated", ErrorFeedback(TopK(fraction=0.3)), "feedback-mass", encode=_no_memory)
mutant("residual decays", ErrorFeedback(TopK(fraction=0.3)), "feedback-mass", encode=_decaying)
mutant("state changed in place", ErrorFeedback(TopK(fraction=0.3)), "feedback-purity", encode=_in_place)
mutant("sender follows its input, receiver the messages", EF21(TopK(fraction=0.3)), "feedback-in-step",
       encode=_sender_uncoded)  # fmt: skip
mutant("momentum not masked", DeepGradientCompression(fraction=0.3), "feedback-cleared", encode=_momentum_kept)
mutant("residual never kept", ErrorFeedback(TopK(fraction=0.3)), "feedback-sums", encode=_no_memory)
mutant("dropped entries not returned", GlobalTopK(fraction=0.3), "aggregate-mass", exchange=_forgetful_exchange)
mutant("sum divided by n - 1", Mean(Identity()), "aggregate-claim", merge=_sum_for_mean)
mutant("omega/n^2 for omega/n", Mean(QSGD(levels=1)), "aggregate-claim", claim_mean=_too_good)
mutant("contraction of the mean too good", Mean(TopK(fraction=0.3)), "aggregate-claim",
       claim_mean=lambda self, d, n: Contractive(0.2))  # fmt: skip
mutant("no messages merged to zero", Mean(Identity()), "aggregate-purity", merge=_anything_merged)
mutant("counts kept in eight bits", MajorityVote(), "aggregate-count",
       merge=lambda self, messages, *, d, keys: _vote_in_eight_bits(self, messages, d, keys))  # fmt: skip
mutant("damaged messages left out in silence", Mean(QSGD(levels=4)), "aggregate-corruption", merge=_cover_up)
