"""An operator applied to each layer of a model instead of the entire model as one vector.

Let x_l be the parts of x and d_l their lengths.  An unbiased operator stays unbiased with omega = max_l omega(d_l), and
a contractive one contractive with alpha = max_l alpha(d_l).  The squared errors and the energies of the parts add up
(Dutta et al. 2020).  Part l uses the key folded by l.  A part of varying length is
preceded by its number of bits, plus 1, in Elias omega code.  Parts below 2^-126 are sent as zero, so the constants hold
for ``max|x| >= 2^-114 sqrt(d)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import Claim, Contractive, NoClaim, StrictlyContractive, Unbiased

from ..bits import elias
from ..bits.bitstream import join_messages, split_messages
from ..key import Key
from ..operator import Operator, Randomness, Size


@dataclass(frozen=True)
class LayerWise(Operator):
    """Apply the operator to each layer.

    Parameters
    ----------
    operator : Operator
        Operator of every layer.
    sizes : tuple of int
        Number of entries per layer, in order.
    """

    operator: Operator
    sizes: tuple[int, ...]

    name = "layer_wise"

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"sizes must name at least one layer, each of at least 1 entry; got {self.sizes}")

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Randomness of the operator."""
        return self.operator.randomness

    @classmethod
    def of(cls, operator: Operator, tensors: Iterable[torch.Tensor]) -> Self:
        """Return the operator for the layers of a model, one per tensor.

        Parameters
        ----------
        operator : Operator
            Operator of every layer.
        tensors : iterable of tensor
            The tensors of a model.
        """
        return cls(operator, tuple(tensor.numel() for tensor in tensors))

    def parts(self, d: int) -> Sequence[int]:
        """Return the lengths of the parts, in order; their sum is d.

        Parameters
        ----------
        d : int
            Number of coordinates.

        Raises
        ------
        ValueError
            If the layers do not have d entries in total.
        """
        if sum(self.sizes) != d:
            raise ValueError(f"d must be the sum of the layer sizes, {sum(self.sizes)}; got d = {d}")
        return self.sizes

    def claim(self, d: int) -> Claim:
        """Return the worst constant of all parts."""
        return combine_claims([operator.claim(n) for operator, n in self._kinds(d)])

    def carried_bits(self, d: int) -> int:
        """Return the sum over all parts."""
        return sum(count * operator.carried_bits(n) for (operator, n), count in self._kinds(d).items())

    def bits(self, d: int) -> Size:
        """Return the sum over the parts, with a length prefix per part of varying length."""
        sizes = [(operator.bits(n), count) for (operator, n), count in self._kinds(d).items()]
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

    def operator_of(self, number: int) -> Operator:
        """Return the operator of a layer.

        Parameters
        ----------
        number : int
            Number of the layer, from 0.
        """
        return self.operator

    def _kinds(self, d: int) -> Counter[tuple[Operator, int]]:
        """Return how many parts have the same operator and length."""
        return Counter((self.operator_of(number), n) for number, n in enumerate(self.parts(d)))

    def _spans(self, d: int) -> Iterator[tuple[int, Operator, int, int]]:
        start = 0
        for number, n in enumerate(self.parts(d)):
            yield number, self.operator_of(number), start, start + n
            start += n

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        spans = list(self._spans(x.size))
        messages = [op._encode(x[start:stop], key.fold_in(number)) for number, op, start, stop in spans]
        return join_messages(messages, [op.bits(stop - start).exact for _, op, start, stop in spans])

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        spans, out = list(self._spans(d)), np.empty(d, np.float32)
        parts = split_messages(payload, bits, [op.bits(stop - start).exact for _, op, start, stop in spans])
        for (number, op, start, stop), (part, length) in zip(spans, parts, strict=True):
            out[start:stop] = op._decode(part, length, stop - start, key and key.fold_in(number))
        return out

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return (): the layers belong to a model."""
        return ()


@dataclass(frozen=True)
class LayerOperators(LayerWise):
    """Apply to each layer an operator of its own, as ``for_bits(..., layers=)`` assigns them.

    Parameters
    ----------
    operator : Operator
        A member of the family.
    sizes : tuple of int
        Number of entries per layer, in order.
    operators : tuple of Operator
        Operator of each layer.
    """

    operators: tuple[Operator, ...] = ()

    name = "layer_operators"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.operators) != len(self.sizes):
            raise ValueError(
                f"operators must name one for each layer; got {len(self.operators)} for {len(self.sizes)} layers"
            )
        if len({operator.randomness for operator in self.operators}) > 1:
            raise ValueError(f"operators must have one kind of randomness; got {self.operators}")

    @property
    def label(self) -> str:
        """The family and the number of layers, in words."""
        return f"{self.operator.name}, {len(self.sizes)} layers"

    def operator_of(self, number: int) -> Operator:
        """Return the operator of a layer.

        Parameters
        ----------
        number : int
            Number of the layer, from 0.
        """
        return self.operators[number]


def combine_claims(claims: Sequence[Claim]) -> Claim:
    """Combine the claims of the parts into one for the vector.

    It is tight if all constants are equal and tight.

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
    """Concatenate all entries of a model's tensors into one vector, in order.

    Parameters
    ----------
    tensors : sequence of tensor
        The tensors of a model.
    """
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _prefix_bits(size: Size) -> int | None:
    return None if size.worst_case is None else int(elias.length(int(size.worst_case) + 1))
