"""What a batch is compared with: its rows, encoded and decoded one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from operators import CorruptMessage, Key, Message, Messages
from operators.operator import Operator


def one_by_one(operator: Operator, messages: Sequence[Message], d: int, keys: Sequence[Key]) -> torch.Tensor:
    """The decoded rows; a refusal names its row, as that of a batch."""
    parts = []
    for row, (message, key) in enumerate(zip(messages, keys, strict=True)):
        try:
            parts.append(operator.decode(message, d=d, key=key))
        except CorruptMessage as refusal:
            raise CorruptMessage(f"row {row}: {refusal}") from None
    return torch.stack(parts)


def batch_of(operator: Operator, x: torch.Tensor, keys: Sequence[Key]) -> Messages:
    """The messages of a batch, after a check that they and what they decode to are those of the rows, bit for bit."""
    d = x.shape[1]
    alone = [operator.encode(row, key=key) for row, key in zip(x, keys, strict=True)]
    batch = operator.encode_rows(x, keys=keys)
    assert batch.bits.tolist() == [message.bits for message in alone]
    assert torch.equal(batch.payload, torch.cat([message.payload for message in alone]))
    decoded = operator.decode_rows(batch, d=d, keys=keys)
    assert torch.equal(decoded.view(torch.int32), one_by_one(operator, alone, d, keys).view(torch.int32))
    return batch
