"""Both ends of the adapter with Flower's own messages in one process; run by the Python that has flwr.

Prints one JSON object: what each refusal has said, and what the strategies have counted.
"""

import json
import sys

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from gpu_validation.adapters.flower import CompressedFedAvg, CompressedUpdates
from gpu_validation.adapters.model_updates import narrowed, widened
from operators import QSGD, ErrorFeedback, Identity, Key, TopK

METHOD = ErrorFeedback(TopK(fraction=0.5))


class Grid:
    """Nodes whose apps are called at once, in an order that changes."""

    def __init__(self, apps, contexts):
        self.apps, self.contexts, self.calls = apps, contexts, 0

    def get_node_ids(self):
        return list(self.apps)

    def send_and_receive(self, messages, *, timeout=None):
        replies = [self.reply(message) for message in messages]
        TaskIdentity.node_id = 1
        self.calls += 1
        return replies[::-1] if self.calls % 2 else replies

    def reply(self, message):
        node = message.metadata.dst_node_id
        TaskIdentity.node_id = node
        return self.apps[node](message, self.contexts[node])


def app_of(mods, change, weight=1, damage=None):
    app = ClientApp()

    def train(message, context):
        if change is None:
            return Message(Error(0, "no power"), reply_to=message)
        arrays = ArrayRecord({"w": Array(message.content["arrays"]["w"].numpy() + np.float32(change))})
        records = {"arrays": arrays, "metrics": MetricRecord({"num-examples": weight, "loss": float(weight)})}
        return Message(RecordDict(records), reply_to=message)

    def damaged(message, context, call_next):
        reply = call_next(message, context)
        array = reply.content["arrays"]["message"]
        array.data = array.data[:-1] + bytes([array.data[-1] ^ 1])
        return reply

    app.train(mods=[damaged, *mods] if damage else mods)(train)

    @app.evaluate(mods=mods)
    def evaluate(message, context):
        return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1, "accuracy": 1.0})}), reply_to=message)

    return app


def in_bfloat16(values):
    """An Array as Flower makes it of an array of ``ml_dtypes``."""
    bare = Array(narrowed(np.asarray(values, np.float32)))
    return Array("bfloat16", bare.shape, bare.stype, bare.data)


def app_in_bfloat16(mods, change):
    """A client that adds in float32 and replies in bfloat16; ``w`` moves by several units, its mean by less."""
    app = ClientApp()

    @app.train(mods=mods)
    def train(message, context):
        w = message.content["arrays"]["w"]
        assert w.dtype == "bfloat16", w.dtype
        arrays = ArrayRecord({"w": in_bfloat16(widened(w.numpy()) + np.float32(change))})
        return Message(RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 1})}), reply_to=message)

    return app


def bfloat16_rounds():
    """The model after 64 rounds in which one client of three moves by a unit, 2^-7, and the bytes sent to them."""
    mods = [CompressedUpdates(Identity(), parameters=["w"])]
    strategy = CompressedFedAvg(Identity(), min_train_nodes=3, fraction_evaluate=0.0)
    apps = [app_in_bfloat16(mods, change) for change in (2.0**-7, 0, 0)]
    result, _ = run(apps, strategy, rounds=64, model=ArrayRecord({"w": in_bfloat16(np.ones(4))}))
    return result.arrays["w"].numpy().tolist(), strategy.downlink_bytes[64]


def run(apps, strategy, numbers=(0, 1, 2), rounds=3, model=None):
    contexts = {
        node: Context(1, node, {} if number is None else {"partition-id": number}, RecordDict(), {})
        for node, number in zip((11, 7, 5), numbers, strict=True)
    }
    grid = Grid(dict(zip(contexts, apps, strict=True)), contexts)
    model = model or ArrayRecord({"w": Array(np.zeros(4, np.float32))})
    return strategy.start(grid, model, num_rounds=rounds), contexts


def said(apps, strategy, **settings):
    try:
        run(apps, strategy, **settings)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main():
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    changes = [[1, 2, 3, 4], [4, 3, 2, 1], [1, 0, 0, 1]]
    mods = [CompressedUpdates(METHOD, parameters=["w"])]
    fine = [app_of(mods, change, weight) for change, weight in zip(changes, (1, 2, 1), strict=True)]
    strategy = CompressedFedAvg(METHOD, min_train_nodes=3)
    result, contexts = run(fine, strategy)
    failing = CompressedFedAvg(METHOD, fraction_evaluate=0.0)
    left, _ = run([fine[0], app_of(mods, None), fine[2]], failing)
    other = [fine[0], app_of([CompressedUpdates(QSGD(levels=4), parameters=["w"])], changes[1]), fine[2]]
    keyed = [fine[0], app_of([CompressedUpdates(METHOD, parameters=["w"], key=Key(1))], changes[1]), fine[2]]
    answer = {
        "model": result.arrays["w"].numpy().tolist(),
        "losses": {number: dict(record) for number, record in result.train_metrics_clientapp.items()},
        "uplink": strategy.uplink_bytes,
        "downlink": strategy.downlink_bytes,
        "residuals": [context.state["ratedist"]["residual"].numpy().tolist() for context in contexts.values()],
        "left": left.arrays["w"].numpy().tolist(),
        "uplink of two": failing.uplink_bytes,
        "operator": said(other, CompressedFedAvg(METHOD)),
        "key": said(keyed, CompressedFedAvg(METHOD)),
        "plain": said([app_of([], change) for change in changes], CompressedFedAvg(METHOD)),
        "plain server": said(fine, FedAvg()),
        "damaged": said([*fine[:2], app_of(mods, changes[2], damage=True)], CompressedFedAvg(METHOD)),
        "twice": said(fine, CompressedFedAvg(METHOD), numbers=(0, 1, 1)),
        "no number": said(fine, CompressedFedAvg(METHOD), numbers=(0, 1, None)),
        "bfloat16": bfloat16_rounds(),
        "no weight": said([*fine[:2], app_of(mods, changes[2], 0)], CompressedFedAvg(METHOD)),
    }
    sys.stdout.write(json.dumps(answer))


main()
