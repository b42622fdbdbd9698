"""What a federation exchanges: compressed changes of models that are named arrays, averaged on the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from operators import CorruptMessage, Feedback, Key, Message, Operator
from operators.exchange.channel import with_memory
from operators.feedback.feedback import State

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Update:
    """What one client has sent in a round.

    Parameters
    ----------
    client : int
        Number of its partition.
    weight : float
        Number of its examples, > 0.
    frame : bytes
        Its message, as ``Message.to_bytes`` makes it.
    """

    client: int
    weight: float
    frame: bytes


def encode_update(
    method: Operator | Feedback, state: State | None, received: Arrays, trained: Arrays, *, key: Key
) -> tuple[State, bytes]:
    """Compress what training has changed: (client's new state, framed message).

    Parameters
    ----------
    method : Operator or Feedback
        What compresses.
    state : State or None
        What the method remembers of the last round; None in the first.
    received : mapping of str to ndarray
        The model before the local steps.
    trained : mapping of str to ndarray
        The model after them, of the same names and shapes.  Arrays that are no floats, such as counters, are not sent.
    key : Key
        With the client and the round.

    Raises
    ------
    ValueError
        For another model than the received one, one without floats, and one that is not finite.
    """
    shapes, others = ({name: array.shape for name, array in arrays.items()} for arrays in (received, trained))
    if shapes != others:
        differing = sorted(name for name in shapes | others if shapes.get(name) != others.get(name))
        raise ValueError(
            f"the trained model must have the received one's arrays; {differing[0]!r} has shape "
            f"{others.get(differing[0])}, not {shapes.get(differing[0])}: reply with the model's whole state"
        )
    memory, before = with_memory(method), _vector(received)
    if before.size == 0:
        raise ValueError("an update needs an array of floats; got a model without one: send its parameters")
    difference = torch.from_numpy(_vector({name: trained[name] for name in received}) - before).float()
    state, message = memory.encode(memory.init(before.size) if state is None else state, difference, key=key)
    return state, message.to_bytes(d=before.size)


def decode_updates(method: Operator | Feedback, model: Arrays, updates: Sequence[Update], *, key: Key) -> Arrays:
    """Return the model moved by the weighted mean of the updates.

    Parameters
    ----------
    method : Operator or Feedback
        The clients' own.
    model : mapping of str to ndarray
        That all of them have received.
    updates : sequence of Update
        One of every client, in any order.
    key : Key
        With the round.

    Raises
    ------
    CorruptMessage
        For a damaged message, or one for a model of another size.
    ValueError
        For a client that is there twice, and weights that are not positive.

    Notes
    -----
    Summed in float64 by the clients' numbers; equal weights give the bits of the unweighted mean.
    """
    counts = Counter(update.client for update in updates)
    client, count = counts.most_common(1)[0]
    if count > 1:
        raise ValueError(f"{count} clients say partition-id = {client}: give every SuperNode a number of its own")
    memory, d = with_memory(method), _vector(model).size
    largest = max(update.weight for update in updates)
    total, shares = np.zeros(d), 0.0
    for update in sorted(updates, key=lambda update: update.client):
        if not update.weight > 0:
            raise ValueError(
                f"a client's weight must be positive; client {update.client} has {update.weight}: "
                "reply with the number of its examples"
            )
        try:
            message = Message.from_bytes(update.frame, d=d)
            sent = replace(key, rank=update.client)
            _, decoded = memory.decode(memory.init_receiver(d), message, d=d, key=sent)
        except CorruptMessage as error:
            raise CorruptMessage(f"the update of client {update.client} in round {key.step + 1}: {error}") from error
        share = update.weight / largest
        total += share * decoded.double().numpy()
        shares += share
    return _moved(model, total / shares)


def agreement(method: Operator | Feedback, key: Key) -> str:
    """Return what both ends must have in common, as it is compared.

    Parameters
    ----------
    method : Operator or Feedback
        What compresses.
    key : Key
        That of the run.

    Raises
    ------
    ValueError
        For a method whose receiver remembers: a reply that is lost would part it from the sender.
    """
    if with_memory(method).init_receiver(1):
        raise ValueError(
            f"{method!r} needs a receiver that has read every message, and a federation loses replies: "
            "use an operator or ErrorFeedback"
        )
    return f"{method!r} with {key!r}"


def _vector(arrays: Arrays) -> np.ndarray:
    """Return all floats in one float64 vector, in which differences of float32 are rounded only when they are sent."""
    parts = [array.astype(np.float64).reshape(-1) for array in arrays.values() if array.dtype.kind == "f"]
    return np.concatenate(parts) if parts else np.empty(0)


def _moved(model: Arrays, movement: np.ndarray) -> Arrays:
    """Return the model with a vector added to its floats, rounded to their dtype as ``PeriodicAveraging`` does."""
    offset, moved = 0, dict(model)
    for name, array in model.items():
        if array.dtype.kind == "f":
            part = movement[offset : offset + array.size].reshape(array.shape)
            moved[name] = np.asarray(array + part.astype(array.dtype))
            offset += array.size
    return moved
