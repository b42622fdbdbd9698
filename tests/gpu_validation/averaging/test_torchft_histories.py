"""Parameters after every step as torchft 7eb7087 records them (``streaming_diloco``): equal, step by step.

Two replicas, two scalar parameters that start at 1, one fragment each; inner gradient 2 at rate 1; outer SGD at rate 2;
6 local steps a round.  ``delay`` is torchft's ``fragment_sync_delay``, ``alpha`` its ``fragment_update_alpha``.
"""

import copy
import pickle
from dataclasses import replace
from functools import partial

import pytest
import torch

from gpu_validation import SGD, Nesterov, SimulatedWorkers
from gpu_validation.averaging.merge.rules import Blocking, Corrected, Overwrite
from operators import QSGD

TAU = 6
RECORDED = {  # (delay, alpha) -> first and second parameter
    (0, 0): (
        [1.0, -1.0, -3.0, -11.0, -13.0, -15.0, -17.0, -19.0, -21.0, -35.0, -37.0, -39.0, -41.0, -43.0, -45.0, -59.0],
        [1.0, -1.0, -3.0, -5.0, -7.0, -9.0, -23.0, -25.0, -27.0, -29.0, -31.0, -33.0, -47.0, -49.0, -51.0, -53.0],
    ),
    (1, 0): (
        [1.0, -1.0, -3.0, -7.0, -9.0, -11.0, -13.0, -15.0, -17.0, -27.0, -29.0, -31.0, -33.0, -35.0, -37.0, -47.0],
        [1.0, -1.0, -3.0, -5.0, -7.0, -9.0, -19.0, -21.0, -23.0, -25.0, -27.0, -29.0, -39.0, -41.0, -43.0, -45.0],
    ),
    (1, 0.5): (
        [1.0, -1.0, -3.0, -6.0, -8.0, -10.0, -12.0, -14.0, -16.0, -21.5, -23.5, -25.5, -27.5, -29.5, -31.5, -35.75],
        [1.0, -1.0, -3.0, -5.0, -7.0, -9.0, -15.0, -17.0, -19.0, -21.0, -23.0, -25.0, -29.0, -31.0, -33.0, -35.0],
    ),
}


class Scalars(torch.nn.Module):
    """Two scalar parameters."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Parameter(torch.ones(())) for _ in range(2))


def histories(steps, merge, *, replicas=2, outer=SGD(2.0, 0.0)):  # noqa: B008  frozen
    """The parameters of the first replica at the start and after every step."""
    models = [Scalars() for _ in range(replicas)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1.0) for model in models]
    averaging = SimulatedWorkers(models, optimizers, schedule=TAU, outer=outer, merge=merge)
    found = [[p.item() for p in models[0].parameters()]]
    for _ in range(steps):
        for model, optimizer in zip(models, optimizers, strict=True):
            for parameter in model.parameters():
                parameter.grad = torch.tensor(2.0)
            optimizer.step()
        averaging.step()
        found.append([p.item() for p in models[0].parameters()])
    return tuple(map(list, zip(*found, strict=True)))


@pytest.mark.parametrize(("delay", "alpha"), RECORDED)
def test_every_step_is_that_of_the_recorded_history(delay, alpha):
    recorded = RECORDED[delay, alpha]
    merge = Overwrite(delay=delay, fragments=2, local_weight=alpha)
    assert histories(len(recorded[0]) - 1, merge) == recorded


@pytest.mark.parametrize(("delay", "alpha"), RECORDED)
def test_fragments_named_by_their_modules_have_the_recorded_history(delay, alpha):
    merge = Overwrite(delay=delay, fragments=["first", "second"], local_weight=alpha)
    recorded = RECORDED[delay, alpha]
    assert histories(len(recorded[0]) - 1, merge, outer=[SGD(2.0), SGD(2.0)]) == recorded


class Streaming:
    """torchft's ``DiLoCo`` as its source states it: fragments are modules, each with an optimizer of its own."""

    def __init__(self, replicas, names, outers, *, sync_every, delay, alpha):
        self.delay, self.alpha, self.every, self.step, self.turn = delay, alpha, sync_every // len(names), 0, 0
        self.fragments = [[list(model.get_submodule(name).parameters()) for model in replicas] for name in names]
        self.backups = [[p.detach().clone() for p in fragment[0]] for fragment in self.fragments]
        self.copies = [[p.clone().requires_grad_() for p in backup] for backup in self.backups]
        self.outers = [make(thetas) for make, thetas in zip(outers, self.copies, strict=True)]

    def after_step(self):
        self.step += 1
        fragment, backup = self.fragments[self.turn], self.backups[self.turn]
        if self.step == self.every - self.delay:  # prepare_sync
            moved = [[b - p.detach() for b, p in zip(backup, replica, strict=True)] for replica in fragment]
            self.pseudogradients = [torch.stack(parts).mean(0) for parts in zip(*moved, strict=True)]
        if self.step < self.every:
            return
        for theta, b, gradient in zip(
            self.copies[self.turn], backup, self.pseudogradients, strict=True
        ):  # perform_sync
            theta.data.copy_(b)
            theta.grad = gradient
        self.outers[self.turn].step()
        self.backups[self.turn] = [theta.detach().clone() for theta in self.copies[self.turn]]
        for replica in fragment:
            for p, new in zip(replica, self.backups[self.turn], strict=True):
                p.data.copy_((1 - self.alpha) * new + self.alpha * p.data)
        self.turn, self.step = (self.turn + 1) % len(self.fragments), 0


