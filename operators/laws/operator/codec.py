"""Law: messages are exactly as long as declared, or no longer than the declared worst case."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from bounds.claims import Contractive, NoClaim, Unbiased

from ...key import Key
from ...message import CorruptMessage, Message
from ..kit.examples import Example, at_the_ends, drawn, structured
from ..kit.law import Context, Violation, fail_if, law, one_vector, usual
from ..kit.subject import Subject, to_numpy


def _declared_size_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return all the usual vectors, and the ends of the claims' range."""
    yield from usual(subject, context, name)
    for d in context.budget.sizes:
        yield from at_the_ends(d)


@law("declared-size", needs="operator", vectors=_declared_size_vectors)
def declared_size(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """``bits(d)``: every message has the exact length, none exceeds the worst case; the claim is a known one."""
    d = example.d
    size = subject.target.bits(d)
    sent = subject.encode(example.x, context.key(f"declared-size {example.name}")).bits
    if size.exact is not None and sent != size.exact:
        raise Violation(f"the message has {sent} bits; bits({d}) declares exactly {size.exact}")
    if size.worst_case is not None and sent > size.worst_case:
        raise Violation(f"the message has {sent} bits; bits({d}) declares at most {size.worst_case}")
    if not isinstance(subject.claim(d), Unbiased | Contractive | NoClaim):
        raise Violation(f"claim({d}) must be one of bounds.claims; got {subject.claim(d)!r}")


# -- Law: calling the operator is decoding what it encoded, in the caller's library, dtype and shape -----------


@law("round-trip", needs="operator")
def round_trip(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """op(x) equals decode(encode(x)); decode returns float32 of shape (d,); numpy in, numpy out; dtype kept."""
    op, d = subject.target, example.d
    decoded = op.decode(op.encode(example.x, key=key), d=d, key=key)
    if decoded.dtype != torch.float32 or decoded.shape != (d,):
        raise Violation(f"decode must return float32 of shape ({d},); got {decoded.dtype} {tuple(decoded.shape)}")
    for x in (example.x, example.x.reshape(1, d, 1), torch.from_numpy(example.x.copy()).double()):
        y = op(x, key=key)
        if type(y) is not type(x) or y.dtype != x.dtype or y.shape != x.shape:
            raise Violation(f"{type(x).__name__} {x.dtype} {tuple(x.shape)} became {type(y).__name__} {y.dtype}")
        if not np.array_equal(np.asarray(y, np.float32).reshape(-1), decoded.numpy()):
            raise Violation("calling the operator differs from decode(encode(x))")


# -- Law: a message holds its own data: the caller may write to the gradient as soon as it is encoded ----------

DEPTH = 6  # of nested tuples, lists, dictionaries and objects in a message


def _own_message_unless(subject: Subject) -> str | None:
    """Return why it does not apply, or None: the call of a function has no message."""
    if not subject.is_codec and not hasattr(subject.target, "send"):
        return "a plain function has no message"
    return None


@law("own-message", shrinks=False, vectors=one_vector, unless=_own_message_unless)
def own_message(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """No part of a message is a view of the vector that was encoded."""
    libraries = ("torch", "numpy") if subject.is_operator else (subject.array,)
    for library in libraries:
        given = torch.from_numpy(example.x.copy()) if library == "torch" else example.x.copy()
        message = _encode(subject, given, key)
        first, second = (_decode(subject, message, example.d, key) for _ in range(2))
        before = contents(message)  # some decoders use up their message
        given[:] = 7.0
        fail_if(contents(message) != before, f"the message changes when the encoded vector ({library}) is overwritten")
        repeatable = np.array_equal(first, second, equal_nan=True)
        after = _decode(subject, message, example.d, key)
        if repeatable and not np.array_equal(after, first, equal_nan=True):
            raise Violation(f"the message decodes otherwise once the encoded vector ({library}) is overwritten")


def _encode(subject: Subject, x: Any, key: Key) -> Any:
    return subject.encode_as_it_is(x, key) if subject.is_codec else subject.target.send(x)


def _decode(subject: Subject, message: Any, d: int, key: Key) -> np.ndarray:
    value = subject.decode(message, d, key) if subject.is_codec else subject.target.receive(message)
    return to_numpy(value).reshape(d)


def contents(value: Any, depth: int = DEPTH) -> list[bytes]:
    """Return the bytes of all tensors, arrays and byte strings in a message."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return [value.to(torch.float32).numpy().tobytes() if value.is_floating_point() else value.numpy().tobytes()]
    if isinstance(value, np.ndarray | np.generic | bytes | bytearray | memoryview):
        return [bytes(value) if isinstance(value, bytes | bytearray | memoryview) else value.tobytes()]
    if depth == 0:
        return []
    if isinstance(value, Message):
        return contents(value.payload)
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dict__"):
        value = list(vars(value).values())
    if isinstance(value, tuple | list):
        return [part for item in value for part in contents(item, depth - 1)]
    return []


# -- Law: the decoder learns the vector from the payload alone (and the key, where it is shared) ---------------

INPUTS, FLIPS = 24, 12  # vectors with payloads to compare; bits that are flipped


@law("payload-alone", needs="messages", vectors=one_vector)
def payload_alone(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Equal payloads decode equally, later and by a copy of the decoder: nothing travels outside the payload."""
    decoder = Subject(copy.deepcopy(subject.target), array=subject.array)
    rng = context.rng(f"payload-alone {example.name}")
    inputs = [example.x, *(e.x for e in drawn(example.d, INPUTS if example.d < 100 else 2, rng))]
    messages = [subject.encode(x, key) for x in inputs]
    decoded = [to_numpy(subject.decode(subject.encode(x, key), x.size, key)) for x in inputs]
    decoded_by_address: dict[tuple[bytes, int], np.ndarray] = {}
    for message, expected in zip(messages, decoded, strict=True):
        payload = message.payload.cpu()
        address = (payload.numpy().tobytes(), message.bits)
        if not np.array_equal(decoded_by_address.setdefault(address, expected), expected):
            raise Violation(f"two vectors with the same payload of {message.bits} bits decode differently")
        bare = Message(payload.clone(), message.bits)
        for who, where in ((subject, "after later encodes"), (decoder, "by a copy of the decoder")):
            if not np.array_equal(to_numpy(who.decode(bare, example.d, key)), expected):
                raise Violation(f"the bare payload decodes differently {where}")


# -- Law: a truncated, extended or altered message raises CorruptMessage or decodes to a finite vector ---------


def _corruption_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return one drawn and one structured vector at every size."""
    rng = context.rng(name)
    for d in context.budget.sizes:
        yield from drawn(d, 1, rng)
        yield from (e for e in structured(d) if e.name.startswith("one-hot, last"))


@law("corruption", needs="messages", vectors=_corruption_vectors)
def corruption(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """Bits missing or left over always raise CorruptMessage; other damage raises it or gives a finite vector."""
    rng = context.rng(f"corruption {example.name}")
    message = subject.encode(example.x, key)
    bits = np.unpackbits(message.payload.cpu().numpy())[: message.bits]
    for cut in {1, 8, 32, message.bits // 2, message.bits} & set(range(1, message.bits + 1)):
        _must_raise(subject, bits[:-cut], example.d, key, f"the last {cut} of {message.bits} bits cut off")
    for extra in (1, 8, 64):
        tail = rng.integers(0, 2, extra).astype(np.uint8)
        _must_raise(subject, np.concatenate([bits, tail]), example.d, key, f"{extra} bits added at the end")
    for _ in range(FLIPS if message.bits else 0):
        flipped = bits.copy()
        position = int(rng.integers(message.bits))
        flipped[position] ^= 1
        _may_raise(subject, flipped, example.d, key, f"bit {position} flipped")
    _may_raise(subject, rng.integers(0, 2, bits.size).astype(np.uint8), example.d, key, "random bits")


def from_bits(bits: np.ndarray) -> Message:
    """Return a message with these bits (0 and 1, shape (n,))."""
    return Message(torch.from_numpy(np.packbits(bits)), bits.size)


def _must_raise(subject: Subject, bits: np.ndarray, d: int, key: object, what: str) -> None:
    fail_if(not _may_raise(subject, bits, d, key, what), f"decoded without an error: {what}; expected CorruptMessage")


def _may_raise(subject: Subject, bits: np.ndarray, d: int, key: object, what: str) -> bool:
    try:
        value = to_numpy(subject.decode(from_bits(bits), d, key))  # type: ignore[arg-type]
    except CorruptMessage:
        return True
    except Exception as error:
        raise Violation(f"{type(error).__name__} instead of CorruptMessage: {what} ({error})") from error
    if value.shape != (d,) or not np.isfinite(value).all():
        raise Violation(f"decoded to {value.shape} with a non-finite entry or a wrong shape: {what}")
    return False
