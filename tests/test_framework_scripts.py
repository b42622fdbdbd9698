"""The scripts of the guide for other libraries, run by torchrun: short, and with the bits of the plain API."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from gpu_validation import Nesterov, PeriodicAveraging, run_ranks
from gpu_validation.workloads.digits import digits
from operators import QSGD, ErrorFeedback, Key, TopK

from . import forked

DOCS = Path(__file__).parent.parent / "docs"
SCRIPTS = sorted((DOCS / "scripts").glob("train_with_*.py"))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
RANKS, TAU = 2, 8

pytestmark = pytest.mark.timeout(280)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_have_thirty_lines_at_most_and_are_shown_by_the_guide(script):
    guide = (DOCS / "guides/use_it_in_your_framework.md").read_text()

    assert len(script.read_text().splitlines()) <= 30
    assert f"{{literalinclude}} ../scripts/{script.name}\n" in guide


def run(name, folder):
    """Of every rank: the parameters that the script has saved, and its bytes."""
    command = [*TORCHRUN, str(DOCS / "scripts" / name)]
    variables = {**os.environ, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "5"}
    result = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=200, check=False
    )
    return saved_by(result, folder)


def run_in_forks(name, folder, *importing):
    """The same, by the launcher of torchrun in this process."""
    return saved_by(forked.torchrun(DOCS / "scripts" / name, folder=folder, importing=importing), folder)


def saved_by(result, folder):
    assert result.returncode == 0, result.stderr
    saved = [torch.load(folder / f"rank-{rank}.pt", weights_only=True) for rank in range(RANKS)]
    return [(list(state.values()), sent) for state, sent in saved]


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))


def samples():
    images, labels = digits()
    return TensorDataset(images[:1280], labels[:1280])


def drawn(rank, batches=36):
    images, labels = digits()
    draw = torch.Generator().manual_seed(rank)
    for _ in range(batches):
        batch = torch.randint(1280, (32,), generator=draw)
        yield images[batch], labels[batch]


def by_hand(batches_of, optimizer_of, after_step=None, clip=None, **settings):
    """A plain loop on two ranks: of each the parameters and its bytes."""

    def work(place, emit):
        model = network()
        optimizer = optimizer_of(model)
        averaging = PeriodicAveraging(model, optimizer, schedule=TAU, operator=QSGD(levels=16), **settings)
        for step, (x, y) in enumerate(batches_of(place.rank)):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            averaging.step()
            if after_step is not None:
                after_step(optimizer, step)
        if averaging.total_steps % TAU:
            averaging.average()
        parameters = [p.detach().numpy().copy() for p in model.parameters()]
        emit((place.rank, parameters, averaging.transport.payload_bytes))

    reports = sorted(run_ranks(work, processes=RANKS, hang_timeout_s=60), key=lambda report: report[0])
    return [([torch.from_numpy(p) for p in parameters], sent) for _, parameters, sent in reports]


def assert_same(saved, expected):
    for (state, sent), (parameters, bytes_sent) in zip(saved, expected, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(state, parameters, strict=True))
        assert sent == bytes_sent > 0


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.thorough
def test_script_with_accelerate_gives_the_bits_of_the_plain_api(tmp_path):
    saved = run_in_forks("train_with_accelerate.py", tmp_path, "accelerate")

    assert_same(saved, by_hand(lambda rank: list(DataLoader(samples(), batch_size=32))[rank::RANKS], sgd))


@pytest.mark.thorough
def test_script_with_diloco_gives_the_bits_of_the_plain_api(tmp_path):
    saved = run_in_forks("train_with_diloco.py", tmp_path)

    expected = by_hand(drawn, lambda model: torch.optim.AdamW(model.parameters(), lr=0.01), outer=Nesterov(0.7, 0.5))
    assert_same(saved, expected)


@pytest.mark.thorough
def test_script_with_lightning_gives_the_bits_of_the_plain_api(tmp_path):
    saved = run_in_forks("train_with_lightning.py", tmp_path, "lightning.pytorch")

    def batches(rank):
        sampler = DistributedSampler(samples(), RANKS, rank, shuffle=True)  # which Lightning puts in
        for epoch in range(2):
            sampler.set_epoch(epoch)
            yield from DataLoader(samples(), batch_size=32, sampler=sampler)

    assert_same(saved, by_hand(batches, sgd))


@pytest.mark.thorough
def test_script_with_transformers_gives_the_bits_of_the_plain_api(tmp_path):
    saved = run_in_forks("train_with_transformers.py", tmp_path, "transformers.trainer")
    from accelerate.data_loader import SeedableRandomSampler

    steps = 2 * 20

    def batches(rank):  # the Trainer's own order
        for epoch in range(2):
            sampler = SeedableRandomSampler(samples(), data_seed=42, generator=torch.Generator())
            sampler.set_epoch(epoch)
            yield from list(DataLoader(samples(), batch_size=32, sampler=sampler))[rank::RANKS]

    def decayed(optimizer, step):
        optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = 5e-5 * max(0.0, (steps - step - 1) / steps)

    def adamw(model):
        weights, biases = [model[0].weight, model[2].weight], [model[0].bias, model[2].bias]
        return torch.optim.AdamW(
            [{"params": weights, "weight_decay": 0.0}, {"params": biases, "weight_decay": 0.0}], lr=5e-5, fused=True
        )

    assert_same(saved, by_hand(batches, adamw, after_step=decayed, clip=1.0))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["train_with_ddp.py", "train_with_comm_hook.py"])
def test_scripts_with_ddp_give_the_bits_of_the_plain_api(name, tmp_path):
    saved = (run if name == "train_with_ddp.py" else run_in_forks)(name, tmp_path)

    model, method = network(), ErrorFeedback(TopK(fraction=0.05))
    optimizer = sgd(model)
    sizes = [p.numel() for p in model.parameters()]
    d = sum(sizes)
    states, bits = [method.init(d)] * RANKS, [0] * RANKS
    for batches in zip(*map(drawn, range(RANKS)), strict=True):
        mean = torch.zeros(d, dtype=torch.float64)
        for rank, (x, y) in enumerate(batches):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
            states[rank], message = method.encode(states[rank], gradient, key=Key(0))
            _, decoded = method.decode(method.init_receiver(d), message, d=d, key=Key(0))
            mean += decoded.double() / RANKS
            bits[rank] += message.bits
        for p, part in zip(
            model.parameters(), mean.float().split([p.numel() for p in model.parameters()]), strict=True
        ):
            p.grad = part.view_as(p)
        optimizer.step()
    for rank, (state, sent) in enumerate(saved):
        assert all(torch.equal(a, b) for a, b in zip(state, model.parameters(), strict=True))
        assert math.ceil(bits[rank] / 8) <= sent
