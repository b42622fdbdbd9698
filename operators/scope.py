"""What an operator is applied to: each layer, each bucket of a fixed length, or the entire model as one vector.

With parts x_l of x and the operator's constants at their lengths d_l, an unbiased operator stays unbiased with
omega = max_l omega(d_l), and a contractive one contractive with alpha = max_l alpha(d_l), because the squared
errors and the energies of the parts add up (Dutta et al. 2020).  Part l uses the key folded by l.  A part of
varying length is preceded by its number of bits, plus 1, in Elias omega code.  Parts below 2^-126 are sent as
zero, so the constants hold for max|x| >= 2^-114 sqrt(d).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import Claim, Contractive, NoClaim, StrictlyContractive, Unbiased

from .bitstream import copy_bits, flush, padded, put_bits, window
from .codes import elias
from .key import Key
from .message import CorruptMessage
from .operator import Operator, Randomness, Size


class Scope(Operator):
    """An operator applied to the parts of a vector; subclasses say which parts.

    operator : any.
    """

    operator: Operator

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """That of the operator."""
        return self.operator.randomness

    @abstractmethod
    def parts(self, d: int) -> Sequence[int]:
        """Lengths of the parts, in order; they sum to d.  Raises ValueError for a d that cannot be."""

    def claim(self, d: int) -> Claim:
        """The worst constant of any part."""
        return worst([self.operator.claim(n) for n in sorted(set(self.parts(d)))])

    def bits(self, d: int) -> Size:
        """Sums over the parts, with the length prefix of each part that needs one."""
        sizes = [(self.operator.bits(n), self.parts(d).count(n)) for n in sorted(set(self.parts(d)))]
        if all(size.exact is not None for size, _ in sizes):
            return Size.fixed(sum(count * (size.exact or 0) for size, count in sizes))
        total: list[float | None] = [0.0, 0.0]
        for size, count in sizes:
            prefix = 0 if size.exact is not None else _prefix_bits(size)
            for i, value in enumerate((size.expected_upper, size.worst_case)):
                before = total[i]
                total[i] = (
                    None if before is None or value is None or prefix is None else before + count * (value + prefix)
                )
        return Size(None, *total)

    def _spans(self, d: int) -> Iterator[tuple[int, int, int]]:
        start = 0
        for number, n in enumerate(self.parts(d)):
            yield number, start, start + n
            start += n

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        spans = list(self._spans(x.size))
        messages = [self.operator._encode(x[start:stop], key.fold(number)) for number, start, stop in spans]
        return join(messages, [self.operator.bits(stop - start).exact for _, start, stop in spans])

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        spans, out = list(self._spans(d)), np.empty(d, np.float32)
        parts = cut(payload, bits, [self.operator.bits(stop - start).exact for _, start, stop in spans])
        for (number, start, stop), (part, length) in zip(spans, parts, strict=True):
            out[start:stop] = self.operator._decode(part, length, stop - start, key and key.fold(number))
        return out


@dataclass(frozen=True)
class LayerWise(Scope):
    """Apply the operator to each layer.

    sizes : entries of each layer, in order; x has their sum.
    """

    operator: Operator
    sizes: tuple[int, ...]

    name = "layer_wise"

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"sizes must name at least one layer, each of at least 1 entry; got {self.sizes}")

    @classmethod
    def of(cls, operator: Operator, tensors: Iterable[torch.Tensor]) -> Self:
        """The layers of a model: one for each tensor."""
        return cls(operator, tuple(tensor.numel() for tensor in tensors))

    def parts(self, d: int) -> Sequence[int]:
        """The layers."""
        if sum(self.sizes) != d:
            raise ValueError(f"the layers hold {sum(self.sizes)} entries; got d = {d}")
        return self.sizes

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """None: the layers belong to a model."""
        return ()


@dataclass(frozen=True)
class Bucketed(Scope):
    """Apply the operator to runs of ``bucket`` entries; the last one may be shorter."""

    operator: Operator
    bucket: int

    name = "bucketed"

    def __post_init__(self) -> None:
        if self.bucket < 1:
            raise ValueError(f"bucket must be at least 1; got bucket = {self.bucket}")

    def parts(self, d: int) -> Sequence[int]:
        """Full buckets, then what remains."""
        whole, rest = divmod(d, self.bucket)
        return [self.bucket] * whole + [rest] * (rest > 0)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Scaled signs in buckets of 64; stochastic levels in buckets of 100."""
        from .compressors.qsgd import QSGD
        from .compressors.scaled_sign import ScaledSign

        return cls(ScaledSign(), 64), cls(QSGD(levels=4), 100)


