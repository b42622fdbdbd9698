"""Whatever compresses a vector, as one thing that can be measured: an operator, or a function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from bounds.claims import Claim, NoClaim

from .compressors import operator_of

if TYPE_CHECKING:
    from operators import Key, Operator

Bits = float | Callable[[int], float] | None


class Sender(Protocol):
    """One compressor, as ``measure`` sees it."""

    @property
    def name(self) -> str:
        """What tables and figures call it."""

    def claim(self, d: int) -> Claim:
        """Return what it promises at dimension d."""

    def send(self, x: np.ndarray, key: Key) -> tuple[float, np.ndarray]:
        """Return the bits of one message and what it is decoded to, float64, shape (d,)."""


@dataclass(frozen=True)
class OfOperator:
    """An operator: a real message, its bits counted.

    Parameters
    ----------
    operator : Operator
        Any of them.
    """

    operator: Operator

    @property
    def name(self) -> str:
        """Its specification."""
        from operators import specification

        return specification(self.operator)

    def claim(self, d: int) -> Claim:
        """Return its own claim.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return self.operator.claim(d)

    def send(self, x: np.ndarray, key: Key) -> tuple[float, np.ndarray]:
        """Encode and decode.

        Parameters
        ----------
        x : ndarray
            float32, shape (d,).
        key : Key
            Of its randomness.
        """
        message = self.operator.encode(x, key=key)
        return message.bits, self.operator.decode(message, d=x.size, key=key).numpy().astype(np.float64)


@dataclass(frozen=True)
class Own:
    """A compressor of one's own as a function; nothing is packed, so its bits are those that it states.

    Parameters
    ----------
    function : callable
        ``x -> x_hat``, or ``x -> (payload, x_hat)``, of a 1-d float32 tensor or array; or a communication hook of
        torch, ``hook(state, bucket)``; or what else ``operators.laws.adapt`` takes.
    bits : float or callable or None, optional
        Bits a coordinate; or a function of d, the bits of a message of d coordinates; by default the function's own
        attribute ``bits``, and without one the length of the payload that it returns.
    claim_of : Claim or callable or None, optional
        What it promises, or a function of d; by default its attribute ``claim``, else nothing.
    library : {"torch", "numpy"} or None, optional
        What it is given; by default its attribute ``library``, else what its first annotation says, else torch.
    label : str, optional
        What tables and figures call it; by default the function's.

    Raises
    ------
    ValueError
        For what is no function.
    """

    function: Any
    bits: Bits = None
    claim_of: Claim | Callable[[int], Claim] | None = None
    library: Literal["torch", "numpy"] | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.function, type) or not (callable(self.function) or isinstance(self.function, tuple)):
            raise ValueError(
                f"a compressor of your own must be a function x -> x_hat or an Operator; got {self.function!r}: "
                "give a function, or an instance of the class"
            )

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return self.label or getattr(self.function, "__name__", type(self.function).__name__)

    def claim(self, d: int) -> Claim:
        """Return what was stated for it.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        stated = self.claim_of if self.claim_of is not None else getattr(self.function, "claim", None)
        if stated is None:
            return NoClaim("none was given")
        return stated(d) if callable(stated) else stated

    def send(self, x: np.ndarray, key: Key) -> tuple[float, np.ndarray]:
        """Call the function; the global generators are seeded from the key for the call, and restored.

        Parameters
        ----------
        x : ndarray
            float32, shape (d,).
        key : Key
            Of its randomness.

        Raises
        ------
        ValueError
            For an output of another length or with an entry that is not finite, and where its bits are unknown.
        """
        import torch

        from operators.laws.kit.global_streams import seeded

        given = x.copy() if self._library == "numpy" else torch.from_numpy(x.copy())
        with seeded(key.seed, f"{self.name} {key.step}"):
            returned = self._form(given)
        payload, x_hat = returned if isinstance(returned, tuple) and len(returned) == 2 else (None, returned)
        decoded = np.asarray(x_hat.detach().cpu() if hasattr(x_hat, "detach") else x_hat, np.float64).ravel()
        if decoded.size != x.size or not np.isfinite(decoded).all():
            got = f"{decoded.size} numbers" if decoded.size != x.size else "an entry that is not finite"
            raise ValueError(f"{self.name} must return {x.size} finite numbers; got {got}: return x_hat, shape (d,)")
        return self._bits(payload, x.size), decoded

    def _bits(self, payload: Any, d: int) -> float:
        stated = self.bits if self.bits is not None else getattr(self.function, "bits", None)
        if stated is not None:
            bits = float(stated(d) if callable(stated) else stated * d)
            if not 0 <= bits < float("inf"):
                raise ValueError(f"bits of {self.name} must be finite and >= 0; got {bits} at d = {d}: correct it")
            return bits
        if payload is None:
            raise ValueError(
                f"{self.name} does not say how many bits it sends: set {self.name}.bits to bits a coordinate, or let "
                "it return (payload, x_hat)"
            )
        return 8.0 * _bytes(payload)

    @cached_property
    def _library(self) -> str:
        stated = self.library or getattr(self.function, "library", None)
        hints = list(getattr(self.function, "__annotations__", {}).values())
        return stated or ("numpy" if hints and "ndarray" in str(hints[0]) else "torch")

    @cached_property
    def _form(self) -> Any:
        from operators.laws import adapt

        return adapt(self.function, library="numpy" if self._library == "numpy" else "torch").target


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
    function: Any,
    *,
    bits: Bits = None,
    claim: Claim | Callable[[int], Claim] | None = None,
    library: Literal["torch", "numpy"] | None = None,
    name: str = "",
) -> Own:
    """Return a compressor of your own that ``measure``, ``gap``, ``compare`` and ``measured_curve`` take.

    Parameters
    ----------
    function : callable
        ``x -> x_hat``, or ``x -> (payload, x_hat)``, of a 1-d float32 tensor or array; or a communication hook of
        torch, ``hook(state, bucket)``; or a pair (compress, decompress).
    bits : float or callable or None, optional
        Bits a coordinate; or a function of d, the bits of a message of d coordinates; by default the function's own
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


def sender_of(given: Any) -> Sender:
    """Return what can be measured of a specification, an operator, ``own(...)`` or a function.

    "mine:f" imports it from the module mine, in the current folder too.

    Parameters
    ----------
    given : str or Operator or Own or callable
        The compressor.

    Raises
    ------
    ValueError
        For an unknown name, and for what is no compressor.
    """
    from operators import Operator, all_operators, outside

    if isinstance(given, Own):
        return given
    if isinstance(given, str):
        reference = outside.split(given)
        if reference is not None and given.partition(":")[0] not in all_operators():
            named = outside.load(reference[0], "operator")
            if isinstance(named, Own | tuple) or (callable(named) and not isinstance(named, type | Operator)):
                return named if isinstance(named, Own) else Own(named, label=given)
        return OfOperator(operator_of(given))
    if isinstance(given, Operator):
        return OfOperator(given)
    if callable(given) or isinstance(given, tuple):
        return Own(given)
    raise ValueError(
        f'a compressor must be a specification such as "qsgd:4", an Operator or a function; got {given!r}: give one'
    )
