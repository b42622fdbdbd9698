"""One view of whatever is judged: an Operator, an object with encode and decode, or a plain function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from math import inf
from typing import Any, Literal, Protocol

import numpy as np
import torch

from bounds.claims import Claim, Contractive, NoClaim, StrictlyContractive, Unbiased
from bounds.numbers import SupportsArray

from ...aggregate.aggregate import Aggregate
from ...feedback.feedback import Feedback
from ...key import Key
from ...message import Message
from ...operator import Operator
from ..betting.budget import work_s
from ..randomness.intercept import Draws
from .examples import EVERYTHING, Domain

Array = Literal["torch", "numpy"]
ClaimSource = Claim | Callable[[int], Claim] | None


class Coder(Protocol):
    """Whatever turns a vector into a message of any kind, and back."""

    @property
    def encode(self) -> Callable[..., object]:
        """From a vector, and a key where it takes one, to a message."""

    @property
    def decode(self) -> Callable[..., SupportsArray]:
        """From a message, and dimension and key where it takes them, to a vector."""


Target = Operator | Coder | Feedback | Aggregate | Callable[..., SupportsArray]
"""What the laws judge; a function brings its own randomness."""

PROBE = np.array([1.0, -0.5], np.float32)


class OutOfTime(Exception):  # noqa: N818
    """The check's time is over while a law is still at a vector."""


