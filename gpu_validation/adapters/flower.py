"""Federated averaging with compressed updates in Flower (flwr): a mod for clients, a strategy for the server. ::

    method = ErrorFeedback(TopK(fraction=0.05))
    app = ClientApp()


    @app.train(mods=[CompressedUpdates(method, parameters=trainable_parameters(model))])
    def train(message, context): ...  # local steps, and a reply with the trained model


    strategy = CompressedFedAvg(method)  # in ServerApp.main: strategy.start(grid, arrays)

Clients compress the changes of the named parameters.  All other arrays, such as BatchNorm's statistics, are sent
exactly.  The server sends whole models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from operators import Feedback, Key, Operator

from .model_updates import (
    Arrays,
    Update,
    agreement,
    decode_updates,
    encode_update,
    narrowed,
    rounded,
    trainable_parameters,
    widened,
)

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord
    from flwr.serverapp.strategy import FedAvg
except ModuleNotFoundError as error:
    if error.name != "flwr":
        raise
    Array = ArrayRecord = ConfigRecord = None
    FedAvg = object

if TYPE_CHECKING:
    from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
    from flwr.app import Message as FlowerMessage
    from flwr.clientapp.typing import ClientAppCallable
    from flwr.serverapp import Grid

__all__ = ["CompressedFedAvg", "CompressedUpdates", "trainable_parameters"]

BFLOAT16 = "bfloat16"  # an Array keeps this name, but its numpy() has the dtype "V2"
NAME = "ratedist"  # key of the entries added to replies and to a client's state


class CompressedUpdates:
    """Mod for clients: replace the trained model in a reply to "train" by a compressed message of its change.

    Parameters
    ----------
    method : Operator or Feedback
        Compressor; the residual of a Feedback is stored in the client's ``context.state``.
    parameters : iterable of str
        Names of the arrays to compress: ``trainable_parameters(model)``.  All others are sent exactly.
    key : Key, optional
        The same key as the server's; round and ``partition-id`` are filled in.
    arrays : str, optional
        Name of the strategy's record of the model.
    config : str, optional
        Name of the strategy's record of settings.

    Raises
    ------
    ValueError
        Without ``parameters``: the names of arrays do not show which ones are statistics.

    Notes
    -----
    Every SuperNode needs its own number: ``--node-config "partition-id=0"``.  A client's steps for a reply are the
    local steps of a round.  A residual is lost at the end of the run or of its SuperNode.  The content of a lost reply
    is lost.
    """

    def __init__(
        self,
        method: Operator | Feedback,
        *,
        parameters: Iterable[str] | None = None,
        key: Key = Key(0),  # noqa: B008  frozen
        arrays: str = "arrays",
        config: str = "config",
    ) -> None:
        _need_flower()
        if parameters is None:
            raise ValueError(
                "CompressedUpdates needs the names of the parameters, for statistics must be sent exactly; got none: "
                "give parameters=trainable_parameters(model)"
            )
        self.method, self.key, self.arrays, self.config = method, key, arrays, config
        self.parameters = tuple(parameters)
        self.agreement = agreement(method, key)

    def __call__(self, message: FlowerMessage, context: Context, call_next: ClientAppCallable) -> FlowerMessage:
        if message.metadata.message_type.partition(".")[0] != "train":
            return call_next(message, context)
        if "partition-id" not in context.node_config:
            raise ValueError(
                "a client needs its own number; got no partition-id: start its SuperNode with "
                '--node-config "partition-id=0"'
            )
        client = int(context.node_config["partition-id"])
        key = replace(self.key, step=message.content[self.config]["server-round"] - 1, rank=client)
        received = _numpy(message.content[self.arrays])
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        if len(reply.content.array_records) != 1:
            raise ValueError(
                f"a reply to train must hold the trained model in one ArrayRecord; got "
                f"{len(reply.content.array_records)}: put its state_dict there and figures in a MetricRecord"
            )
        (name,) = reply.content.array_records
        stored = context.state.array_records.get(NAME)
        before = None if stored is None else {part: torch.from_numpy(a) for part, a in _numpy(stored).items()}
        trained = _numpy(reply.content[name])
        state, frame = encode_update(self.method, before, received, trained, key=key, parameters=self.parameters)
        context.state[NAME] = ArrayRecord({part: Array(tensor.numpy()) for part, tensor in state.items()})
        reply.content[name] = ArrayRecord({"message": Array("uint8", (len(frame),), NAME, frame)})
        reply.content[NAME] = ConfigRecord({"client": client, "agreement": self.agreement})
        return reply


class CompressedFedAvg(FedAvg):
    """FedAvg for clients with ``CompressedUpdates``; it counts bytes.

    Parameters
    ----------
    method : Operator or Feedback
        The same method as the clients'.
    key : Key, optional
        The same key as the clients'.
    **settings
        Settings of ``flwr.serverapp.strategy.FedAvg``.

    Attributes
    ----------
    uplink_bytes : Counter
        Bytes of the received updates by round, with their frames and the exact arrays.
    downlink_bytes : Counter
        Bytes of the models sent to train and to evaluate, by round.

    Notes
    -----
    Flower's own envelopes and metrics are not counted.  float16 and bfloat16 models are stored in float32, so that
    small movements add up.  Clients receive the dtypes of the first model; ``start`` returns float32.
    """

    def __init__(
        self,
        method: Operator | Feedback,
        *,
        key: Key = Key(0),  # noqa: B008  frozen
        **settings: Any,
    ) -> None:
        _need_flower()
        super().__init__(**settings)
        self.method, self.key, self.agreement = method, key, agreement(method, key)
        self._dtypes: dict[str, np.dtype] = {}
        self._bfloat16: set[str] = set()
        self.uplink_bytes: Counter[int] = Counter()
        self.downlink_bytes: Counter[int] = Counter()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[FlowerMessage]:
        """Send the model and store it.

        Parameters
        ----------
        server_round : int
            Round, from 1.
        arrays : ArrayRecord
            The model.
        config : ConfigRecord
            Settings for the clients.
        grid : Grid
            Connection to the clients.
        """
        self._model = _numpy(arrays)
        if not self._dtypes:
            self._dtypes = {name: array.dtype for name, array in self._model.items()}
            self._bfloat16 = {name for name, array in arrays.items() if array.dtype == BFLOAT16}
        sent = self._rounded(arrays)
        return self._counted(server_round, sent, super().configure_train(server_round, sent, config, grid))

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[FlowerMessage]:
        """Send the model.

        Parameters
        ----------
        server_round : int
            Round, from 1.
        arrays : ArrayRecord
            The model.
        config : ConfigRecord
            Settings for the clients.
        grid : Grid
            Connection to the clients.
        """
        sent = self._rounded(arrays)
        return self._counted(server_round, sent, super().configure_evaluate(server_round, sent, config, grid))

    def _rounded(self, arrays: ArrayRecord) -> ArrayRecord:
        return _record(rounded(_numpy(arrays), self._dtypes), self._bfloat16)

    def _counted(
        self, server_round: int, arrays: ArrayRecord, messages: Iterable[FlowerMessage]
    ) -> list[FlowerMessage]:
        outgoing = list(messages)
        self.downlink_bytes[server_round] += len(outgoing) * sum(array.numpy().nbytes for array in arrays.values())
        return outgoing

    def aggregate_train(
        self, server_round: int, replies: Iterable[FlowerMessage]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Decode the updates and add their mean to the model.

        Parameters
        ----------
        server_round : int
            Round, from 1.
        replies : iterable of Message
            Replies of the clients; errors are logged and skipped, as in FedAvg.

        Raises
        ------
        CorruptMessage
            For a damaged message.
        ValueError
            For a reply without a message, or with one of another method or key.
        """
        whole, _ = self._check_and_log_replies(replies, is_train=True)
        updates = {reply.metadata.src_node_id: self._update(reply) for reply in whole}
        if not updates:
            return None, None
        self.uplink_bytes[server_round] += sum(len(update.frame) for update in updates.values())
        key = replace(self.key, step=server_round - 1)
        model = decode_updates(self.method, self._model, list(updates.values()), key=key)
        whole.sort(key=lambda reply: updates[reply.metadata.src_node_id].client)
        metrics = self.train_metrics_aggr_fn([reply.content for reply in whole], self.weighted_by_key)
        return _record(model), metrics

    def _update(self, reply: FlowerMessage) -> Update:
        content = reply.content
        (arrays,), (metrics,) = content.array_records.values(), content.metric_records.values()
        if NAME not in content.config_records or "message" not in arrays:
            raise ValueError(
                f"node {reply.metadata.src_node_id} has sent no compressed update: give its ClientApp's train "
                f"mods=[CompressedUpdates({self.method!r}, parameters=trainable_parameters(model))]"
            )
        client, theirs = content[NAME]["client"], content[NAME]["agreement"]
        if theirs != self.agreement:
            raise ValueError(
                f"client {client} encodes by {theirs}, the server decodes by {self.agreement}: give both the same"
            )
        return Update(client, float(metrics[self.weighted_by_key]), arrays["message"].data)


def _need_flower() -> None:
    if FedAvg is object:
        raise ImportError(
            f'{__name__} needs flwr, which is not installed: pip install "flwr>=1.41" beside ratedist[validate]'
        )


def _numpy(record: ArrayRecord) -> dict[str, np.ndarray]:
    """Return the arrays of a record, bfloat16 as float32."""
    return {
        name: widened(array.numpy()) if array.dtype == BFLOAT16 else array.numpy() for name, array in record.items()
    }


def _record(arrays: Arrays, in_bfloat16: Collection[str] = ()) -> ArrayRecord:
    record = {name: Array(narrowed(a) if name in in_bfloat16 else a) for name, a in arrays.items()}
    for name in in_bfloat16:
        record[name].dtype = BFLOAT16
    return ArrayRecord(record)
