"""Stateless compressors: encode on one side, decode on the other, count the bits exactly."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from bounds.claims import Claim
from bounds.fields import Fields, whole

from .fingerprint import combined, differing, fingerprint
from .inputs import canonical as canonical
from .inputs import canonical_rows, canonical_tensor, plain_tensor
from .kernels import is_forced
from .key import Key
from .message import CorruptMessage, Message, Messages
from .rate import Rate

Randomness = Literal["none", "private", "shared"]
LONG = 1 << 20  # coordinates; for longer vectors the message length is checked before memory is allocated
SHORT = 1 << 14  # coordinates; longer rows gain nothing from a batch, which needs 12 bytes per coordinate


@dataclass(frozen=True)
class Size:
    """Message length in bits at one d; unknown entries are None.

    Parameters
    ----------
    exact : int or None, optional
        Length of every message.
    expected_upper : float or None, optional
        Upper bound on the mean length of every vector.
    worst_case : float or None, optional
        Upper bound on the length of every message.
    """

    exact: int | None = None
    expected_upper: float | None = None
    worst_case: float | None = None

    @classmethod
    def fixed(cls, bits: int) -> Size:
        """Return the size of a fixed-length code.

        Parameters
        ----------
        bits : int, bits
            Length in bits.
        """
        return cls(exact=bits, expected_upper=bits, worst_case=bits)

    def without(self, bits: int) -> Size:
        """Return the size of messages that are shorter by a fixed number of bits.

        Parameters
        ----------
        bits : int, bits
            Reduction of every message.
        """
        if not bits:
            return self
        return Size(
            None if self.exact is None else self.exact - bits,
            None if self.expected_upper is None else self.expected_upper - bits,
            None if self.worst_case is None else self.worst_case - bits,
        )


class Operator(Fields, ABC):
    """A compressor of one vector by one party; subclasses are frozen, final dataclasses.

    Subclasses write ``_encode`` and ``_decode`` on canonical input: a contiguous float32 numpy array, shape
    (d,), d >= 1, finite.  A CUDA tensor is copied to the CPU for them.  Operators that can work on any device
    derive from ``DeviceOperator`` instead.  The public methods check and convert their arguments.

    Attributes
    ----------
    name : str
        The catalogue name ("qsgd").
    randomness : Randomness
        "none"; "private" (the decoder never reads the key); "shared" (both ends use it).
    equivariant : frozenset of str
        Symmetries of the operator under one key: "scale" (by powers of two), "sign", "permutation"; tested by the
        laws.  They also read two optional attributes: ``witness(d)``, a vector where the claimed constant is reached
        (or None), and ``ranks_agree = True``, if all ranks are meant to draw alike.
    sources : tuple of str
        Keys in ``bounds/references.bib`` of the works that the docstring names; empty by default.
    rate : Rate or None
        Field that controls the bits of the messages, for ``for_bits``; None where there is none.
    format_version : int
        Version of the message format; increase it when the same fields write other bytes.

    Notes
    -----
    An operator that does not claim ``Unbiased`` may declare what else determines the mean of its output, which the laws
    then judge: ``projects = True`` (<C(x), C(x) - x> = 0 on every draw), or ``mean_at(x)``, giving (E C(x), a bound on
    ``E|C(x) - E C(x)|^2 / |x|^2``), or None at an x where it is unknown.
    """

    name: ClassVar[str]
    randomness: ClassVar[Randomness]
    equivariant: ClassVar[frozenset[str]] = frozenset()
    projects: ClassVar[bool] = False
    sources: ClassVar[tuple[str, ...]] = ()
    rate: ClassVar[Rate | None] = None
    format_version: ClassVar[int] = 1

    @property
    def format_id(self) -> int:
        """Number of the message format, 1 .. 2^32 - 1.

        It depends on the name, ``format_version`` and the fields that differ from their defaults, so that a new field
        with a default changes no number.
        """
        values = fingerprint({field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[arg-type]
        defaults = fingerprint({field.name: field.default for field in fields(self)})  # type: ignore[arg-type]
        chosen = {name: values[name] for name in differing(values, defaults)}
        return combined(fingerprint({"": f"{self.name} {self.format_version}"}) | chosen) % (2**32 - 1) + 1

    @abstractmethod
    def claim(self, d: int) -> Claim:
        """Return the claimed error class and constant at dimension d >= 1.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """

    @abstractmethod
    def bits(self, d: int) -> Size:
        """Return the message length at dimension d >= 1, in bits, from the fields of the format.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """

    def carried_bits(self, d: int) -> int:
        """Return the bits per message that only serve a simulation and do not count; 0 by default.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return 0

    def codec_size(self, d: int) -> Size:
        """Return the message lengths without the bits that only serve a simulation.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return self.bits(d).without(self.carried_bits(d))

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return instances that are valid for every d >= 1; laws, tests and documentation use them."""

    @abstractmethod
    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        """Return (payload as a uint8 array, bits) of a canonical vector."""

    @abstractmethod
    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        """Return the decoded vector: float32, shape (d,), a new array.

        Raise CorruptMessage unless exactly ``bits`` bits are used.
        """

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        """Encode a tensor on any device, here by a copy on the CPU; see ``DeviceOperator``."""
        payload, bits = self._encode(x.cpu().numpy(), key)
        return torch.from_numpy(payload).to(x.device), bits

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        """Decode a payload on any device, here by a copy on the CPU; see ``DeviceOperator``."""
        return torch.from_numpy(self._decode(payload.cpu().numpy(), bits, d, key)).to(payload.device)

    def encode(self, x: torch.Tensor | np.ndarray, *, key: Key) -> Message:
        """Compress a vector.

        Parameters
        ----------
        x : tensor or ndarray
            Float tensor, float array or nested lists of numbers, d >= 1 entries (any shape is read in C order); not
            modified.
        key : Key
            Stream of random numbers.

        Raises
        ------
        ValueError
            For an empty vector.
        TypeError
            For a dtype that is no float.
        ValueError
            With the first offending index for NaN or infinity.
        """
        with _device_of(x):
            payload, bits = self._encode_tensor(canonical_tensor(x), key)
        return Message(payload, bits)

    def decode(self, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
        """Rebuild the vector: float32 tensor, shape (d,), on the payload's device.

        Parameters
        ----------
        message : Message
            A message of ``encode``.
        d : int
            Number of coordinates.
        key : Key or None, optional
            The encoder's key; needed only if ``randomness`` is "shared".

        Raises
        ------
        CorruptMessage
            For a payload that no encoder can have produced.
        ValueError
            For d < 1 or a missing key.
        """
        d = d if type(d) is int else whole("d", d)
        if d < 1:
            raise ValueError(f"d must satisfy d >= 1; got d = {d}")
        self._check_key(key)
        self._check_padding(message)
        require_memory(d)
        self._check_length(message, d)
        payload = message.payload
        try:
            with _device_of(payload):
                return self._decode_tensor(payload, message.bits, d, key if self.randomness == "shared" else None)
        except MemoryError:
            raise _too_long(d) from None

    def encode_rows(self, x: torch.Tensor | np.ndarray, *, keys: Sequence[Key]) -> Messages:
        """Compress a batch: row i becomes the message that ``encode`` makes of it with key i, bit for bit.

        Operators with a loop over rows take microseconds per short row; all others encode row after row.

        Parameters
        ----------
        x : tensor or ndarray, shape (m, d)
            One vector per row, m >= 1 and d >= 1, of any float dtype; not modified.
        keys : sequence of Key
            One stream per row; ``Keys`` for the ranks of one run.

        Raises
        ------
        ValueError
            For an empty matrix, another number of keys, NaN or infinity.
        TypeError
            For a dtype that is no float.
        """
        matrix = canonical_rows(x)
        if len(keys) != matrix.shape[0]:
            raise ValueError(f"there must be one key per row; got {len(keys)} keys for {matrix.shape[0]} rows")
        if matrix.is_cpu and matrix.shape[1] <= SHORT and not is_forced():
            try:
                batch = self._encode_rows(matrix.numpy(), keys)
            except ValueError:
                batch = None  # the loop below names the vector and its fault
            if batch is not None:
                return batch
        return Messages.of([self.encode(row, key=key) for row, key in zip(matrix, keys, strict=True)])

    def decode_rows(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key] | None = None) -> torch.Tensor:
        """Rebuild the vectors of a batch: float32 tensor, shape (m, d), row i equal to ``decode`` of message i.

        Parameters
        ----------
        messages : sequence of Message
            At least one message, as from ``encode_rows``.
        d : int
            Number of coordinates of each vector.
        keys : sequence of Key or None, optional
            The encoders' keys; needed only if ``randomness`` is "shared".

        Raises
        ------
        CorruptMessage
            For a payload that no encoder can have produced; it names the row.
        ValueError
            For d < 1, no message, or missing keys.
        """
        d = d if type(d) is int else whole("d", d)
        if d < 1 or not len(messages):
            raise ValueError(f"d and the number of messages must be at least 1; got {d} and {len(messages)}")
        self._check_key(keys[0] if keys else None)
        if keys is not None and len(keys) != len(messages):
            raise ValueError(f"there must be one key per message; got {len(keys)} keys for {len(messages)} messages")
        require_memory(d * len(messages))
        batch = Messages.of(messages)
        if batch.payload.is_cpu and d <= SHORT and not is_forced() and batch.have_clean_padding():
            try:
                rows = self._decode_rows(batch, d, keys or ())
            except CorruptMessage:
                rows = None  # the loop below names the message and its fault
            if rows is not None:
                return torch.from_numpy(rows)
        return torch.stack([self._decode_row(batch, i, d, keys) for i in range(len(batch))])

    def _decode_row(self, batch: Messages, row: int, d: int, keys: Sequence[Key] | None) -> torch.Tensor:
        try:
            return self.decode(batch[row], d=d, key=keys[row] if keys else None)
        except CorruptMessage as error:
            raise CorruptMessage(f"row {row}: {error}") from error

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages | None:
        """Return the messages of a canonical matrix; None, the default, to encode row after row.

        Raise ValueError if some row must be refused.
        """
        return None

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray | None:
        """Return the decoded matrix: float32, shape (m, d); None, the default, to decode row after row.

        Raise CorruptMessage if some message is corrupt.
        """
        return None

    def _check_key(self, key: Key | None) -> None:
        if self.randomness == "shared" and key is None:
            raise ValueError(f"{self.name} uses shared randomness: pass the encoder's key to decode")

    def _check_length(self, message: Message, d: int) -> None:
        """Check the length of a short message for a long vector before memory is allocated."""
        exact = self.bits(d).exact if d > max(LONG, 64 * message.bits) else None
        if exact is not None and message.bits != exact:
            raise CorruptMessage(f"a message of {self.name} at d = {d} has {exact} bits; got {message.bits}")

    @staticmethod
    def _check_padding(message: Message) -> None:
        pad = 8 * message.payload.numel() - message.bits
        if pad and int(message.payload[-1]) & ((1 << pad) - 1):
            raise CorruptMessage(f"the {pad} padding bits after bit {message.bits} must be zero")

    def __call__(self, x: Any, *, key: Key) -> Any:
        """Return the decoded vector with the shape, dtype, device and library (numpy or torch) of the input."""
        plain = plain_tensor(x)
        decoded = self.decode(self.encode(plain, key=key), d=plain.numel(), key=key).reshape(plain.shape)
        if isinstance(x, torch.Tensor):
            return decoded.to(dtype=x.dtype, device=x.device)
        dtype = np.asarray(x).dtype
        return decoded.numpy().astype(dtype if dtype.kind == "f" else np.float64)


