"""Trellis-coded, subtractively dithered, entropy-coded quantisation: unbiased, near the limit, without rotation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch

from bounds.claims import Contractive, Unbiased

from ..inputs import canonical
from ..key import Key
from ..message import CorruptMessage, Messages
from ..operator import DeviceOperator, Size
from ..pieces import Arrays, InPieces
from ..random import bits32_of_rows, normal
from ..rate import Rate
from ..tcdq import dispatch as tcdq
from ..tcdq import fit
from ..tcdq.codec import decode_batch, decode_in_pieces, encode_batch, encode_in_pieces
from ..tcdq.model import Plan, plan_of
from ..tcdq.subset import gather_pieces, gather_rows, scatter_pieces, scatter_rows, sizes
from ..tcdq.trellis import CODES, MOST, seeds

LARGEST = float(np.finfo(np.float32).max)
FINEST, COARSEST = 2.0**-20, 2.0**20
KNEE = 1.5  # distortion of the fewest (1 + omega) bits for a Gaussian
KNEE_OF_INTEGERS = 1.0  # for one state
PEAKY_KNEE = 0.7  # for the gradients of two networks, with 4 and 8 states
SAMPLE = 1 << 17  # coordinates of the Gaussian vector to which a bit budget refers
CLOSE = 0.002  # relative distance from the budget at which the search ends
WORD = 32  # granularity of message lengths, bits
ROUNDS = 40
NEWTON = 8  # rounds before plain bisection
HIGHEST = 10.0  # bits per coordinate of the limit at the finest omega
SPARSE = 0.5  # bits per coordinate; below it, several messages are averaged


@dataclass(frozen=True)
class TCDQ(DeviceOperator, InPieces):
    """Quantise x/step + u to the nearest sequence of a trellis code, entropy-code it given u, subtract u again.

    Parameters
    ----------
    x
        Float tensor, shape (d,), d <= 2^32, on any device; from d = 2^17 on a GPU works on it in place.
    omega : float, optional
        2^-20 .. 2^20.  ``E|C(x) - x|^2 = omega |x|^2`` for every x.
    states : {1, 4, 8, 64, 128, 256}, optional
        States of the trellis, 1 for plain integers.  More states are nearer to the limit and slower.  Below d = 64, 1.
    form : {"unbiased", "contractive"}, optional
        "unbiased", or "contractive": the same divided by 1 + omega.
    knee : float or None, optional
        2^-20 .. 2^20, the largest distortion of what is sent: a larger omega sends a part of the coordinates.  None
        stands for what costs a Gaussian vector least; peaky ones gain from less (``for_bits`` looks for it).

    Raises
    ------
    ValueError
        For a parameter out of range, d > 2^32, or a result that could exceed binary32.

    Notes
    -----
    The step is ``|x| sqrt(omega / (d c))``, c the code's mean squared error, and u is uniform on a cell of the
    sublattice (4 Z)^d, shared by both ends.  Three facts, for every x (Q is the quantiser, y = x/step + u and e = Q(y)
    - y, so that C(x) - x = step e):

    1. *The error law does not depend on x.*  Q(y + 4 z) = Q(y) + 4 z for integer z, so e is a function of y modulo 4,
       and y modulo 4 is uniform.  Hence ``E|C(x) - x|^2`` = step^2 ``d c = omega |x|^2``.

    2. *Unbiased.*  The labels n mod 4 = 2 z1 + z0 of admitted sequences form a linear code over F_2.  Adding a codeword
       a acts on each coordinate as an isometry of the line: n -> n, 1 - n, n + 2, 3 - n for labels 0, 1, 2, 3.  It maps
       admitted sequences to admitted ones, so Q commutes with it up to ties, and it leaves the uniform law of y in
       place; so it does with the bits of the key that decide between equal paths from 128 states on, where lengths
       are rounded.  So the law of e is invariant under e_i -> (-1)^(a_0i) e_i.  If some codeword has z0 = 1 at i, then
       E e_i = 0.  If none has, all labels at i are even and n_i -> -n_i alone maps admitted sequences to admitted
       ones: again E e_i = 0.

    3. *Rate.*  By 1 and 2, sum E(n - u)^2 = d c (1 + 1/omega) whatever x is, and the code length under a Gaussian of
       that variance is quadratic in n - u but for its normalisation at a given u.  So the Gaussian model spends log2(2
       pi e G)/2 bits per coordinate above log2(1 + 1/omega)/2 on every x, G = c/v^2 the normalised second moment (.074
       bit at 8 states, .046 at 64, .037 at 128, .032 at 256, .255 at 1), and somewhat more above omega = 1/2.  The
       encoder sends a mixture by context instead wherever that is shorter.

    Above the knee, 1.5 (1 with one state), a random k of the d coordinates, drawn alike at both ends, is sent with
    omega' = (1 + omega) k/d - 1 and multiplied by d/k; equality is kept.  The dither is a multiple of 2^-24 of its
    cell, symmetric about 0, so the statements hold up to that and to binary32 rounding. (Codes: Ungerboeck 1982;
    dither: Zamir and Feder 1992; coder: Duda 2013.) Bits: norm 32, 8 or more for the model from d = 1024 on, one coder
    state of 64 below d = 2^17; from there on 16 of 32 for each segment of 2^17 coordinates, with 32 for its length; the
    stream.  Zero sends the norm only.
    """

    omega: float = 1.0
    states: Literal[1, 4, 8, 64, 128, 256] = 8
    form: Literal["unbiased", "contractive"] = "unbiased"
    knee: float | None = None

    name = "tcdq"
    sources = ("ungerboeck1982", "zamir1992", "duda2013")
    randomness = "shared"
    rate = Rate("omega", few=COARSEST, many=FINEST)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        if not FINEST <= self.omega <= COARSEST:
            raise ValueError(f"omega must satisfy 2^-20 <= omega <= 2^20; got omega = {self.omega}")
        if self.states not in CODES:
            raise ValueError(f"states must be one of {', '.join(map(str, CODES))}; got states = {self.states}")
        if self.form not in ("unbiased", "contractive"):
            raise ValueError(f'form must be "unbiased" or "contractive"; got {self.form!r}')
        if self.knee is not None and not FINEST <= self.knee <= COARSEST:
            raise ValueError(f"knee must satisfy 2^-20 <= knee <= 2^20; got knee = {self.knee}")

    @classmethod
    def for_bits(
        cls,
        bits: float,
        *,
        states: Literal[1, 4, 8, 64, 128, 256] = 8,
        form: Literal["unbiased", "contractive"] = "unbiased",
        like: torch.Tensor | np.ndarray | None = None,
    ) -> Self:
        """Return the operator whose messages have about this many bits per coordinate, everything counted.

        Parameters
        ----------
        bits : float, bits
            Bits per coordinate, 0.01 .. 10.
        states : {1, 4, 8, 64, 128, 256}, optional
            States of the trellis.
        form : {"unbiased", "contractive"}, optional
            "unbiased" or "contractive".
        like : tensor or ndarray or None, optional
            A vector typical of what will be sent; by default 2^17 Gaussian numbers, which cost most at their energy, so
            that other vectors stay below the budget.  With it, two knees are tried, and the one of less distortion is
            taken.

        Raises
        ------
        ValueError
            For arguments outside that range, or for a vector too short for so few bits.
        """
        if not 0.01 <= bits <= 10:
            raise ValueError(f"bits must satisfy .01 <= bits <= 10 a coordinate; got bits = {bits}")
        x = normal(Key(0), SAMPLE).astype(np.float32) if like is None else canonical(like)
        draws = math.ceil(SPARSE / bits)

        def found(knee: float | None) -> float:
            def measured(omega: float) -> float:
                operator = cls(omega=omega, states=states, knee=knee)
                return sum(operator.encode(x, key=Key(0, step=t)).bits for t in range(draws)) / (draws * x.size)

            return _search(bits, max(CLOSE * bits, WORD / (draws * x.size)), measured)

        omega, knee = found(None), None
        if like is not None and omega > PEAKY_KNEE:
            omega, knee = min((omega, knee), (found(PEAKY_KNEE), PEAKY_KNEE), key=lambda tried: tried[0])
        return cls(omega=omega, states=states, form=form, knee=knee)

    def claim(self, d: int) -> Unbiased | Contractive:
        """Return equality for every x; a contraction by omega/(1 + omega) in the contractive form."""
        if self.form == "contractive":
            return Contractive(self.omega / (1 + self.omega), tight=True)
        return Unbiased(self.omega, tight=True)

    def mean_at(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return x, or x/(1 + omega) in the contractive form, with the variance omega, omega/(1 + omega)^2.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        factor = 1 / (1 + self.omega) if self.form == "contractive" else 1.0
        return factor * np.asarray(x, np.float64), self.omega * factor**2

    def ceiling(self, d: int) -> float:
        """Return a bound on ``|C(x) - x|^2/|x|^2`` of a single draw: no coordinate is off by more than two steps.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        plan = self._plan(d)
        return (1 + math.sqrt(plan.d) * (1 + 2 * plan.ratio) * self._factor(plan, d)) ** 2

    def bits(self, d: int) -> Size:
        """Return limits from the coder's tables; whole bytes."""
        plan = self._plan(d)
        return Size(None, fit.expected(plan), fit.worst(plan))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return rates from .13 to 4 bits, three codes, both forms."""
        return cls(), cls(omega=0.004, states=4), cls(omega=9.0), cls(omega=0.25, states=1), cls(form="contractive")

    def _plan(self, d: int) -> Plan:
        if d > MOST:
            raise ValueError(f"d must satisfy d <= 2^32; got d = {d}: send it as several vectors")
        k, omega = sizes(d, self.omega, self.knee or (KNEE if self.states > 1 else KNEE_OF_INTEGERS))
        return plan_of(k, omega, self.states)

    def _factor(self, plan: Plan, d: int) -> float:
        """Return what a decoded coordinate is multiplied by."""
        return d / plan.d / (1 + self.omega if self.form == "contractive" else 1)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d = x.numel()
        plan = self._plan(d)
        payload = tcdq.encode(x if plan.d == d else tcdq.gather(x, plan.d, key), plan, seeds(key))
        return self._checked(payload, plan, d)

    def _checked(self, payload: torch.Tensor, plan: Plan, d: int) -> tuple[torch.Tensor, int]:
        self._check_norm(float(payload[:4].cpu().numpy().view(">f4")[0]), plan, d)
        return payload, 8 * payload.numel()

    def _check_norm(self, norm: float, plan: Plan, d: int) -> None:
        factor = max(1.0, self._factor(plan, d))  # binary32 must hold a coordinate before and after the factor
        farthest = (1 + 2 * plan.ratio) * norm * factor  # no error exceeds two steps
        if farthest > LARGEST:
            raise ValueError(f"a coordinate could become {farthest:.3g}, beyond binary32: rescale x")

    def _encode_arrays(self, arrays: Arrays, d: int, key: Key) -> tuple[np.ndarray, int]:
        plan = self._plan(d)
        kept = arrays if plan.d == d else lambda: gather_pieces(arrays(), d, plan.d, key)
        payload, bits = self._checked(torch.from_numpy(encode_in_pieces(kept, plan, seeds(key))), plan, d)
        return payload.numpy(), bits

    def _decode_arrays(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        assert key is not None  # decode_pieces demands it for shared randomness
        plan = self._plan(d)
        factor = self._factor(plan, d)
        parts = decode_in_pieces(payload, bits, plan, seeds(key))
        if plan.d < d:
            parts = scatter_pieces(parts, d, plan.d, key, factor)
        for part in parts:
            if plan.d == d and factor != 1:
                part *= np.float32(factor)
            _finite(torch.from_numpy(part), factor)
            yield part

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages | None:
        d = x.shape[1]
        plan = self._plan(d)
        if plan.fits:  # a model of its own takes longer than the call
            return None
        kept = x if plan.d == d else gather_rows(x, plan.d, keys)
        messages, largest = encode_batch(kept, plan, bits32_of_rows(keys, 2))
        self._check_norm(largest, plan, d)
        return messages

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray | None:
        plan = self._plan(d)
        if plan.fits:
            return None
        factor = self._factor(plan, d)
        rows = decode_batch(messages, plan, bits32_of_rows(keys, 2))
        if plan.d < d:
            rows = scatter_rows(rows, d, keys, factor)
        elif factor != 1:
            rows *= np.float32(factor)
        _finite(torch.from_numpy(rows), factor)
        return rows

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        plan = self._plan(d)
        assert key is not None  # Operator.decode demands it for shared randomness
        part = tcdq.decode(payload, bits, plan, seeds(key))
        factor = self._factor(plan, d)
        if plan.d < d:
            part = tcdq.scatter(part, d, key, factor)
        elif factor != 1:
            part *= float(np.float32(factor))
        return _finite(part, factor)


def _finite(part: torch.Tensor, factor: float) -> torch.Tensor:
    """Return decoded coordinates, which a factor above 1 may have brought beyond binary32."""
    if factor > 1 and not bool(torch.isfinite(part).all()):
        raise CorruptMessage("a decoded coordinate exceeds binary32")
    return part


def _guess(rate: float) -> float:
    """Return omega of a rate above the limit of half a logarithm."""
    return float(np.clip(1 / math.expm1(2 * math.log(2) * max(rate, 1e-7)), FINEST, COARSEST))


def _search(bits: float, close: float, measured: Callable[[float], float]) -> float:
    """Return omega at which ``measured(omega)`` is ``bits``: it falls, for a Gaussian by as much as the limit does."""
    rate, low, high = bits, 0.0, HIGHEST
    for turn in range(ROUNDS):
        sent = measured(_guess(rate))
        if abs(sent - bits) <= close:
            return _guess(rate)
        low, high = (max(rate, low), high) if sent < bits else (low, min(rate, high))
        rate += bits - sent
        if turn > NEWTON or not low < rate < high:
            rate = (low + high) / 2
    raise ValueError(
        f"no omega in 2^-20 .. 2^20 gives messages of {bits} bits per coordinate: d is too small for the header, "
        "or the vector is so sparse that it never costs that much"
    )
