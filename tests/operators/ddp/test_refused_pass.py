"""A backward pass that all ranks refuse raises on all, leaves feedback as it was, and can be followed by others."""

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from operators import QSGD, ErrorFeedback, Key, TopK
from operators.ddp import register
from operators.summed import SharedScale

from ...gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
HOOKS = {
    "gather": (QSGD(levels=16), {}),
    "layers": (QSGD(levels=16), {"scope": "layer"}),
    "two shots": (QSGD(levels=16), {"exchange": "two_shot"}),
    "feedback": (ErrorFeedback(TopK(k=3)), {}),
    "feedback, two shots": (ErrorFeedback(TopK(k=3)), {"exchange": "two_shot"}),
    "sums": (SharedScale(16), {}),
}
BAD = (0, 3, 4)  # also two in a row, and the first
STEPS = 8


def _run(place, name, bad, static=False):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    model = DistributedDataParallel(module, bucket_cap_mb=1e-4, static_graph=static)
    operator, settings = HOOKS[name]
    hook = register(model, operator, key=Key(0), **settings)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(device="cpu", init_scale=1024.0)
    refusals = []
    for k in range(STEPS):
        x = torch.randn(5, 8, generator=torch.Generator().manual_seed(10 * k + place.rank))
        optimizer.zero_grad()
        loss = scaler.scale(model(x).square().mean())
        if k in bad and place.rank == 1:
            loss = loss * float("inf")
        before = _remembered(hook)
        try:
            loss.backward()
        except ValueError as error:
            refusals.append((k, str(error), before == _remembered(hook)))
        scaler.step(optimizer)  # which leaves out a step whose gradients are not finite
        scaler.update()
    model_state = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    return refusals, model_state, scaler.get_scale()


def _remembered(hook):
    state = hook.state_dict()
    return repr({key: value for key, value in state.items() if key not in ("counters", "inside")})


def _all(place):
    reports = {name: _run(place, name, BAD) for name in HOOKS}
    return reports | {"static graph": _run(place, "gather", BAD, static=True)}


@pytest.fixture(scope="module")
def reports():
    return in_ranks(_all, processes=2)


@pytest.mark.parametrize("name", [*HOOKS, "static graph"])
def test_training_continues_after_refused_passes(reports, name):
    (refusals, model, scale), (others, twin, _) = (report[name] for report in reports)
    assert [k for k, *_ in refusals] == list(BAD)
    assert [words for _, words, _ in refusals] == [words for _, words, _ in others]
    assert all("on rank 1 is not finite" in words for _, words, _ in refusals)
    assert all(same for _, _, same in (*refusals, *others)), "feedback remembers what it did before the pass"
    assert scale == 1024.0 / 2 ** len(BAD)
    assert torch.isfinite(torch.from_numpy(model)).all()
    assert (model == twin).all()