class DeviceOperator(Operator):
    """An operator that works on the device of its input; subclasses write hooks on tensors.

    ``_encode_tensor`` gets a contiguous float32 tensor, shape (d,), d >= 1, finite; ``_decode_tensor`` the payload.
    They call the ``operators.kernels`` for the tensor: ``kernels_for(x)``.
    """

    @abstractmethod
    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        """Return (payload as a uint8 tensor, bits) of a canonical vector, on its device."""

    @abstractmethod
    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        """Return the float32 vector on the payload's device.

        Raise CorruptMessage unless exactly ``bits`` bits are used.
        """

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        payload, bits = self._encode_tensor(torch.from_numpy(x), key)
        return payload.numpy(), bits

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self._decode_tensor(torch.from_numpy(payload), bits, d, key).numpy()


@lru_cache(maxsize=1)
def _memory_bytes() -> int:
    """Return the memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _too_long(d: int) -> CorruptMessage:
    return CorruptMessage(f"d must fit memory; got d = {d}, which takes {4 * d} bytes: give the d of the encoder")


def require_memory(d: int) -> None:
    """Raise CorruptMessage if a vector of d coordinates does not fit memory.

    Parameters
    ----------
    d : int
        Number of coordinates.

    Raises
    ------
    CorruptMessage
        If d binary32 numbers take more memory than the machine has.
    """
    if d > LONG and 4 * d > _memory_bytes():
        raise _too_long(d)


def _device_of(x: Any) -> AbstractContextManager[Any]:
    """Launch kernels on x's CUDA device inside this context."""
    return torch.cuda.device_of(x) if isinstance(x, torch.Tensor) and x.is_cuda else nullcontext()