class Subject:
    """What the laws see.

    Parameters
    ----------
    target : number
        An Operator; or an object with ``encode(x, [key=]) -> message`` and ``decode(message, [d=], [key=])``; or a
        function ``x -> x_hat`` that brings its own randomness.
    claim : ClaimSource, optional
        Overrides the target's own; a claim, or a function of d.
    array : Array, optional
        What a function receives.
    domain : Domain, optional
        The vectors that it is meant for.
    rounding : float, optional
        The relative error that its number type makes in each coordinate, beyond that of binary32.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        For an unknown ``array``.

    Notes
    -----
    A Feedback or an Aggregate is recognised too (``kind``) and judged by laws of its own.
    """

    def __init__(
        self,
        target: Target,
        claim: ClaimSource = None,
        array: Array = "torch",
        *,
        domain: Domain = EVERYTHING,
        rounding: float = 0.0,
    ) -> None:
        if array not in ("torch", "numpy"):
            raise ValueError(f'array must be "torch" or "numpy"; got {array!r}')
        self.target: Any = target
        self.array = array
        self.domain, self.rounding = domain, rounding
        self.ceiling: float | None = None  # of |C(x) - x|^2/|x|^2 of a single draw, where one is declared
        self.spelled = ""  # the call that makes it, where that is not its name
        self.kind = _kind(target)
        self.is_codec = (
            self.kind == "compressor"
            and callable(getattr(target, "encode", None))
            and callable(getattr(target, "decode", None))
        )
        if self.kind == "compressor" and not self.is_codec and not callable(target):
            raise TypeError(f"expected an operator, an object with encode and decode, or a function; got {target!r}")
        if isinstance(target, type):
            raise TypeError(f"expected an instance; got the class {target.__name__}: call it first")
        self._claim = claim
        self.draws = Draws()  # what is known of the generators that a function uses
        self.deadline = inf  # by ``clock.work_s``: after it the subject is not called any more
        self.is_operator = isinstance(target, Operator)
        self._encode_takes = _keywords(target, "encode") if self.is_codec else frozenset()
        self._decode_takes = _keywords(target, "decode") if self.is_codec else frozenset()

    # -- what is promised ----------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """A readable description, used in test ids."""
        if self.is_codec or self.kind != "compressor":
            text = repr(self.target)
            return text if len(text) < 100 and " at 0x" not in text else type(self.target).__name__
        return getattr(self.target, "__name__", type(self.target).__name__)

    def claim(self, d: int) -> Claim:
        """Return the claim under test at dimension d.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        source = self._claim if self._claim is not None else getattr(self.target, "claim", None)
        if source is None:
            return NoClaim("none was given")
        return source(d) if callable(source) else source

    def claimed(self) -> str:
        """Return the claim under test in words, at two dimensions where it depends on d; empty if there is none."""
        if self.kind != "compressor":
            return ""
        try:
            stated = {d: _in_words(self.claim(d)) for d in map(self.domain.length, (8, 1000))}
        except Exception:  # the laws will say so
            return ""
        if len(set(stated.values())) == 1:
            return " = ".join(filter(None, next(iter(stated.values()))))
        parts, kind = [], ""
        for d, (named, value) in stated.items():
            parts += [(f"{named} = " if named != kind else "") + f"{value} at d = {d}"] if named else []
            kind = named
        return ", ".join(parts)

    def ceiling_at(self, d: int) -> float | None:
        """Return the declared largest ``|C(x) - x|^2/|x|^2`` of a single draw, or None.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        declared = getattr(self.target, "ceiling", None)
        return self.ceiling if self.ceiling is not None or not callable(declared) else float(declared(d))

    @property
    def randomness(self) -> str | None:
        """The declared randomness, or None where nothing is declared."""
        return getattr(self.target, "randomness", None)

    @property
    def takes_key(self) -> bool:
        """Whether its randomness is an argument."""
        return "key" in self._encode_takes

    @cached_property
    def has_messages(self) -> bool:
        """Whether encode returns a Message, so that bits can be counted."""
        return self.is_codec and (
            self.is_operator or isinstance(self.encode_as_it_is(self._given(PROBE), Key(0)), Message)
        )

    def pace(self) -> float:
        """Return seconds of the quickest of a few encodings: what others do on the machine hardly shows; 0 for no
        codec.
        """
        x = self.domain.fit(PROBE) if self.is_codec else None
        if x is None:
            return 0.0
        quickest = inf
        for _ in range(4):
            began = work_s()
            try:
                self.encode(x, Key(0))
            except Exception:  # the laws will say so
                return 0.0
            quickest = min(quickest, work_s() - began)
        return quickest

    def session(self) -> AbstractContextManager[None]:
        """Return what is kept up from call to call of a check, such as a process group."""
        return getattr(self.target, "session", nullcontext)()

    # -- what it does ----------------------------------------------------------------------------------------
    def encode(self, x: Any, key: Key) -> Any:
        """Return the message of a vector.

        Parameters
        ----------
        x
            The vector, shape (d,).
        key : Key
            Stream of random numbers.

        Raises
        ------
        OutOfTime
            After the deadline.
        """
        if work_s() > self.deadline:
            raise OutOfTime
        return self.encode_as_it_is(x if self.is_operator or not isinstance(x, np.ndarray) else self._given(x), key)

    def encode_as_it_is(self, x: Any, key: Key) -> Any:
        """Return the message of this very tensor or array, not of a copy.

        Parameters
        ----------
        x
            The vector, shape (d,).
        key : Key
            Stream of random numbers.
        """
        return self.target.encode(x, **({"key": key} if self.takes_key else {}))

    def decode(self, message: Any, d: int, key: Key | None) -> Any:
        """Return the vector of a message.

        Parameters
        ----------
        message
            A message of ``encode``.
        d : int
            Number of coordinates.
        key : Key or None
            Stream of random numbers.
        """
        offered = {"d": d, "key": key}
        return self.target.decode(message, **{k: v for k, v in offered.items() if k in self._decode_takes})

    def raw(self, x: np.ndarray, key: Key) -> Any:
        """Return the output as the user would see it.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        key : Key
            Stream of random numbers.

        Raises
        ------
        OutOfTime
            After the deadline.
        """
        if work_s() > self.deadline:
            raise OutOfTime
        if self.is_codec:
            return self.decode(self.encode(x, key), x.size, key)
        return self.target(self._given(x))

    def _given(self, x: np.ndarray) -> Any:
        return torch.from_numpy(x.copy()) if self.array == "torch" else x.copy()

    def draw(self, x: np.ndarray, key: Key) -> np.ndarray:
        """Return the output as float64, shape (d,).

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        key : Key
            Stream of random numbers.
        """
        return to_numpy(self.raw(x, key)).reshape(x.shape)


def _in_words(claim: object) -> tuple[str, str]:
    """Return the kind of a claim and its constant; empty for none."""
    if isinstance(claim, Unbiased):
        return "unbiased with omega", f"{claim.omega:.6g}" + " (reached)" * claim.tight
    if isinstance(claim, Contractive):
        surely = "surely " * isinstance(claim, StrictlyContractive)
        return f"{surely}contractive with alpha", f"{claim.alpha:.6g}" + " (reached)" * claim.tight
    return "", ""


def claim_spelled(claim: object) -> str:
    """Return a claim as an argument: a function of d by its name."""
    return getattr(claim, "__name__", repr(claim)) if callable(claim) else repr(claim)


def _kind(target: Any) -> str:
    if isinstance(target, Feedback):
        return "feedback"
    return "aggregate" if isinstance(target, Aggregate) else "compressor"


def to_numpy(value: Any) -> np.ndarray:
    """Return a tensor or array as a new float64 array."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().to(torch.float64).numpy()
    return np.array(value, dtype=np.float64)


def _keywords(target: Any, method: str) -> frozenset[str]:
    parameters = inspect.signature(getattr(target, method)).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return frozenset({"d", "key"})
    return frozenset(p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY)
