"""What an operator is applied to: each layer, each bucket of a fixed length, or the entire model as one vector.

With parts x_l of x and the operator's constants at their lengths d_l, an unbiased operator stays unbiased with omega =
max_l omega(d_l), and a contractive one contractive with alpha = max_l alpha(d_l), because the squared errors and the
energies of the parts add up (Dutta et al. 2020).  Part l uses the key folded by l.  A part of varying length is
preceded by its number of bits, plus 1, in Elias omega code.  Parts below 2^-126 are sent as zero, so the constants hold
for ``max|x| >= 2^-114 sqrt(d)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import Claim, Contractive, NoClaim, StrictlyContractive, Unbiased

from ..bits import elias
from ..bits.concatenate import join_messages, split_messages
from ..key import Key
from ..operator import Operator, Randomness, Size


class Scope(Operator):
    """An operator applied to the parts of a vector; subclasses say which parts.

    Attributes
    ----------
    operator : Operator
        Any.
    """

    operator: Operator

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """That of the operator."""
        return self.operator.randomness

    @abstractmethod
    def parts(self, d: int) -> Sequence[int]:
        """Return lengths of the parts, in order; they sum to d.

        Parameters
        ----------
        d : int
            Number of coordinates.

        Raises
        ------
        ValueError
            For a d that cannot be.
        """

    def claim(self, d: int) -> Claim:
        """Return the worst constant of any part."""
        return combine_claims([self.operator.claim(n) for n in sorted(set(self.parts(d)))])

    def bits(self, d: int) -> Size:
        """Return sums over the parts, with the length prefix of each part that needs one."""
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
        return join_messages(messages, [self.operator.bits(stop - start).exact for _, start, stop in spans])

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        spans, out = list(self._spans(d)), np.empty(d, np.float32)
        parts = split_messages(payload, bits, [self.operator.bits(stop - start).exact for _, start, stop in spans])
        for (number, start, stop), (part, length) in zip(spans, parts, strict=True):
            out[start:stop] = self.operator._decode(part, length, stop - start, key and key.fold(number))
        return out


@dataclass(frozen=True)
class LayerWise(Scope):
    """Apply the operator to each layer.

    Parameters
    ----------
    sizes : tuple of int
        Entries of each layer, in order; x has their sum.
    """

    operator: Operator
    sizes: tuple[int, ...]

    name = "layer_wise"

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"sizes must name at least one layer, each of at least 1 entry; got {self.sizes}")

    @classmethod
    def of(cls, operator: Operator, tensors: Iterable[torch.Tensor]) -> Self:
        """Return the layers of a model: one for each tensor.

        Parameters
        ----------
        operator : Operator
            The compressor.
        tensors : iterable of tensor
            The tensors of a model.
        """
        return cls(operator, tuple(tensor.numel() for tensor in tensors))

    def parts(self, d: int) -> Sequence[int]:
        """Return the layers."""
        if sum(self.sizes) != d:
            raise ValueError(f"the layers hold {sum(self.sizes)} entries; got d = {d}")
        return self.sizes

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return none: the layers belong to a model."""
        return ()


@dataclass(frozen=True)
class Bucketed(Scope):
    """Apply the operator to runs of ``bucket`` entries; the last one may be shorter.

    Parameters
    ----------
    bucket : int
        Entries of a run.
    """

    operator: Operator
    bucket: int

    name = "bucketed"

    def __post_init__(self) -> None:
        if self.bucket < 1:
            raise ValueError(f"bucket must be at least 1; got bucket = {self.bucket}")

    def parts(self, d: int) -> Sequence[int]:
        """Return full buckets, then what remains."""
        whole, rest = divmod(d, self.bucket)
        return [self.bucket] * whole + [rest] * (rest > 0)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return scaled signs in buckets of 64; stochastic levels in buckets of 100."""
        from ..compressors.qsgd import QSGD
        from ..compressors.scaled_sign import ScaledSign

        return cls(ScaledSign(), 64), cls(QSGD(levels=4), 100)


@dataclass(frozen=True)
class EntireModel(Scope):
    """Apply the operator to all entries at once; the claim and the message are the operator's own."""

    operator: Operator

    name = "entire_model"

    def parts(self, d: int) -> Sequence[int]:
        """Return one part."""
        return [d]

    def bits(self, d: int) -> Size:
        """Return the operator's."""
        return self.operator.bits(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return scaled signs."""
        from ..compressors.scaled_sign import ScaledSign

        return (cls(ScaledSign()),)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return self.operator._encode(x, key)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self.operator._decode(payload, bits, d, key)


def combine_claims(claims: Sequence[Claim]) -> Claim:
    """Return what holds for a vector whose parts have these claims; equality for every x if all constants are equal.

    Parameters
    ----------
    claims : sequence of Claim
        The claims of the parts.
    """
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
    """Return all entries of a model's tensors in one vector, in order.

    Parameters
    ----------
    tensors : sequence of tensor
        The tensors of a model.
    """
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def unflatten(x: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Cut a vector into tensors of the given shapes; the inverse of ``flatten``.

    Parameters
    ----------
    x : tensor
        The vector, shape (d,).
    like : sequence of tensor
        Tensors of the wanted shapes.
    """
    parts = torch.split(x, [tensor.numel() for tensor in like])
    return [part.reshape(tensor.shape) for part, tensor in zip(parts, like, strict=True)]


def _prefix_bits(size: Size) -> int | None:
    return None if size.worst_case is None else int(elias.length(int(size.worst_case) + 1))
