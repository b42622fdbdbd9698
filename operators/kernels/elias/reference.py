"""The coder of levels in torch: all fields of all coordinates at once."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from ..codewords import reference as codewords

Fields = tuple[torch.Tensor, torch.Tensor]  # values and widths


def encode(levels: torch.Tensor, norms: torch.Tensor, step: int, code: str, most: int) -> tuple[torch.Tensor, int]:
    """Pack the fields of all coordinates at once."""
    return codewords.pack(*fields(levels, norms, step, code))


def omega(n: torch.Tensor) -> Fields:
    """Return codes and their lengths of int64 numbers from 1 to 2^40."""
    code, length, left = torch.zeros_like(n), torch.ones_like(n), n
    while bool((left > 1).any()):
        going = left > 1
        width = torch.frexp(left.double()).exponent.long()  # bits of a number >= 1
        code = torch.where(going, code | (left << length), code)
        length = torch.where(going, length + width, length)
        left = torch.where(going, width - 1, left)
    return code, length


def fields(levels: torch.Tensor, norms: torch.Tensor, step: int, code: str) -> Fields:
    """Return all fields of the message, those that are not sent with width 0."""
    d, buckets = levels.numel(), norms.numel()
    rows = pad(levels.long(), (0, buckets * step - d)).reshape(buckets, step)
    place = torch.arange(step, device=levels.device)
    lengths = (d - step * torch.arange(buckets, device=levels.device)).clamp(max=step)
    live = (norms > 0)[:, None]
    sent = live & (place < lengths[:, None])
    size, negative = rows.abs(), (rows < 0).long()
    if code == "sparse":
        body = _sparse(size, negative, place, lengths, live)
    else:
        value, width = omega(size + 1 if code == "dense" else size.clamp(min=1))
        signed = (size > 0).long()
        if code == "dense":
            value, width = (value << signed) | negative, width + signed
        else:
            value, width = signed * (((2 | negative) << width) | value), 1 + signed * (width + 1)
        body = value, torch.where(sent, width, 0)
    head = (norms.view(torch.int32).long() & 0xFFFFFFFF)[:, None]
    values, widths = torch.cat([head, body[0]], 1), torch.cat([torch.full_like(head, 32), body[1]], 1)
    return values.reshape(-1), widths.reshape(-1)


def _sparse(
    size: torch.Tensor, negative: torch.Tensor, place: torch.Tensor, lengths: torch.Tensor, live: torch.Tensor
) -> Fields:
    """Return per coordinate the gap in two fields and the level; last the gap to the end in two fields."""
    there = size > 0
    latest = torch.where(there, place, -1).cummax(1).values
    before = pad(latest[:, :-1], (1, 0), value=-1)
    gap, gap_width = omega(torch.where(there, place - before, 1))
    value, width = omega(size.clamp(min=1))
    end, end_width = omega((lengths - latest[:, -1])[:, None])
    values = torch.stack([gap >> 32, gap & 0xFFFFFFFF, (negative << width) | value], dim=2)
    widths = torch.stack([(gap_width - 32).clamp(min=0), gap_width.clamp(max=32), width + 1], dim=2)
    widths = torch.where((there & live)[:, :, None], widths, 0)
    ends = torch.cat([(end_width - 32).clamp(min=0), end_width.clamp(max=32)], 1)
    return (
        torch.cat([values.flatten(1), end >> 32, end & 0xFFFFFFFF], 1),
        torch.cat([widths.flatten(1), torch.where(live, ends, 0)], 1),
    )
