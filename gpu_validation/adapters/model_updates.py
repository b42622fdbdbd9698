"""Updates of a federation: compressed changes of parameters and exact statistics, averaged on the server."""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from operators import CorruptMessage, Feedback, Key, Message, Operator
from operators.exchange.channel import with_memory
from operators.feedback.feedback import State

Arrays = Mapping[str, np.ndarray]

MAGIC = b"RDu"
VERSION = 1
_HEAD = struct.Struct(">3sBIQ")  # magic, version, bytes of the description, bytes of the message
_CRC = struct.Struct(">I")


@dataclass(frozen=True)
class Update:
    """Update that one client has sent in a round.

    Parameters
    ----------
    client : int
        Number of its partition.
    weight : float
        Number of its examples, > 0.
    frame : bytes
        Frame returned by ``encode_update``.
    """

    client: int
    weight: float
    frame: bytes


def trainable_parameters(model: torch.nn.Module) -> tuple[str, ...]:
    """Return the names of the trainable parameters: floats that require a gradient.

    Parameters
    ----------
    model : Module
        Model of the clients, whose ``state_dict`` is exchanged.
    """
    named = model.named_parameters(remove_duplicate=False)
    return tuple(name for name, p in named if p.requires_grad and p.is_floating_point())


def encode_update(
    method: Operator | Feedback,
    state: State | None,
    received: Arrays,
    trained: Arrays,
    *,
    key: Key,
    parameters: Iterable[str] = (),
) -> tuple[State, bytes]:
    """Compress the changes of the parameters, append all other arrays exactly, and return (new state, frame).

    Parameters
    ----------
    method : Operator or Feedback
        The compressor.
    state : State or None
        State of the method after the last round; None in the first.
    received : mapping of str to ndarray
        Model before the local steps.
    trained : mapping of str to ndarray
        Model after the local steps, with the same names and shapes.
    key : Key
        Key with client and round.
    parameters : iterable of str, optional
        Names of the arrays to compress: ``trainable_parameters(model)``.  Arrays of other names may be statistics
        (BatchNorm, counters, masks) and are sent exactly.

    Raises
    ------
    ValueError
        For a model other than the received one, a name in ``parameters`` that is not an array of floats, a change that
        is not finite, and a model without an array of numbers.
    """
    _need_same_arrays(received, trained)
    names = set(parameters)
    for name in sorted(names):
        if name not in received or not _is_float(received[name].dtype):
            held = f"of dtype {received[name].dtype}" if name in received else "missing"
            raise ValueError(
                f"parameters must name arrays of floats; {name!r} is {held}: give trainable_parameters(model)"
            )
    exact = {name: _portable(trained[name]) for name in received if name not in names and _is_number(received[name])}
    if not names and not exact:
        raise ValueError("an update needs an array of numbers; got a model without one: send its parameters")
    before, memory = _vector(received, names), with_memory(method)
    state, message = {} if state is None else state, b""
    if before.size:
        difference = torch.from_numpy(_vector(trained, names, order=received) - before).float()
        state, sent = memory.encode(state or memory.init(before.size), difference, key=key)
        message = sent.to_bytes(d=before.size)
    description = {"arrays": _layout(received), "exact": {name: array.dtype.str for name, array in exact.items()}}
    text = json.dumps(description).encode()
    parts = [_HEAD.pack(MAGIC, VERSION, len(text), len(message)), text, message, *(a.tobytes() for a in exact.values())]
    body = b"".join(parts)
    return state, body + _CRC.pack(zlib.crc32(body))


