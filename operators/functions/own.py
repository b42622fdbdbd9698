"""A compressor of one's own as an operator: its output travels as it is, and beside it as many bits as it states."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import torch

from bounds.claims import Claim, NoClaim
from bounds.numbers import SupportsArray

from ..key import Key
from ..message import CorruptMessage
from ..operator import DeviceOperator, Operator, Size
from .forms import Form, form_of
from .global_streams import seeded

Bits = float | Callable[[int], float] | None
Function = (
    Callable[..., SupportsArray | tuple[object, SupportsArray] | torch.futures.Future[torch.Tensor]]
    | tuple[Callable[..., object], Callable[..., SupportsArray]]
)
"""``x -> x_hat``, ``x -> (payload, x_hat)``, ``hook(state, bucket)``, or a pair (compress, decompress)."""
Compressor = str | Operator | Function
"""A specification, an operator, or a compressor of one's own."""


@dataclass(frozen=True)
class Own(DeviceOperator):
    """A compressor of one's own as a function; its bits are those that it states.

    A message carries the output itself, binary32, from rank to rank, and behind it zeros as long as what the function
    states to send: ``carried_bits`` says how many bits of it do not count.

    Parameters
    ----------
    function : callable
        ``x -> x_hat``, or ``x -> (payload, x_hat)``, of a 1-d float32 tensor or array; or a communication hook of
        torch, ``hook(state, bucket)``; or what else ``operators.laws.adapt`` takes.
    stated_bits : float or callable or None, optional
        Bits per coordinate; or a function of d, the bits of a message of d coordinates; by default the function's own
        attribute ``bits``, and without one the length of the payload that it returns.
    claim_of : Claim or callable or None, optional
        What it promises, or a function of d; by default its attribute ``claim``, else nothing.
    library : {"torch", "numpy"} or None, optional
        What it is given; by default its attribute ``library``, else what its first annotation says, else torch.
    label : str, optional
        What tables and figures call it; by default the function's name.

    Raises
    ------
    ValueError
        For what is no function.
    """

    function: Function = field(repr=False)
    stated_bits: Bits = field(default=None, repr=False)
    claim_of: Claim | Callable[[int], Claim] | None = field(default=None, repr=False)
    library: Literal["torch", "numpy"] | None = None
    label: str = ""

    name = "own"
    randomness = "private"

    def __post_init__(self) -> None:
        if isinstance(self.function, type) or not (callable(self.function) or isinstance(self.function, tuple)):
            raise ValueError(
                f"a compressor of your own must be a function x -> x_hat or an Operator; got {self.function!r}: "
                "give a function, or an instance of the class"
            )
        if not self.label:
            object.__setattr__(self, "label", getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def stated_claim(self) -> Claim | Callable[[int], Claim] | None:
        """What was stated for it, None where nothing was."""
        return self.claim_of if self.claim_of is not None else getattr(self.function, "claim", None)

    def claim(self, d: int) -> Claim:
        """Return what was stated for it."""
        stated = self.stated_claim
        if stated is None:
            return NoClaim("none was given")
        return stated(d) if callable(stated) else stated

    def bits(self, d: int) -> Size:
        """Return the stated bits and those of the output; unknown where only the payload says them."""
        stated = self._stated(d)
        return Size() if stated is None else Size.fixed(self.carried_bits(d) + stated)

    def carried_bits(self, d: int) -> int:
        """Return the bits of the output, binary32."""
        return 32 * d

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return signs times their mean magnitude."""
        return (cls(lambda x: torch.sign(x) * x.abs().mean(), 1.0, label="signs"),)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        payload, decoded = self._called(x, key)
        stated = self._stated(x.numel())
        if stated is None and payload is None:
            raise ValueError(
                f"{self.label} does not say how many bits it sends: set {self.label}.bits to bits per coordinate, or "
                "let it return (payload, x_hat)"
            )
        spent = 8 * _bytes(payload) if stated is None else stated
        carried = decoded.to(x.device).contiguous().view(torch.uint8)
        room = torch.zeros(-(-spent // 8), dtype=torch.uint8, device=x.device)
        return torch.cat([carried, room]), self.carried_bits(x.numel()) + spent

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        stated, spent = self._stated(d), bits - self.carried_bits(d)
        if spent < 0 or (stated is not None and spent != stated):
            raise CorruptMessage(f"a message of {self.label} at d = {d} cannot have {bits} bits")
        decoded = payload[: 4 * d].clone().view(torch.float32)
        if payload[4 * d :].any() or not torch.isfinite(decoded).all():
            raise CorruptMessage(f"a message of {self.label} must be finite numbers and zeros behind them")
        return decoded

    def _called(self, x: torch.Tensor, key: Key) -> tuple[Any, torch.Tensor]:
        """Return the payload and the output; global generators are seeded from the key for the call, and restored."""
        given = x.cpu().numpy().copy() if self.array == "numpy" else x.clone()
        with seeded(key.seed, f"{self.label} {key}"):
            payload, x_hat = _parts(self._form(given))
        decoded = x_hat.detach() if isinstance(x_hat, torch.Tensor) else torch.from_numpy(np.array(x_hat, np.float64))
        decoded = decoded.reshape(-1).to(torch.float32)
        d = x.numel()
        if decoded.numel() != d or not torch.isfinite(decoded).all():
            got = f"{decoded.numel()} numbers" if decoded.numel() != d else "an entry that is not finite"
            raise ValueError(f"{self.label} must return {d} finite numbers; got {got}: return x_hat, shape (d,)")
        return payload, decoded

    def _stated(self, d: int) -> int | None:
        """Return the stated bits of a message, a fraction of a bit as a whole one."""
        stated = self.stated_bits if self.stated_bits is not None else getattr(self.function, "bits", None)
        if stated is None:
            return None
        bits = float(stated(d) if callable(stated) else stated * d)
        if not 0 <= bits < math.inf:
            raise ValueError(f"bits of {self.label} must be finite and >= 0; got {bits} at d = {d}: correct it")
        return math.ceil(bits)

    def plain(self) -> Callable[[Any], Any]:
        """Return the function x -> x_hat alone, with its own randomness, for ``operators.laws.check``."""

        def function(x: Any) -> Any:
            return _parts(self._form(x))[1]

        function.__name__ = function.__qualname__ = self.label
        return function

    @cached_property
    def array(self) -> Literal["torch", "numpy"]:
        """What the function is given."""
        stated = self.library or getattr(self.function, "library", None)
        hints = list(getattr(self.function, "__annotations__", {}).values())
        is_numpy = stated == "numpy" if stated else bool(hints and "ndarray" in str(hints[0]))
        return "numpy" if is_numpy else "torch"

    @cached_property
    def _form(self) -> Form:
        return form_of(self.function, self.array)


def _parts(returned: Any) -> tuple[Any, Any]:
    """Return payload, None where there is none, and output."""
    return returned if isinstance(returned, tuple) and len(returned) == 2 else (None, returned)


def _bytes(payload: Any) -> int:
    """Return the length of a payload: bytes, an array, a tensor, or a sequence of them."""
    if isinstance(payload, bytes | bytearray):
        return len(payload)
    if hasattr(payload, "nbytes"):
        return int(payload.nbytes)
    if isinstance(payload, list | tuple):
        return sum(_bytes(part) for part in payload)
    raise ValueError(f"a payload must be bytes, an array or a tensor; got {payload!r}: return (payload, x_hat)")


def own(
    function: Function,
    *,
    bits: Bits = None,
    claim: Claim | Callable[[int], Claim] | None = None,
    library: Literal["torch", "numpy"] | None = None,
    name: str = "",
) -> Own:
    """Return a compressor of your own as an operator, wherever one is taken.

    Parameters
    ----------
    function : callable
        ``x -> x_hat``, or ``x -> (payload, x_hat)``, of a 1-d float32 tensor or array; or a communication hook of
        torch, ``hook(state, bucket)``; or a pair (compress, decompress).
    bits : float or callable or None, optional
        Bits per coordinate; or a function of d, the bits of a message of d coordinates; by default the function's own
        attribute ``bits``, and without one the length of the payload that it returns.
    claim : Claim or callable or None, optional
        What it promises, or a function of d; by default its attribute ``claim``, else nothing.
    library : {"torch", "numpy"} or None, optional
        What it is given; by default its attribute ``library``, else what its first annotation says, else torch.
    name : str, optional
        By default the function's.

    Raises
    ------
    ValueError
        For what is no function.

    Examples
    --------
    >>> import ratedist as rd
    >>> half = rd.own(lambda x: x.half().float(), bits=16, name="half precision")
    >>> rd.measure(half, [1.0, 0.1, -3.0]).bits
    16.0
    """
    return Own(function, bits, claim, library, name)
