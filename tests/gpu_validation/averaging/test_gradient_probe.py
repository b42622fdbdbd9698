"""The probe: the right products, in the optimizer's own coordinates, and nothing that it leaves behind."""

import copy

import pytest
import torch
from torch.nn.functional import cross_entropy

from gpu_validation.averaging.pacing.probing import Probe, retention


def network(*, dropout=0.0, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.Dropout(dropout),
        torch.nn.ReLU(),
        torch.nn.Linear(8, 3),
    )


def batch(n=16, seed=1):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, 6, generator=draw), torch.randint(3, (n,), generator=draw)


def closure_of(model, optimizer, x, y, calls=None):
    def closure():
        if calls is not None:
            calls.append(1)
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    return closure


def gradients(model):
    return [p.grad.clone() for p in model.parameters()]


def move(model, by=0.01):
    """As an averaging would."""
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p += by * torch.sin(torch.arange(p.numel()) + i).view_as(p)


def probed(model, optimizer, closure):
    """(h, the probe's result, u) around a local step and a movement of the model."""
    probe = Probe(model, list(model.parameters()), optimizer)
    probe.await_last_step()
    closure()
    optimizer.step()
    h = gradients(model)
    move(model)
    result = probe.measure(closure, probe.weights(), 0.0)[:3]
    return h, result


def dot(a, b, weights):
    return sum(float((w * x.double() * y.double()).sum()) for x, y, w in zip(a, b, weights, strict=True))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=False),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.8, 0.9), eps=1e-6),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
}


def plain_weight(optimizer, p):
    """What a gradient is multiplied by, written for each optimizer from its documentation."""
    state, group = optimizer.state[p], optimizer.param_groups[0]
    if isinstance(optimizer, torch.optim.SGD):
        return torch.ones_like(p)
    if isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW):
        v = state["max_exp_avg_sq"] if group["amsgrad"] else state["exp_avg_sq"]
        return 1 / (v.sqrt() / (1 - group["betas"][1] ** float(state["step"])) ** 0.5 + group["eps"])
    name = "square_avg" if isinstance(optimizer, torch.optim.RMSprop) else "sum"
    return 1 / (state[name].sqrt() + group["eps"])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_both_gradients_are_weighed_as_the_optimizer_weighs_them(name):
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters())
    h, (lost, fresh, loss) = probed(model, optimizer, closure_of(model, optimizer, *batch()))

    again = closure_of(model, optimizer, *batch())
    expected_loss = float(again().detach())
    u = gradients(model)
    weights = [plain_weight(optimizer, p).double() for p in model.parameters()]
    assert fresh == pytest.approx(dot(u, u, weights), rel=1e-5)
    assert lost == pytest.approx(dot(u, u, weights) - dot(h, u, weights), rel=1e-4)
    assert loss == expected_loss
    assert lost != 0


