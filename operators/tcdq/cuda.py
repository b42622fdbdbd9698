"""TCDQ's codec on the device: what the CPU decides, and the kernels' order."""

from __future__ import annotations

import math
import struct

import numpy as np
import torch

from ..kernels.norms import cuda as norms
from ..key import Key
from ..message import CorruptMessage
from ..quantisers.scale import TINY, nearest
from .codec import all_symbols, read_model, read_norm, whole, within_limits
from .cuda_rans import classify, read, space, write
from .cuda_trellis import hashes, symbols
from .dither import seeds as seeds_of
from .fit import Choice, fitted, least_squares, stride
from .model import CLASSES, COMPONENTS
from .plan import NORM_BYTES, Plan
from .subset import STREAM
from .tables import build

HEAD = NORM_BYTES + 3 + CLASSES * (1 + COMPONENTS)  # bytes before the first segment at most


def encode(x: torch.Tensor, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See ``dispatch``; the long format only."""
    if norms.largest(x, plan.d).item() < TINY:
        return torch.zeros(NORM_BYTES, dtype=torch.uint8, device=x.device)
    norm = nearest(math.sqrt(norms.energy(x, plan.d).item()))
    if plan.code.coarse:
        packed = torch.from_numpy(all_symbols(x.cpu().numpy(), norm, plan, seeds)).to(x.device)
    else:
        packed = symbols(x, plan, norm, seeds)
    return within_limits(lambda choice: _payload(norm, packed, plan, choice), _choose(packed, plan), plan)


def _payload(norm: float, packed: torch.Tensor, plan: Plan, choice: Choice) -> torch.Tensor:
    head = struct.pack(">f", norm) + (choice.model.header() if plan.fits else b"")
    tables, groups = build(choice.model, plan.form), torch.as_tensor(choice.groups)
    body = write(packed, choice.model.low, groups, tables, plan, space(choice.bits, plan))
    return torch.cat([torch.tensor(list(head), dtype=torch.uint8, device=packed.device), body])


def _choose(packed: torch.Tensor, plan: Plan) -> Choice:
    """Return the CPU's choice: it sees the rows of the histogram, each with the one before it."""
    every = stride(plan)
    if every > 1:
        rows = torch.arange(0, -(-plan.d // 16), every, device=packed.device)
        index = torch.stack([rows - 1, rows], 1).reshape(-1)[1:, None] * 16 + torch.arange(16, device=packed.device)
        bits, model = fitted(packed[index[index < plan.d]].cpu().numpy(), 2, plan)
    else:
        bits, model = fitted(packed.cpu().numpy(), 1, plan)
    if not model.mixtures:
        groups = torch.zeros(-(-plan.d // 16), dtype=torch.uint8, device=packed.device)
        return Choice(model, groups, bits)
    groups, energy = classify(packed, model, plan)
    return Choice(model, groups, bits, least_squares(energy, plan.d, model.low))


def decode(payload: torch.Tensor, bits: int, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See ``dispatch``; the long format only."""
    whole(bits)
    head = payload[:HEAD].cpu().numpy().tobytes()
    norm = read_norm(head, payload.numel())
    if norm == 0:
        return torch.zeros(plan.d, device=payload.device)
    model, position = read_model(head, plan)
    out = read(payload, position, model, build(model, plan.form), plan, norm, seeds)
    if not bool(torch.isfinite(out).all()):
        raise CorruptMessage("a decoded coordinate exceeds binary32")
    return out


def _drawn(d: int, k: int, key: Key, device: torch.device) -> torch.Tensor:
    """Return which coordinates have the k least hashes, of which no two are equal."""
    drawn = hashes(d, seeds_of(key.fold_in(STREAM)), device)
    return drawn <= drawn.sort().values[k - 1]


def gather(x: torch.Tensor, k: int, key: Key) -> torch.Tensor:
    """See ``dispatch``."""
    return x[_drawn(x.numel(), k, key, x.device)]


def scatter(part: torch.Tensor, d: int, key: Key, factor: float) -> torch.Tensor:
    """See ``dispatch``."""
    out = torch.zeros(d, device=part.device)
    out[_drawn(d, part.numel(), key, part.device)] = part * float(np.float32(factor))
    return out
