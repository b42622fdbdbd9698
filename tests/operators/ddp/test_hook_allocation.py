"""Bits that follow the decoded mean, in real processes: equal on all ranks, by the law, and kept over a restart."""

import importlib

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from bounds.special.allocation import unbiased_constants
from gpu_validation.processes.launch import run_ranks
from operators import DIANA, TCDQ, ErrorFeedback, Key, TopK, WaterFilling
from operators.allocation import COARSE, Members, allocate, declared_bits
from operators.ddp import register
from operators.ddp.assignment import Assignment
from operators.feedback.memoryless import Memoryless
from operators.summed.shared_scale import SharedScale

pytestmark = pytest.mark.timeout(120)
SCALES = {"large": 10.0, "middle": 1.0, "small": 0.1}
SIZES = {"large": 128, "middle": 1024, "small": 8192}
NAMES = list(SIZES)
RULE = WaterFilling(bits=2.0, every=2)


@pytest.fixture(scope="module", autouse=True)
def _imported_and_compiled_before_the_processes_fork():
    importlib.import_module("torch._dynamo")  # which DistributedDataParallel imports when it is first used
    for operator in (TCDQ(), TopK(fraction=0.1)):
        operator(torch.ones(128), key=Key(0))


class Layers(torch.nn.Module):
    """Three vectors; ``backward`` leaves the gradients that are passed."""

    def __init__(self):
        super().__init__()
        for name, size in SIZES.items():
            setattr(self, name, torch.nn.Parameter(torch.ones(size)))

    def forward(self, gradients):
        return sum((getattr(self, name) * gradients[name]).sum() for name in NAMES)


def gradients(rank, step):
    """The same signal on all ranks with noise of its own: variances differ by 10^4."""
    draw, own = torch.Generator().manual_seed(step), torch.Generator().manual_seed(1000 + 100 * rank + step)
    return {
        name: SCALES[name] * (torch.randn(size, generator=draw) + 0.3 * torch.randn(size, generator=own))
        for name, size in SIZES.items()
    }


def reports(work, processes=2):
    def report(place, emit):
        emit((place.rank, work(place)))

    return [result for _, result in sorted(run_ranks(report, processes=processes, hang_timeout_s=60))]


def omegas(hook):
    return [hook.assignment.method_of(name).operator.omega for name in NAMES]


def trained(rank, steps, operator="tcdq", start=0, state=None, **settings):
    """The means of each step, the omegas with which each was sent, the counters and the state."""
    model = DistributedDataParallel(Layers(), bucket_cap_mb=0.01)
    hook = register(model, operator, scope="layer", key=Key(5), **({"allocation": RULE} | settings))
    if state is not None:
        hook.load_state_dict(state)
    means, constants = [], []
    for step in range(start, start + steps):
        constants.append(omegas(hook) if operator == "tcdq" else None)
        model.zero_grad()
        model(gradients(rank, step)).backward()
        means.append(np.concatenate([getattr(model.module, name).grad.numpy() for name in NAMES]))
    return means, constants, hook.codec_bits, hook