NAMES = ["2", "0", "1"]  # not in the order of the model, and of unequal lengths
OUTERS = [Nesterov(0.7, 0.9), SGD(0.5), partial(torch.optim.Adam, lr=0.01)]


def replicas_of_layers(n=2):
    torch.manual_seed(0)
    first = torch.nn.Sequential(torch.nn.Linear(4, 7), torch.nn.Linear(7, 2), torch.nn.Linear(2, 3)).double()
    return [first, *(copy.deepcopy(first) for _ in range(n - 1))]


def train_replicas(replicas, after_step, steps, first=0):
    """Parameters after every step of SGD on data of their own."""
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in replicas]
    path = []
    for step in range(first, steps):
        for rank, (model, optimizer) in enumerate(zip(replicas, optimizers, strict=True)):
            draw = torch.Generator().manual_seed(100 * step + rank)
            optimizer.zero_grad()
            model(torch.randn(5, 4, generator=draw, dtype=torch.float64)).square().sum().backward()
            optimizer.step()
        after_step()
        path.append(torch.stack([torch.cat([p.detach().flatten() for p in model.parameters()]) for model in replicas]))
    return torch.stack(path)


@pytest.mark.parametrize(("delay", "alpha"), [(0, 0.0), (1, 0.0), (2, 0.25), (0, 0.5)])
def test_fragments_of_modules_with_outer_optimizers_of_their_own_go_as_torchfts(delay, alpha):
    theirs, ours = replicas_of_layers(), replicas_of_layers()
    streaming = Streaming(theirs, NAMES, OUTERS, sync_every=9, delay=delay, alpha=alpha)
    averaging = SimulatedWorkers(
        ours, schedule=9, merge=Overwrite(delay=delay, fragments=NAMES, local_weight=alpha), outer=OUTERS
    )
    expected = train_replicas(theirs, streaming.after_step, 30)
    found = train_replicas(ours, averaging.step, 30)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    swapped = SimulatedWorkers(
        replicas := replicas_of_layers(),
        schedule=9,
        merge=Overwrite(delay=delay, fragments=NAMES, local_weight=alpha),
        outer=OUTERS[::-1],
    )
    assert (train_replicas(replicas, swapped.step, 30) - expected).abs().max() > 1e-3


