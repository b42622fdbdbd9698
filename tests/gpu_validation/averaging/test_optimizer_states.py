"""The average of optimizer states goes by the names of parameters, or is refused with a name on all ranks."""

import pytest
import torch

from gpu_validation.averaging.buffers_and_states import CONSTANT, COUNTER, MOMENT, NO_MEAN, SCALAR, entry_of
from gpu_validation.averaging.merge.rules import Blocking
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
OPTIMIZERS = {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "Adam, amsgrad": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5),
    "SGD without momentum": lambda p: torch.optim.SGD(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1),
}


class Branches(torch.nn.Module):
    """Two branches, of which a step uses one or both."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)

    def forward(self, x, names):
        return sum(getattr(self, name)(x) for name in names)


def step(model, optimizer, names, seed):
    optimizer.zero_grad(set_to_none=True)
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
    model(x, names).square().sum().backward()
    optimizer.step()


def states(model, optimizer):
    return {
        (name, key): value.clone() if isinstance(value, torch.Tensor) else value
        for name, p in model.named_parameters()
        for key, value in optimizer.state.get(p, {}).items()
    }


def run(make, branches, changes=lambda rank, model, optimizer: None):
    """States before and after one averaging of simulated workers, by (name, key), of every worker."""
    models = [Branches() for _ in branches]
    optimizers = [make(model) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=1, merge=Blocking(optimizer_state="average"))
    for rank, (model, optimizer, names) in enumerate(zip(models, optimizers, branches, strict=True)):
        for seed in range(1 + rank):
            step(model, optimizer, names, 10 * rank + seed)
        changes(rank, model, optimizer)
    before = [states(*pair) for pair in zip(models, optimizers, strict=True)]
    workers.step()
    return before, [states(*pair) for pair in zip(models, optimizers, strict=True)]


# -- means by name ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("branches", [("ab", "ab"), ("a", "b"), ("ab", "b", "a")], ids="-".join)
def test_moments_are_averaged_by_name_with_zeros_for_none_and_counters_take_the_largest(name, branches):
    make = OPTIMIZERS[name]
    before, after = run(lambda model: make(list(model.parameters())), branches)
    for place in {place for of_rank in before for place in of_rank}:
        values = [of_rank.get(place) for of_rank in before]
        for new in after:
            assert place in new, "a rank that lacks it gets the mean"
            if new[place] is None:
                continue
            if place[1] == "step":
                assert float(new[place]) == max(float(v) for v in values if v is not None)
            elif new[place].ndim:
                zeros = torch.zeros_like(new[place])
                mean = sum((zeros if v is None else v).double() for v in values) / len(values)
                torch.testing.assert_close(new[place].double(), mean, rtol=1e-6, atol=1e-30)
            else:
                held = [float(v) for v in values if v is not None]
                assert float(new[place]) == pytest.approx(sum(held) / len(held), rel=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_averaging_after_an_averaging_changes_no_state_and_training_goes_on(name):
    models = [Branches() for _ in "ab"]
    optimizers = [OPTIMIZERS[name](list(model.parameters())) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=1, merge=Blocking(optimizer_state="average"))
    for model, optimizer, branch in zip(models, optimizers, "ab", strict=True):
        step(model, optimizer, branch, 3)
    workers.step()
    once = [states(*pair) for pair in zip(models, optimizers, strict=True)]
    workers.step()
    twice = [states(*pair) for pair in zip(models, optimizers, strict=True)]
    for before, after in zip(once, twice, strict=True):
        assert before.keys() == after.keys()
        for place, value in before.items():
            torch.testing.assert_close(after[place], value, rtol=1e-6, atol=0.0)
    for model, optimizer in zip(models, optimizers, strict=True):
        step(model, optimizer, "ab", 4)
    assert all(torch.isfinite(p).all() for model in models for p in model.parameters())


def test_a_state_with_a_constant_is_left_to_its_optimizer():
    def changes(rank, model, optimizer):
        optimizer.state.clear()
        if rank == 0:
            optimizer.state[model.a.weight] = {"entry": torch.ones(4, 3), "way": "nesterov"}

    _, after = run(lambda model: torch.optim.SGD(model.parameters(), lr=0.1), ("ab", "ab"), changes)
    assert torch.equal(after[0]["a.weight", "entry"], torch.full((4, 3), 0.5))
    assert after[1] == {}


def test_the_order_of_parameter_groups_does_not_matter():
    def make(model):
        make.calls += 1
        groups = [{"params": list(model.a.parameters())}, {"params": list(model.b.parameters())}]
        return torch.optim.Adam(groups[:: 1 if make.calls % 2 else -1], lr=0.1)

    make.calls = 0
    before, after = run(make, ("ab", "ab"))
    for (name, key), value in after[0].items():
        if key != "step":
            mean = (before[0][name, key] + before[1][name, key]) / 2
            torch.testing.assert_close(value, mean, rtol=1e-6, atol=1e-30)
            assert torch.equal(value, after[1][name, key])


def test_parameters_of_no_model_keep_their_state():
    extra = [torch.nn.Parameter(torch.ones(rank + 1)) for rank in range(2)]

    def changes(rank, model, optimizer):
        optimizer.state[extra[rank]] = {"exp_avg": torch.ones(rank + 1), "step": torch.tensor(5.0 + rank)}

    def make(model):
        make.calls += 1
        return torch.optim.Adam([*model.parameters(), extra[make.calls - 1]], lr=0.1)

    make.calls = 0
    run(make, ("ab", "ab"), changes)


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ((2**62 + 1, 2**62 + 3), 2**62 + 3),  # a counter
        ((torch.tensor(7), torch.tensor(9)), 9),
        ((torch.tensor([7], dtype=torch.int32), torch.tensor([9], dtype=torch.int32)), 9),
        ((0.25, 0.75), 0.5),
        ((torch.tensor(0.25, dtype=torch.float64), torch.tensor(0.75, dtype=torch.float64)), 0.5),
        ((torch.tensor([1 + 2j]), torch.tensor([3 + 2j])), 2 + 2j),
        ((torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([2.0], dtype=torch.bfloat16)), 1.5),
        (("nesterov", "nesterov"), "nesterov"),
        ((None, None), None),
        ((torch.tensor([3, 4]), torch.tensor([3, 4])), [3, 4]),
    ],
)
def test_other_entries(values, right):
    def changes(rank, model, optimizer):
        optimizer.state[model.a.weight] = {"entry": values[rank]}

    _, after = run(lambda model: torch.optim.SGD(model.parameters(), lr=0.1), ("ab", "ab"), changes)
    for of_rank in after:
        value = of_rank["a.weight", "entry"]
        value = value.squeeze().tolist() if isinstance(value, torch.Tensor) else value
        assert value == right


# -- refusals --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((torch.ones(2), torch.ones(3)), "entry of a.weight is float32 of shape .2,. on rank 0 and float32 of shape"),
        ((torch.ones(2), torch.ones(2).double()), "entry of a.weight is float32 .* and float64"),
        ((torch.ones(2), 3), "entry of a.weight"),
        ((1, 1.0), "entry of a.weight is int on rank 0 and float on rank 1"),
        (([torch.ones(2)], [torch.ones(2)]), "cannot average entry of a.weight, which is a list"),
        ((None, {"x": 1}), "cannot average entry of a.weight, which is a dict"),
        ((torch.tensor([1, 2]), torch.tensor([1, 3])), "entry of a.weight is int64 of shape"),  # such as codes
        (("a", "b"), "entry of a.weight is 'a' on rank 0 and 'b' on rank 1"),
        ((torch.ones(2), torch.tensor([1.0, float("nan")])), "entry of a.weight on rank 1 is not finite"),
        ((0.5, float("inf")), "entry of a.weight is not finite"),
    ],
)
def test_states_without_a_mean_are_refused_with_the_name_and_change_nothing(values, words):
    models = [Branches() for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=1, merge=Blocking(optimizer_state="average"))
    for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
        optimizer.state[model.a.weight] = {"entry": values[rank]}
        with torch.no_grad():
            model.a.weight.fill_(rank)
    with pytest.raises(ValueError, match=words):
        workers.step()
    assert [model.a.weight[0, 0].item() for model in models] == [0, 1]


def test_lbfgs_is_refused_by_name():
    def changes(rank, model, optimizer):
        optimizer.zero_grad()
        optimizer.step(lambda: _closure(model, optimizer))

    with pytest.raises(ValueError, match=r"cannot average .* of a.weight, which is a"):
        run(lambda model: _Lbfgs(model.parameters(), max_iter=3), ("ab", "ab"), changes)


def test_two_optimizers_are_refused():
    def make(model):
        make.calls += 1
        return (torch.optim.Adam if make.calls == 1 else torch.optim.Adamax)(model.parameters(), lr=0.1)

    make.calls = 0
    with pytest.raises(ValueError, match="optimizer is Adam on rank 0 and Adamax on rank 1"):
        run(make, ("ab", "ab"))


class _Lbfgs(torch.optim.LBFGS):
    def step(self, closure=None):
        return super().step(closure) if closure is not None else None


def _closure(model, optimizer):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 3), "ab").square().sum()
    loss.backward()
    return loss


def test_what_entries_are():
    kinds = {
        MOMENT: [("m", torch.ones(2))],
        SCALAR: [("mu", torch.tensor(1.0)), ("rms", 0.5)],
        COUNTER: [
            ("step", torch.tensor(1.0)),
            ("step", torch.ones(1)),
            ("n", 3),
            ("n", torch.tensor(3)),
            ("step", 1.0),
        ],
        CONSTANT: [("codes", torch.ones(2, dtype=torch.uint8)), ("on", True), ("on", torch.tensor(True)), ("by", "x")],
        NO_MEAN: [("old", [1]), ("n", 2**64), ("coo", torch.ones(2).to_sparse())],
    }
    for kind, entries in kinds.items():
        for key, value in entries:
            assert entry_of(key, value).kind == kind, (key, value)


# -- real ranks ------------------------------------------------------------------------------------------------
def _on_real_ranks(place):
    found = {}
    for case in ("unused", "shapes"):
        model = Branches()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        averaging = PeriodicAveraging(model, optimizer, schedule=2, merge=Blocking(optimizer_state="average"))
        words = ""
        try:
            for k in range(4):
                step(model, optimizer, "ab" if place.rank == 0 else "a", 10 * place.rank + k)
                if case == "shapes" and place.rank and k == 1:
                    optimizer.state[model.a.weight]["exp_avg_sq"] = torch.zeros(7)
                averaging.step()
        except ValueError as error:
            words = str(error)
        found[case] = words, states(model, optimizer)
    return found


def test_real_ranks_average_what_one_of_them_lacks_and_raise_the_same_sentence():
    first, second = in_ranks(_on_real_ranks, processes=2)
    (words, ours), (others, theirs) = first["unused"], second["unused"]
    assert words == others == ""
    assert {name for name, _ in theirs} == {"a.weight", "a.bias", "b.weight", "b.bias"}
    assert ours.keys() == theirs.keys()
    assert all((ours[place] == theirs[place]).all() for place in theirs)
    words, others = first["shapes"][0], second["shapes"][0]
    assert words == others
    assert "exp_avg_sq of a.weight is float32 of shape (4, 3) on rank 0 and float32 of shape (7,) on rank 1" in words