def test_the_weights_are_those_of_the_step_that_adam_makes():
    """Without first moment, Adam moves by lr times the weighted gradient: the weights are read off its steps."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.0, 0.9))
    probe = Probe(model, list(model.parameters()), optimizer)
    closure = closure_of(model, optimizer, *batch())
    for _ in range(3):
        closure()
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.step()
    moved = [(b - p.detach()) / 0.01 for b, p in zip(before, model.parameters(), strict=True)]
    for weight, m, g in zip(probe.weights(), moved, gradients(model), strict=True):
        torch.testing.assert_close(weight * g, m, rtol=1e-3, atol=1e-5)


def test_groups_count_by_their_learning_rates():
    model = network()
    first, *rest = model.parameters()
    optimizer = torch.optim.SGD([{"params": [first], "lr": 0.4}, {"params": rest, "lr": 0.1}])
    probe = Probe(model, [first, *rest], optimizer)
    assert probe.weights() == [1.0] + [0.25] * len(rest)


def test_nothing_is_left_behind():
    def run(probing):
        model = network(dropout=0.5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        probe = Probe(model, list(model.parameters()), optimizer)
        closure = closure_of(model, optimizer, *batch())
        torch.manual_seed(5)
        kept = []
        for _ in range(4):
            probe.await_last_step() if probing else None
            closure()
            optimizer.step()
            before = [p.grad for p in model.parameters()]
            if probing:
                probe.measure(closure, probe.weights())
            assert all(p.grad is g for p, g in zip(model.parameters(), before, strict=True))
            kept.append([*model.state_dict().values(), *gradients(model), torch.get_rng_state()])
        assert not model._forward_pre_hooks
        return kept

    for with_probe, without in zip(run(True), run(False), strict=True):
        for a, b in zip(with_probe, without, strict=True):
            assert torch.equal(a, b)


def test_dropout_drops_the_same_units_again():
    model = network(dropout=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    probe = Probe(model, list(model.parameters()), optimizer)
    closure = closure_of(model, optimizer, *batch())
    lost = []
    for known in (True, False):
        probe._before = None
        if known:
            probe.await_last_step()
        closure()
        torch.rand(3)  # whatever else draws numbers before the averaging
        lost.append(probe.measure(closure, [1.0] * 6)[0])
    assert lost[0] == 0.0  # nothing has moved, and the same units are left out
    assert lost[1] != 0.0


def test_accumulated_gradients_are_probed_as_they_were_made():
    model, (x, y) = network(), batch(32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        total = 0.0
        for part in range(4):
            some = slice(8 * part, 8 * part + 8)
            loss = cross_entropy(model(x[some]), y[some]) / 4
            loss.backward()
            total += loss.detach()
        return total

    h, (lost, fresh, _) = probed(model, optimizer, closure)

    closure()
    u = gradients(model)
    ones = [1.0] * len(u)
    assert fresh == pytest.approx(dot(u, u, ones), rel=1e-6)
    assert lost == pytest.approx(dot(u, u, ones) - dot(h, u, ones), rel=1e-4)


def test_bfloat16_autocast_gives_nearly_the_same_retention():
    found = []
    for enabled in (False, True):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        x, y = batch(256)

        def closure(model=model, optimizer=optimizer, x=x, y=y, enabled=enabled):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                loss = cross_entropy(model(x), y)
            loss.backward()
            return loss

        _, (lost, fresh, _) = probed(model, optimizer, closure)
        found.append(lost / fresh)
    assert abs(found[1] - found[0]) < 2.0**-7  # the resolution of bfloat16; the retention itself is
    assert abs(found[0]) > 2.0**-4


def test_models_in_bfloat16_and_frozen_or_sparse_parameters_are_probed():
    table = torch.nn.Embedding(5, 4, sparse=True)
    head = torch.nn.Linear(4, 1)
    head.bias.requires_grad_(False)
    model = torch.nn.Sequential(table, head).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.tensor([1, 1, 3])).square().mean()
        loss.backward()
        return loss

    probe = Probe(model, list(model.parameters()), optimizer)
    closure()
    assert probe.measure(closure, probe.weights())[0] == 0.0
    move(model, 0.25)
    lost, fresh, *_ = probe.measure(closure, probe.weights())
    assert lost != 0
    assert fresh > 0


def test_missing_gradients_are_told_apart():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = Probe(model, list(model.parameters()), optimizer)
    with pytest.raises(ValueError, match=r"call averaging\.step after optimizer\.step and before zero_grad"):
        probe.measure(lambda: None, probe.weights())
    closure_of(model, optimizer, *batch())()
    kept = gradients(model)
    with pytest.raises(ValueError, match=r"the closure has left no gradient in p\.grad"):
        probe.measure(lambda: None, probe.weights())
    for p, g in zip(model.parameters(), kept, strict=True):
        assert torch.equal(p.grad, g)


def test_retention_takes_the_difference_before_the_product():
    """1 - 10^-6 of a gradient of 10^6 float32 entries is told from all of it."""
    u = torch.full((10**6,), 1.0)
    h = u - 2.0**-20
    lost, fresh = retention([h], [u], [1.0])
    assert (lost, fresh) == (10**6 * 2.0**-20, 10**6)


def test_models_with_a_waiting_probe_can_be_copied():
    model = network()
    probe = Probe(model, list(model.parameters()), torch.optim.SGD(model.parameters(), lr=0.1))
    probe.await_last_step()
    twin = copy.deepcopy(model)
    twin(batch()[0])
    assert torch.isfinite(twin(batch()[0])).all()