def decode_updates(method: Operator | Feedback, model: Arrays, updates: Sequence[Update], *, key: Key) -> Arrays:
    """Return the model moved by the weighted mean of the updates, with the mean of the exact arrays.

    Parameters
    ----------
    method : Operator or Feedback
        The same method as the clients'.
    model : mapping of str to ndarray
        The server's model.  float16 and bfloat16 arrays are returned in float32, so that small movements add up.  Keep
        the float32 model, and send clients a rounded copy.
    updates : sequence of Update
        One update per client, in any order.
    key : Key
        Key with the round.

    Raises
    ------
    CorruptMessage
        For a damaged message, or one for a model of another size.
    ValueError
        For a repeated client, weights that are not positive, clients that compress different arrays, and a model whose
        names, shapes or dtypes differ from the clients'.

    Notes
    -----
    Updates are summed in float64 in order of the clients' numbers.  Equal weights give the bits of the unweighted mean.
    An exact array becomes the weighted mean, which lies between the smallest and the largest value of the clients.
    Equal values do not change.  Means of integers and bools are rounded to the nearest, without a conversion to
    float64.  Arrays that are not numbers do not change.
    """
    counts = Counter(update.client for update in updates)
    client, count = counts.most_common(1)[0]
    if count > 1:
        raise ValueError(f"{count} clients have partition-id = {client}: give every SuperNode its own number")
    for update in updates:
        if not 0 < update.weight < np.inf:
            raise ValueError(
                f"a client's weight must be positive; client {update.client} has {update.weight}: "
                "reply with the number of its examples"
            )
    ordered = sorted(updates, key=lambda update: update.client)
    contents = []
    for update in ordered:
        try:
            contents.append(_opened(update.frame, model))
        except CorruptMessage as error:
            raise CorruptMessage(f"the update of client {update.client} in round {key.step + 1}: {error}") from error
        except ValueError as error:
            raise ValueError(f"client {update.client} {error}") from error
        if contents[-1].exact.keys() != contents[0].exact.keys():
            raise ValueError(
                f"clients {ordered[0].client} and {update.client} compress different arrays, among them "
                f"{min(contents[-1].exact.keys() ^ contents[0].exact.keys())!r}: give both the same parameters"
            )
    largest = max(update.weight for update in updates)
    shares = [update.weight / largest for update in ordered]
    names = {name for name in model if _is_float(model[name].dtype)} - contents[0].exact.keys()
    memory, d = with_memory(method), _vector(model, names).size
    total = np.zeros(d)
    for update, content, share in zip(ordered, contents, shares, strict=True):
        try:
            message = Message.from_bytes(content.message, d=d) if d else None
            if message is not None:
                sent = replace(key, rank=update.client)
                _, decoded = memory.decode(memory.init_receiver(d), message, d=d, key=sent)
                total += share * decoded.double().numpy()
        except CorruptMessage as error:
            raise CorruptMessage(f"the update of client {update.client} in round {key.step + 1}: {error}") from error
    moved = _moved(model, total / sum(shares), names)
    weights = np.array(shares) / sum(shares)
    for name in contents[0].exact:
        mean = _mean([content.exact[name] for content in contents], weights)
        moved[name] = mean.astype(_kept(model[name].dtype)).reshape(model[name].shape)
    return moved


def rounded(model: Arrays, dtypes: Mapping[str, np.dtype]) -> Arrays:
    """Return the model in the given dtypes, as clients receive it.

    Parameters
    ----------
    model : mapping of str to ndarray
        Model of the server, from ``decode_updates``.
    dtypes : mapping of str to dtype
        Dtype by name; arrays without one keep theirs.
    """
    return {name: array.astype(dtypes.get(name, array.dtype), copy=False) for name, array in model.items()}


def widened(array: np.ndarray) -> np.ndarray:
    """Return the float32 values of an array of bfloat16.

    Parameters
    ----------
    array : ndarray
        Its entries have two bytes, of any dtype: ``np.load`` does not know the dtype of ``ml_dtypes``.
    """
    bits = np.ascontiguousarray(array).view(np.uint16).astype(np.uint32)
    return np.asarray(bits << np.uint32(16)).view(np.float32).reshape(array.shape)


def narrowed(array: np.ndarray) -> np.ndarray:
    """Return the bytes of a float32 array rounded to bfloat16, to nearest even, with the dtype "V2".

    Parameters
    ----------
    array : float32 ndarray
        Values to round.
    """
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    short = np.where(np.isnan(array), bits | np.uint32(0x400000), bits + up) >> np.uint32(16)
    return np.asarray(short).astype(np.uint16).view("V2").reshape(array.shape)


def agreement(method: Operator | Feedback, key: Key) -> str:
    """Return a description of method and key, which must be equal on clients and server.

    Parameters
    ----------
    method : Operator or Feedback
        The compressor.
    key : Key
        Key of the run.

    Raises
    ------
    ValueError
        For a method whose receiver has state: a lost reply would make it differ from the sender's.
    """
    if with_memory(method).init_receiver(1):
        raise ValueError(
            f"{method!r} needs a receiver that has read every message, and a federation loses replies: "
            "use an operator or ErrorFeedback"
        )
    return f"{method!r} with {key!r}"


@dataclass(frozen=True)
class _Content:
    message: bytes
    exact: Arrays


def _opened(frame: bytes, model: Arrays) -> _Content:
    """Split a frame; raise CorruptMessage if it is damaged, ValueError if it is for another model."""
    if len(frame) < _HEAD.size + _CRC.size:
        raise CorruptMessage(f"a frame has at least {_HEAD.size + _CRC.size} bytes; got {len(frame)}")
    body, (crc,) = frame[: -_CRC.size], _CRC.unpack(frame[-_CRC.size :])
    if zlib.crc32(body) != crc:
        raise CorruptMessage("the frame's CRC-32 does not match its content; request it again")
    magic, version, of_text, of_message = _HEAD.unpack_from(body)
    if (magic, version) != (MAGIC, VERSION):
        raise CorruptMessage(f"not an update of version {VERSION}: it starts with {body[:4]!r}")
    begin = _HEAD.size + of_text
    description = json.loads(body[_HEAD.size : begin])
    if description["arrays"] != _layout(model):
        raise ValueError(
            "has trained arrays of other names, shapes or dtypes than the server's: start both with the same model"
        )
    offset, exact = begin + of_message, {}
    for name, text in description["exact"].items():
        dtype, array = np.dtype(text), model[name]
        exact[name] = np.frombuffer(body, dtype, array.size, offset).reshape(array.shape)
        offset += dtype.itemsize * array.size
    if offset != len(body):
        raise CorruptMessage(f"the frame announces {offset} bytes but carries {len(body)}")
    return _Content(body[begin : begin + of_message], exact)