@pytest.mark.parametrize("operator", [None, QSGD(4)])
def test_fragments_of_modules_resume_bit_for_bit(operator):
    def averaging_of(replicas):
        return SimulatedWorkers(
            replicas, schedule=9, merge=Corrected(delay=2, fragments=NAMES), outer=OUTERS, operator=operator
        )

    whole = replicas_of_layers()
    undisturbed = train_replicas(whole, averaging_of(whole).step, 20)
    for stop in (2, 9, 10):
        replicas = replicas_of_layers()
        first = averaging_of(replicas)
        train_replicas(replicas, first.step, stop)
        state, again = pickle.loads(pickle.dumps(first.state_dict())), copy.deepcopy(replicas)
        resumed = averaging_of(again)
        for model, saved in zip(again, replicas, strict=True):
            model.load_state_dict(saved.state_dict())
        resumed.load_state_dict(state)
        assert torch.equal(train_replicas(again, resumed.step, 20, first=stop), undisturbed[stop:])


@pytest.mark.parametrize(
    ("fragments", "outer", "sentence"),
    [
        (["0", "1"], None, "must be in one fragment; 2.weight is in none"),
        (["0", "1", "2", "2.bias"], None, "must be in one fragment; 2.bias is in 2 and 2.bias"),
        (["0", "1", "2", "3"], None, "a fragment must have parameters that require a gradient; 3 has none"),
        (["0", "1", "nope"], None, "a fragment must have parameters that require a gradient; nope has none"),
        ([], None, "fragments must be >= 1"),
        (NAMES, [SGD(1.0)] * 2, "outer needs one optimizer for all fragments, or one per fragment; got 2 for 3"),
        (NAMES, [SGD(1.0), SGD(1.0), 0.7], "outer must be Nesterov"),
    ],
)
def test_fragments_that_do_not_fit_the_model_are_refused(fragments, outer, sentence):
    with pytest.raises(ValueError, match=sentence):
        SimulatedWorkers(replicas_of_layers(), schedule=9, merge=Overwrite(fragments=fragments), outer=outer)


@pytest.mark.parametrize("wrong", [{"delay": 2}, {"local_weight": 0.25}])
def test_another_delay_or_weight_gives_another_history(wrong):
    merge = Overwrite(delay=1, fragments=2, local_weight=0.5)
    assert histories(15, merge) == RECORDED[1, 0.5]
    assert histories(15, replace(merge, **wrong)) != RECORDED[1, 0.5]


def test_fragments_that_are_waited_for_have_the_history_of_delay_0():
    assert histories(15, Blocking(fragments=2)) == RECORDED[0, 0.0]


RESUMED = (
    {"merge": Blocking(fragments=3)},
    {"merge": Overwrite(delay=2, local_weight=0.25)},
    {"merge": Overwrite(delay=0, fragments=2, local_weight=0.5)},
    {"merge": Overwrite(delay=1, fragments=2, local_weight=0.5), "operator": QSGD(4)},
)


def trained(steps, settings, stops_after=None):
    """Parameters of three replicas, which may be saved and restored in a new averaging after a step."""
    torch.manual_seed(0)
    models = [torch.nn.Linear(5, 3) for _ in range(3)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]

    def made():
        return SimulatedWorkers(models, optimizers, schedule=TAU, outer=Nesterov(0.7, 0.5), **settings)

    averaging, draws = made(), torch.Generator().manual_seed(1)
    for step in range(steps):
        if step == stops_after:
            saved = pickle.dumps([averaging.state_dict(), [model.state_dict() for model in models]])
            averaging, (state, states) = made(), pickle.loads(saved)
            for model, of_model in zip(models, states, strict=True):
                model.load_state_dict(of_model)
            averaging.load_state_dict(state)
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            model(torch.randn(4, 5, generator=draws)).square().mean().backward()
            optimizer.step()
        averaging.step()
    return torch.cat([parameter.flatten() for model in models for parameter in model.parameters()])


@pytest.mark.parametrize("settings", RESUMED, ids=str)
def test_a_restored_averaging_goes_on_bit_for_bit(settings):
    undisturbed = trained(16, settings)
    for stops_after in (1, 5, 6, 7, 11):
        assert torch.equal(trained(16, settings, stops_after), undisturbed)
