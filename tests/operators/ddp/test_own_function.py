"""A function of one's own between two real ranks: its outputs are averaged, and the bits that it states are counted."""

import itertools

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.processes.launch import run_ranks
from operators import QSGD, ErrorFeedback, own
from operators.ddp import register

pytestmark = pytest.mark.timeout(120)
D, RANKS, STEPS = 21, 2, 2


@pytest.fixture(scope="module", autouse=True)
def _imported_before_the_processes_fork():
    import torch._dynamo  # noqa: F401  which DistributedDataParallel imports when it is first used


class Two(torch.nn.Module):
    """A vector of 20 and a number, whose gradients are those that are given."""

    def __init__(self):
        super().__init__()
        self.vector = torch.nn.Parameter(torch.zeros(20))
        self.number = torch.nn.Parameter(torch.zeros(()))

    def forward(self, gradient):
        return self.vector @ gradient[:20] + self.number * gradient[20]


def gradient(rank, step):
    return torch.randn(D, generator=torch.Generator().manual_seed(10 * rank + step))


def doubled_signs(x):
    return 2 * torch.sign(x)


doubled_signs.bits = 1


def packed(x):
    half = x.half()
    return half, half.float()


def nothing(x):
    return torch.zeros_like(x)


nothing.bits = lambda d: d // 2 + 3


def exchanged(place, compressor, **settings):
    model = DistributedDataParallel(Two())
    hook = register(model, compressor, **settings)
    steps = []
    for step in range(STEPS):
        model.zero_grad()
        model(gradient(place.rank, step)).backward()
        steps.append(torch.cat([model.module.vector.grad, model.module.number.grad.reshape(1)]).tolist())
    return steps, hook.codec_bits, hook.payload_bytes


def reports(compressor, **settings):
    def report(place, emit):
        emit((place.rank, exchanged(place, compressor, **settings)))

    return [result for _, result in sorted(run_ranks(report, processes=RANKS, hang_timeout_s=60))]


def mean_of(function, step):
    return sum(function(gradient(rank, step)).double() for rank in range(RANKS)) / RANKS


@pytest.mark.parametrize(
    ("compressor", "returned", "bits"),
    [
        (doubled_signs, doubled_signs, D),
        (own(doubled_signs, bits=3), doubled_signs, 3 * D),
        (packed, lambda x: packed(x)[1], 16 * D),
        (nothing, nothing, D // 2 + 3),
    ],
    ids=["signs", "stated", "payload", "zeros"],
)
def test_two_ranks_take_the_mean_of_what_the_function_returns(compressor, returned, bits):
    first, second = reports(compressor)
    assert first[0] == second[0], "both ranks hold the same gradients"
    for step in range(STEPS):
        assert first[0][step] == pytest.approx(mean_of(returned, step).tolist(), rel=1e-6, abs=0)
    assert first[1] == second[1] == STEPS * bits
    assert first[2] > STEPS * 4 * D, "what travels is the output itself"


@pytest.mark.thorough
def test_by_its_name_it_is_the_same(tmp_path, monkeypatch):
    (tmp_path / "mine_between_ranks.py").write_text(
        "import torch\n\n\ndef f(x):\n    return 2 * torch.sign(x)\n\n\nf.bits = 1\n"
    )
    monkeypatch.chdir(tmp_path)
    assert reports("mine_between_ranks:f") == reports(doubled_signs)
    assert reports("qsgd:4") == reports(QSGD(levels=4))


@pytest.mark.thorough
def test_layers_two_shots_and_error_feedback_count_the_stated_bits():
    by_layer = reports(doubled_signs, scope="layer")
    assert [bits for _, bits, _ in by_layer] == [STEPS * D] * RANKS
    shards = reports(doubled_signs, exchange="two_shot")  # each rank: all shards to their owners, its own mean to all
    assert sum(bits for _, bits, _ in shards) == STEPS * (RANKS * D + D)
    remembered = reports(doubled_signs, feedback=ErrorFeedback)
    assert [bits for _, bits, _ in remembered] == [STEPS * D] * RANKS
    errors = [gradient(rank, 0) - doubled_signs(gradient(rank, 0)) for rank in range(RANKS)]
    second = sum(doubled_signs(gradient(rank, 1) + errors[rank]) for rank in range(RANKS)) / RANKS
    assert remembered[0][0][1] == pytest.approx(second.tolist())
    plain = reports(doubled_signs)
    assert all(a[0][1] != b[0][1] for a, b in itertools.product(remembered, plain)), "memory changes the second step"