def _need_same_arrays(received: Arrays, trained: Arrays) -> None:
    """Raise ValueError unless names, shapes and kinds are equal and arrays that are not numbers are unchanged."""
    shapes, others = ({name: array.shape for name, array in arrays.items()} for arrays in (received, trained))
    if shapes != others:
        differing = sorted(name for name in shapes | others if shapes.get(name) != others.get(name))
        raise ValueError(
            f"the trained model must have the received one's arrays; {differing[0]!r} has shape "
            f"{others.get(differing[0])}, not {shapes.get(differing[0])}: reply with the model's whole state"
        )
    for name, array in received.items():
        if _kind(array.dtype) != _kind(trained[name].dtype):
            raise ValueError(
                f"the trained model must have the received one's dtypes; {name!r} has {trained[name].dtype}, "
                f"not {array.dtype}: reply with the model's own state"
            )
        if not _is_number(array) and not np.array_equal(array, trained[name]):
            raise ValueError(f"only numbers can be averaged; {name!r} of dtype {array.dtype} has changed: leave it out")


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"  # the latter of ml_dtypes, whose kind is "V"


def _is_number(array: np.ndarray) -> bool:
    return array.dtype.kind in "iubc" or _is_float(array.dtype)


def _kind(dtype: np.dtype) -> str:
    """Return the class of dtypes that may replace one another: all floats, or this dtype alone."""
    return "float" if _is_float(dtype) else dtype.newbyteorder("=").str


def _layout(arrays: Arrays) -> str:
    """Return a checksum of names in order, shapes and kinds."""
    rows = [(name, array.shape, _kind(array.dtype)) for name, array in arrays.items()]
    return f"{zlib.crc32(repr(rows).encode()):08x}"


def _portable(array: np.ndarray) -> np.ndarray:
    """Return an array in a dtype that numpy can name; float32 represents every bfloat16."""
    return array if array.dtype.kind != "V" else array.astype(np.float32)


def _kept(dtype: np.dtype) -> np.dtype:
    """Return the dtype that the server stores: narrow floats would round small movements away."""
    return np.dtype(np.float32) if _is_float(dtype) and dtype.itemsize < 4 else dtype


def _vector(arrays: Arrays, names: Iterable[str], order: Iterable[str] | None = None) -> np.ndarray:
    """Return the named arrays as one float64 vector, so that float32 differences are rounded only once."""
    ordered = [name for name in (arrays if order is None else order) if name in names]
    parts = [arrays[name].astype(np.float64).reshape(-1) for name in ordered]
    return np.concatenate(parts) if parts else np.empty(0)


def _moved(model: Arrays, movement: np.ndarray, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the model with a vector added to the named arrays, in the stored dtypes."""
    offset, moved = 0, dict(model)
    for name, array in model.items():
        if name in names:
            dtype = _kept(array.dtype)
            part = movement[offset : offset + array.size].reshape(array.shape)
            moved[name] = np.asarray(array.astype(dtype) + part.astype(dtype))
            offset += array.size
    return moved


def _mean(values: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean, clipped to the range of the values; of integers, the nearest one."""
    if values[0].dtype.kind == "c":
        return _mean([v.real for v in values], weights) + 1j * _mean([v.imag for v in values], weights)
    if values[0].dtype.kind in "iub":
        return _mean_of_integers(values, weights)
    least, largest = np.minimum.reduce(values), np.maximum.reduce(values)
    wide = np.result_type(np.float64, *values)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite and huge values are restored by the clipping
        mean = np.asarray(sum(w * v.astype(wide) for w, v in zip(weights, values, strict=True)))
    return np.where(least == largest, values[0], np.clip(mean, least, largest))


def _mean_of_integers(values: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the smallest value plus the rounded mean distance from it, modulo 2^64 in two's complement."""
    words = np.int64 if values[0].dtype.kind == "i" else np.uint64
    least, largest = (np.asarray(f(values)).astype(words) for f in (np.minimum.reduce, np.maximum.reduce))
    base, span = least.view(np.uint64), largest.view(np.uint64) - least.view(np.uint64)
    distances = [v.astype(words).view(np.uint64) - base for v in values]
    mean = np.asarray(np.rint(sum(w * t.astype(np.float64) for w, t in zip(weights, distances, strict=True))))
    steps = np.minimum(np.minimum(mean, np.nextafter(2.0**64, 0)).astype(np.uint64), span)
    return (base + steps).view(words)
