"""A pilot leaves everything as it was, and measures the training that the user would run."""

import copy
import itertools
import math
import random

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader, TensorDataset

from gpu_validation import pilot
from gpu_validation.piloting.pilot import passes
from ratedist.interfaces.cli import main

QUICK = {"operators": ["scaled_sign"], "taus": (1, 2), "moments": 2}
ROUNDS = QUICK | {"rounds": 2, "round_taus": (1, 2)}


class Net(torch.nn.Module):
    """Layers, buffers of both kinds, an attribute that counts, and noise of three generators."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.body, self.head = torch.nn.Linear(3, 4, dtype=dtype), torch.nn.Linear(4, 1, dtype=dtype)
        self.norm = torch.nn.BatchNorm1d(4, dtype=dtype)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64), persistent=False)
        self.register_buffer("replaced", torch.zeros(2))
        self.calls, self.extra = 0, {"amax": [1.0]}

    def forward(self, x):
        self.calls += 1
        self.seen += 1
        self.replaced = self.replaced + 1
        self.extra["amax"].append(float(self.calls))
        noise = random.random() + np.random.rand() + float(torch.rand(()))  # noqa: NPY002
        return self.head(torch.relu(self.norm(self.body(x)))) * (1 + 0.01 * noise)

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, state):
        self.extra = state


def loss(model, batch):
    return (model(batch[0].to(model.head.weight.dtype)).float() - 1).square().mean()


class Counting(torch.optim.SGD):
    """An optimizer with an attribute and a state of its own."""

    def __init__(self, parameters, **given):
        super().__init__(parameters, **given)
        self.stepped, self.memory = 0, {"steps": [0]}

    def step(self, closure=None):
        self.stepped += 1
        self.memory["steps"].append(self.stepped)
        return super().step(closure)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.05)),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.05, amsgrad=True),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.05),
    "Counting": lambda p: Counting(p, lr=0.05),
}


def loader(n=12, size=4, seed=1):
    draw = torch.Generator().manual_seed(5)
    data = TensorDataset(torch.randn(n, 3, generator=draw))
    return DataLoader(data, batch_size=size, shuffle=True, generator=torch.Generator().manual_seed(seed))


def plain(value):
    """A value as something that compares exactly."""
    if isinstance(value, torch.Tensor):
        return (id(value), value.dtype, value.detach().double().tolist())
    if isinstance(value, dict):
        return {str(k) if not isinstance(k, torch.Tensor) else id(k): plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else repr(value)


def everything(model, optimizer, source):
    return plain(
        {
            "tensors": [*model.parameters(), *model.buffers()],
            "gradients": [p.grad for p in model.parameters()],
            "attributes": [model.calls, model.training, model.extra],
            "state": dict(optimizer.state),
            "groups": optimizer.param_groups,
            "vars": {k: v for k, v in vars(optimizer).items() if k in ("stepped", "memory", "_opt_called")},
            "random": [torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()],  # noqa: NPY002
            "loader": source.generator.get_state().tolist(),
        }
    )


def begun(name, dtype=torch.float32):
    torch.manual_seed(3)
    model = Net(dtype)
    optimizer = OPTIMIZERS[name](model.parameters())
    source = loader()
    for batch in source:
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()
    return model, optimizer, source


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_as_it_was(name, fails):
    model, optimizer, source = begun(name)
    before = everything(model, optimizer, source)
    calls = itertools.count()

    def ours(model, batch):
        if fails and next(calls) == 20:
            raise KeyError("stop")
        return loss(model, batch)

    given = (model, optimizer, ours, source)
    if fails:
        with pytest.raises(KeyError):
            pilot(*given, worker_batches=[source, source], **ROUNDS)
    else:
        pilot(*given, worker_batches=[source, source], **ROUNDS)

    assert everything(model, optimizer, source) == before


def test_states_keep_their_type():
    """A state in float32 of a parameter in bfloat16 is not rounded."""
    model, optimizer, source = begun("momentum", torch.bfloat16)
    for state in optimizer.state.values():
        state["momentum_buffer"] = state["momentum_buffer"].float() + 1e-6
    before = copy.deepcopy([state["momentum_buffer"] for state in optimizer.state.values()])

    class Float32(torch.optim.SGD):
        def step(self, closure=None):
            return None  # the test is about what is restored

    optimizer.__class__ = Float32
    pilot(model, optimizer, loss, source, **QUICK)

    for state, kept in zip(optimizer.state.values(), before, strict=True):
        assert state["momentum_buffer"].dtype == torch.float32
        assert torch.equal(state["momentum_buffer"], kept)


def test_hooks_do_not_run_and_stay():
    model, optimizer, source = begun("Adam")
    ran = []
    optimizer.register_step_pre_hook(lambda *_: ran.append("pre"))
    optimizer.register_step_post_hook(lambda *_: ran.append("post"))
    everywhere = register_optimizer_step_post_hook(lambda *_: ran.append("global"))
    pilot(model, optimizer, loss, source, **QUICK)
    assert ran == []
    optimizer.step()
    everywhere.remove()
    assert sorted(ran) == ["global", "post", "pre"]


def test_a_scheduler_still_says_that_it_was_called_first():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    pilot(model, optimizer, loss, loader(), **QUICK)
    assert optimizer.param_groups[0]["lr"] == 0.1
    with pytest.warns(UserWarning, match="lr_scheduler.step"):
        scheduler.step()


def test_an_optimizer_of_the_head_counts_its_own_parameters():
    model = Net()
    found = pilot(model, torch.optim.SGD(model.head.parameters(), lr=0.1), loss, loader(), **QUICK)
    assert found.d == 5
    stranger = torch.optim.SGD(Net().parameters(), lr=0.1)
    with pytest.raises(ValueError, match="the optimizer steps and that require a gradient; got none"):
        pilot(model, stranger, loss, loader(), **QUICK)


def test_optimizers_with_a_closure_and_rates_of_zero_are_refused_by_name():
    model = Net()
    with pytest.raises(ValueError, match="steps without a closure; got LBFGS"):
        pilot(model, torch.optim.LBFGS(model.parameters()), loss, loader(), **QUICK)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 100)
    with pytest.raises(ValueError, match="a learning rate above 0; got 0 in every group, as at the start of a warm-up"):
        pilot(model, optimizer, loss, loader(), **QUICK)
    two = [{"params": model.body.parameters(), "lr": 0.0}, {"params": model.head.parameters(), "lr": 0.1}]
    assert pilot(model, torch.optim.SGD(two), loss, loader(), **QUICK).d == 16 + 5


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_may_share_a_short_loader(workers):
    model = Net()
    short = loader(n=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = pilot(model, optimizer, loss, short, worker_batches=[short] * workers, **ROUNDS)
    assert found.rounds.workers == workers


def test_gradients_are_clipped_in_trials_too():
    model = torch.nn.Linear(3, 1, bias=False)
    most = []

    def clip(model):
        most.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)))

    def squares(model, batch):
        return (model(batch[0]) - 100).square().mean()

    source = loader()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    found = pilot(model, optimizer, squares, source, worker_batches=[source] * 2, before_step=clip, **ROUNDS)
    assert min(most) > 1e-3
    largest = max(abs(fall) for row in found.rounds.rows for stretch in row.falls for fall in stretch)
    assert largest < 100, "two steps of length 1e-3 against a gradient of some hundreds"


# -- the reference -----------------------------------------------------------------------------------------------------
def test_synchronous_steps_are_those_of_the_mean_gradient():
    """With Adam on different data the mean of local steps is another training."""

    class Point(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))

    curves = torch.tensor([[1.0, 0.1], [0.2, 3.0]])
    centres = torch.tensor([[3.0, 0.0], [-2.0, 1.0]])

    def quadratic(model, batch):
        return 0.5 * (batch[0] * (model.x - batch[1]) ** 2).sum()

    def data(i):
        return itertools.repeat((curves[i], centres[i]))

    model = Point()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
    given = {"moments": 2, "taus": (1, 2), "operators": [], "rounds": 2, "round_taus": (1, 4)}
    found = pilot(model, optimizer, quadratic, data(0), worker_batches=[data(0), data(1)], **given)

    model = Point()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
    losses = []
    for step in range(9):
        losses.append(sum(quadratic(model, next(data(i))).item() for i in range(2)) / 2)
        if step == 8:
            break
        optimizer.zero_grad()
        (sum(quadratic(model, next(data(i))) for i in range(2)) / 2).backward()
        optimizer.step()
    ddp = next(row for row in found.rounds.rows if (row.operator, row.tau) == ("", 1))
    assert ddp.falls[0] == pytest.approx([losses[0] - losses[4], losses[4] - losses[8]], rel=1e-5)


# -- cost --------------------------------------------------------------------------------------------------------------
def passes_counted(**given):
    """The forward and backward passes of one worker, by calls of its loss; a pass without gradient counts a third."""
    model, source, calls = Net(), loader(), [0.0]

    def counted(model, batch):
        calls[0] += 1 if torch.is_grad_enabled() else 1 / 3
        return loss(model, batch)

    workers = given.pop("workers", 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = pilot(model, optimizer, counted, source, worker_batches=[source] * workers, **QUICK | given)
    return found, calls[0]


def test_the_cost_is_that_of_the_passes():
    found, calls = passes_counted()
    assert found.passes == calls
    found, with_rounds = passes_counted(workers=2, rounds=3, round_taus=(1, 2))
    assert (with_rounds - calls) / 2 <= found.passes - calls <= 1.3 * (with_rounds - calls) / 2


@pytest.mark.parametrize(("steps", "rounds"), [(None, 0), (300, 0), (1300, 2), (10**5, 4)])
def test_rounds_are_tried_unasked_where_they_fit_into_the_share(steps, rounds):
    found, _ = passes_counted(workers=2, steps=steps, round_taus=(1, 2))
    assert (0 if found.rounds is None else len(found.rounds.rows[0].falls[0])) == rounds
    assert steps is None or found.passes <= 0.1 * steps
    assert (found.steps or None) == steps
    assert found.passes == passes(2, (1, 2), rounds, (1, 2), 1)


def test_a_pilot_that_costs_more_than_its_share_is_refused_before_it_starts():
    with pytest.raises(ValueError, match="at most 10% of the steps of the training; got 17 passes of 149"):
        passes_counted(steps=149)
    with pytest.raises(ValueError, match=r"or share=0\.12$"):
        passes_counted(steps=149)
    assert passes_counted(steps=149, share=0.12)[0].passes == 17
    with pytest.raises(ValueError, match=r"or rounds$"):  # no share is enough
        passes_counted(steps=16, share=1)
    refused = {"share": (0, math.nan, True), "steps": (0, 2.5, True)}
    rules = {"share": "share must be in", "steps": "steps must be the whole steps"}
    for change, rule in (({name: value}, rules[name]) for name, values in refused.items() for value in values):
        with pytest.raises(ValueError, match=rule):
            passes_counted(**{"steps": 1000} | change)


@pytest.mark.parametrize("line", ["pilot {}", "plan --pilot {} --workers 4 --explain"])
def test_the_cost_is_printed(line, tmp_path, capsys):
    file = tmp_path / "pilot.json"
    passes_counted(workers=2, steps=10**4, round_taus=(1, 2), path=file)
    assert main(line.format(file).split()) == 0
    cost = passes(2, (1, 2), 4, (1, 2), 1)
    text = f"{cost} forward and backward passes per worker, {cost / 10**4:.1%} of the training's 10,000 steps"
    assert text in " ".join(capsys.readouterr().out.split())


def test_without_steps_the_printed_cost_names_the_training_of_which_it_is_a_tenth():
    assert (
        passes_counted()[0].answer().facts["pilot"] == "17 forward and backward passes per worker, a tenth of 170 steps"
    )
