"""Real training under DistributedDataParallel: a plain loop bit for bit, as accurate as without a hook."""

import importlib

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.processes.launch import run_ranks
from gpu_validation.workloads.digits import digits
from operators import QSGD, ErrorFeedback, Key, PowerSGD, ScaledSign, TopK
from operators.bits import elias
from operators.ddp import register
from operators.ddp.collectives import predicted_payload_bytes
from operators.feedback.memoryless import Memoryless

pytestmark = pytest.mark.timeout(280)
BATCH = 32
HELD_OUT = torch.arange(1797) % 4 == 3
METHODS = {
    "qsgd": Memoryless(QSGD(levels=16)),
    "ef-sign": ErrorFeedback(ScaledSign()),
    "ef-topk": ErrorFeedback(TopK(fraction=0.05)),
    "powersgd": PowerSGD(rank=2),
}


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(256, 10),
    )


def loss(model, rank, step):
    images, labels = (part[~HELD_OUT] for part in digits())
    chosen = torch.randint(len(labels), (BATCH,), generator=torch.Generator().manual_seed(1000 * rank + step))
    return cross_entropy(model(images[chosen].view(-1, 1, 8, 8)), labels[chosen])


def accuracy(model):
    images, labels = (part[HELD_OUT] for part in digits())
    with torch.no_grad():
        return float((model(images.view(-1, 1, 8, 8)).argmax(1) == labels).double().mean())


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy().copy()


def trained(place, method, steps):
    """(accuracy, parameters, bytes of this rank, predicted bytes of all) of a run with a hook, or None."""
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    hook = method and register(model, method, key=Key(3), scope="layer")
    for step in range(steps):
        optimizer.zero_grad()
        loss(model, place.rank, step).backward()
        optimizer.step()
    sent = (hook.payload_bytes, hook.predicted_bytes) if hook else (0, 0)
    return accuracy(model.module), flat(model.module), *sent


def with_matrix_of(p, method):
    return PowerSGD(method.rank, (len(p), p.numel() // len(p))) if isinstance(method, PowerSGD) else method


def plain_loop(method, steps, processes):
    """(parameters, bytes of all) of the same training in one process, without torch.distributed."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    layers = list(model.parameters())
    methods = [with_matrix_of(p, method) for p in layers]
    senders = [[method.init(p.numel()) for method, p in zip(methods, layers, strict=True)] for _ in range(processes)]
    receivers = [[method.init_receiver(p.numel()) for p in layers] for _ in range(processes)]
    sent = 0
    for step in range(steps):
        total, bits = [np.zeros(p.numel()) for p in layers], [0] * processes
        for rank in range(processes):
            gradients = torch.autograd.grad(loss(model, rank, step), layers)
            for i, g in enumerate(gradients):
                key, method = Key(3, step=step, rank=rank).fold_in(i), methods[i]
                senders[rank][i], message = method.encode(senders[rank][i], g, key=key)
                receivers[rank][i], y = method.decode(receivers[rank][i], message, d=g.numel(), key=key)
                total[i] += y.numpy()
                known = method.bits(g.numel()).exact is not None
                bits[rank] += message.bits + (0 if known else int(elias.length(message.bits + 1)))
        sent += predicted_payload_bytes(bits, processes)
        for p, mean in zip(layers, total, strict=True):
            p.grad = torch.from_numpy(mean / processes).view_as(p).float()
        optimizer.step()
    return flat(model), sent


def runs(methods, steps, processes):
    """What ``trained`` gives for every method, in rank order: {name: [result of each rank]}."""

    def work(place, emit):
        for name, method in methods.items():
            emit((name, place.rank, trained(place, method, steps)))

    found = {name: {} for name in methods}
    for name, rank, result in run_ranks(work, processes=processes, hang_timeout_s=120):
        found[name][rank] = result
    return {name: [results[rank] for rank in range(processes)] for name, results in found.items()}


@pytest.fixture(scope="module", autouse=True)
def _imported_and_compiled_before_the_processes_fork():
    importlib.import_module("torch._dynamo")  # which DistributedDataParallel imports when it is first used
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the processes: sums of several threads have other bits
    for method in METHODS.values():
        plain_loop(method, steps=1, processes=1)
    yield
    torch.set_num_threads(threads)


def assert_is_the_plain_loop(found, methods, steps, processes):
    for name, method in methods.items():
        expected, sent = plain_loop(method, steps, processes)
        for _, parameters, _, predicted in found[name]:
            np.testing.assert_array_equal(parameters, expected, err_msg=name)
            assert predicted == sent, name
        assert sum(own for _, _, own, _ in found[name]) == sent, name


@pytest.mark.thorough
def test_training_is_a_plain_loop_bit_for_bit_and_sends_the_predicted_bytes():
    steps, processes = 30, 2

    found = runs(METHODS, steps, processes)

    assert_is_the_plain_loop(found, METHODS, steps, processes)
    start = accuracy(network())
    assert all(results[0][0] > start + 0.1 for results in found.values()), "they learn"
    sizes = [p.numel() for p in network().parameters()]
    signs = (sum(sizes) + 32 * len(sizes) + 7) // 8  # one bit an entry and a binary32 mean a layer
    assert found["ef-sign"][0][3] == steps * 2 * (signs + 8)
    factors = 4 * (2 * (8 + 9) + 8 + 2 * (16 + 72) + 16 + 2 * (10 + 256) + 10)  # of matrices; biases as they are
    assert found["powersgd"][0][3] == steps * 2 * (factors + 8)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("processes", [2, 4])
def test_compressed_training_reaches_the_accuracy_of_exact_gradients_within_one_percent(processes):
    steps = 800

    found = runs({"exact": None, **METHODS}, steps, processes)

    exact = found["exact"][0][0]
    assert exact > 0.96
    assert {name: results[0][0] for name, results in found.items() if results[0][0] < exact - 0.01} == {}
    assert_is_the_plain_loop(found, METHODS, steps, processes)