def nmse(rank_means, ranks):
    """Error of the means over their energy, from the second step on."""
    error = energy = 0.0
    for step, mean in list(enumerate(rank_means))[1:]:
        exact = torch.stack([torch.cat(list(gradients(r, step).values())).double() for r in range(ranks)]).mean(0)
        error += float(np.sum((mean - exact.numpy()) ** 2))
        energy += float(exact @ exact)
    return error / energy


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
def test_all_ranks_assign_the_same_bits_by_the_law(exchange):
    def work(place):
        means, constants, _, hook = trained(place.rank, 4, exchange=exchange)
        return means, [*constants, omegas(hook)]

    (means, constants), (other_means, other_constants) = reports(work)
    assert constants == other_constants
    assert all((x == y).all() for x, y in zip(means, other_means, strict=True))
    pieces = {name: [size] if exchange == "gather" else [size // 2] * 2 for name, size in SIZES.items()}
    by_hand = [1.0] * 3
    for step, sent in enumerate(constants):  # one omega at first; then the law after steps 1, 3, ...
        if step == 1 or (step > 1 and step % 2):
            cuts = np.cumsum(list(SIZES.values()))[:-1]
            window = means[0:1] if step == 1 else means[step - 2 : step]
            squares = np.mean([[np.mean(p.astype(float) ** 2) for p in np.split(m, cuts)] for m in window], axis=0)
            by_hand = [s / (1 + omega / 2) for s, omega in zip(squares, constants[step - 1], strict=True)]
        operators = allocate(
            Members(TCDQ(), COARSE), by_hand, list(SIZES.values()), 2.0 * sum(SIZES.values()), declared(pieces)
        )
        assert sent == [operator.omega for operator in operators]
    levels = [omega * (1 + omega) * v for omega, v in zip(constants[-1], by_hand, strict=True)]
    assert levels == pytest.approx([levels[0]] * 3, rel=0.2)  # the grid of constants has eight to an octave


def declared(pieces):
    def spent(operators):
        parts = zip(operators, pieces.values(), strict=True)
        return sum(declared_bits(operator.bits(d), d) for operator, sizes in parts for d in sizes)

    return spent


def test_the_error_is_that_of_the_law_at_no_more_bits_than_one_omega():
    def work(place):
        means, _, bits, hook = trained(place.rank, 6)
        one_means, _, one_bits, _ = trained(place.rank, 6, operator=TCDQ(omega=ONE), allocation=None)
        return nmse(means, 2), nmse(one_means, 2), bits, one_bits, omegas(hook)

    for error, one_error, bits, one_bits, constants in reports(work):
        assert bits <= one_bits
        assert bits <= 6 * 2.0 * sum(SIZES.values())
        variances = np.array([1.09 * SCALES[name] ** 2 for name in NAMES])
        energies = variances * np.array(list(SIZES.values()))
        expected = ONE / (energies @ np.array(constants) / energies.sum())
        assert one_error / error == pytest.approx(expected, rel=0.25)
        assert one_error / error > 20


ONE = 0.0712  # of all layers, a little more than 2 bits with headers


def test_a_state_goes_on_where_it_was():
    def work(place):
        means, constants, _, hook = trained(place.rank, 3)
        state = hook.state_dict()
        rest, others, *_ = trained(place.rank, 3, start=3, state=state)
        whole, all_constants, *_ = trained(place.rank, 6)
        same = all((x == y).all() for x, y in zip([*means, *rest], whole, strict=True))
        return same, constants + others == all_constants

    assert reports(work) == [(True, True)] * 2


def test_a_refused_pass_leaves_the_assignment_as_it_was():
    def work(place):
        model = DistributedDataParallel(Layers(), bucket_cap_mb=0.01)
        hook = register(model, "tcdq", scope="layer", allocation=WaterFilling(2.0, every=1))
        model(gradients(place.rank, 0)).backward()
        before, state = omegas(hook), hook.state_dict()["allocation"]
        broken = gradients(place.rank, 1)
        if place.rank == 1:
            broken["small"][5] = torch.inf
        with pytest.raises(ValueError, match="not finite"):
            model(broken).backward()
        return before == omegas(hook) and state == hook.state_dict()["allocation"]

    assert reports(work) == [True, True]


def test_error_feedback_follows_its_own_law_and_nodes_agree():
    def work(place):
        *_, hook = trained(place.rank, 3, operator=TopK(fraction=0.1), feedback=ErrorFeedback, ranks_per_node=2)
        fractions = [hook.assignment.method_of(name).operator.fraction for name in NAMES]
        return fractions, hook.codec_bits

    found = reports(work, processes=4)
    assert len({tuple(fractions) for fractions, _ in found}) == 1
    fractions = found[0][0]
    assert fractions[0] > fractions[1] > fractions[2] > 0


def test_misuse_is_refused_with_the_rule():
    def work(place):
        model = DistributedDataParallel(Layers())
        words = []
        for operator, settings in (
            ("tcdq", {"scope": "bucket"}),
            (TopK(fraction=0.1), {}),
            ("tcdq", {"feedback": ErrorFeedback}),
            (DIANA(TCDQ()), {}),
            ("scaled_sign", {}),
            (SharedScale(8), {}),
            ("tcdq", {"allocation": WaterFilling(0.001)}),
        ):
            with pytest.raises(ValueError) as caught:  # noqa: PT011  each sentence is compared below
                register(model, operator, **({"scope": "layer", "allocation": RULE} | settings))
            words.append(str(caught.value))
        return words

    scope, biased, memory, shifts, fixed, summed, few = reports(work, processes=1)[0]
    assert scope.endswith("got scope = 'bucket': pass scope=\"layer\"")
    assert "an allocation of topk needs feedback=ErrorFeedback" in biased
    assert all("an allocation of tcdq needs no feedback" in words for words in (memory, shifts))
    assert "scaled_sign must have a field that controls its bits" in fixed
    assert "which is summed" in summed
    assert "bits must be at least" in few


def test_ranks_with_different_budgets_are_refused():
    def work(place):
        with pytest.raises(ValueError, match="differ in allocation"):
            register(
                DistributedDataParallel(Layers()), "tcdq", scope="layer", allocation=WaterFilling(2.0 + place.rank)
            )
        return True

    assert reports(work) == [True, True]


def test_measured_squares_are_those_of_the_gradients_where_ranks_agree():
    """The error adds omega/m of a gradient to the square of the mean: the assignment takes it out."""
    rule = WaterFilling(bits=1.0, every=1)
    assignment = Assignment(Memoryless(TCDQ()), rule, {"a": [4096], "b": [4096]}, m=2)
    (omega,) = {assignment.method_of(name).operator.omega for name in "ab"}
    gradient, draw = torch.ones(4096), torch.Generator().manual_seed(0)
    noise = (omega / 2) ** 0.5 * torch.randn(4096, generator=draw)
    assignment.observe(["a", "b"], [gradient + noise, 10 * (gradient + noise)])
    assignment.step()
    a, b = (assignment.method_of(name).operator.omega for name in "ab")
    assert a * (1 + a) == pytest.approx(100 * b * (1 + b), rel=0.25)
    assert unbiased_constants(b * (1 + b) * 100, np.array([1.0]))[0] == pytest.approx(a, rel=0.2)