@dataclass(frozen=True)
class EntireModel(Scope):
    """Apply the operator to all entries at once; the claim and the message are the operator's own."""

    operator: Operator

    name = "entire_model"

    def parts(self, d: int) -> Sequence[int]:
        """One part."""
        return [d]

    def bits(self, d: int) -> Size:
        """The operator's."""
        return self.operator.bits(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Scaled signs."""
        from .compressors.scaled_sign import ScaledSign

        return (cls(ScaledSign()),)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return self.operator._encode(x, key)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self.operator._decode(payload, bits, d, key)


def worst(claims: Sequence[Claim]) -> Claim:
    """What holds for a vector whose parts have these claims; equality for every x if all constants are equal."""
    for claim in claims:
        if isinstance(claim, NoClaim):
            return claim
    tight = all(claim.tight for claim in claims if not isinstance(claim, NoClaim)) and len(set(claims)) == 1
    omegas = [claim.omega for claim in claims if isinstance(claim, Unbiased)]
    if len(omegas) == len(claims):
        return Unbiased(max(omegas), tight)
    alphas = [claim.alpha for claim in claims if isinstance(claim, Contractive)]
    if len(alphas) == len(claims):
        kind = StrictlyContractive if all(isinstance(claim, StrictlyContractive) for claim in claims) else Contractive
        return kind(max(alphas), tight)
    return NoClaim("some parts are unbiased and others are biased")


def flatten(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """All entries of a model's tensors in one vector, in order."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def unflatten(x: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Cut a vector into tensors of the given shapes; the inverse of ``flatten``."""
    parts = torch.split(x, [tensor.numel() for tensor in like])
    return [part.reshape(tensor.shape) for part, tensor in zip(parts, like, strict=True)]


def concatenate(fields: Sequence[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """One bit string from several, without padding between them."""
    bits = sum(width for _, width in fields)
    out, state = np.zeros((bits + 7) // 8, np.uint8), (np.uint64(0), 0, 0)
    for payload, width in fields:
        acc, filled, at = put_bits(out, state, payload, width)
        state = (np.uint64(acc), filled, at)
    flush(out, state)
    return out, bits


def join(messages: Sequence[tuple[np.ndarray, int]], exact: Sequence[int | None]) -> tuple[np.ndarray, int]:
    """One bit string of several messages; a message whose length is not known beforehand is preceded by it.

    exact : the length of each message where the receiver knows it, in bits.
    """
    fields: list[tuple[np.ndarray, int]] = []
    for (payload, bits), known in zip(messages, exact, strict=True):
        if known is None:
            code, width = elias.build(bits + 1)
            fields.append((np.array([code << (64 - width)], ">u8").view(np.uint8), int(width)))
        fields.append((payload, bits))
    return concatenate(fields)


def cut(payload: np.ndarray, bits: int, exact: Sequence[int | None]) -> list[tuple[np.ndarray, int]]:
    """The messages that ``join`` has joined, each with its length in bits.

    Raises CorruptMessage unless they use up all bits.
    """
    buffer, position, messages = padded(payload), 0, []
    for number, length in enumerate(exact):
        if length is None:
            n, used = elias.parse(np.uint64(window(buffer, position))) if position < bits else (0, 0)
            if used == 0:
                raise CorruptMessage(f"the length of part {number} is missing at bit {position}")
            position, length = position + used, n - 1
        if position + length > bits:
            raise CorruptMessage(f"part {number} of {length} bits is cut off at bit {bits}")
        messages.append((extract(buffer, position, length), length))
        position += length
    if position != bits:
        raise CorruptMessage(f"{bits - position} bits are left over after the last part")
    return messages


def extract(buffer: np.ndarray, position: int, bits: int) -> np.ndarray:
    """Bits position .. position + bits of a padded payload as bytes of their own, zero-padded."""
    out = np.zeros((bits + 7) // 8, np.uint8)
    copy_bits(buffer, position, bits, out)
    return out


def _prefix_bits(size: Size) -> int | None:
    return None if size.worst_case is None else int(elias.length(int(size.worst_case) + 1))
