"""State and hook by PyTorch's own convention are what ``register`` registers, to the bit."""

import copy
import importlib
import io

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import run_ranks
from operators import QSGD, ErrorFeedback, Key, ScaledSign
from operators.ddp import CompressedGradients, SummedGradients, compress_hook, register, state_of
from operators.summed import SharedScale

D, STEPS = 300, 3
CASES = {
    "operator": (QSGD(levels=4), {}),
    "two shots": (ErrorFeedback(ScaledSign()), {"exchange": "two_shot", "scope": "layer"}),
    "summed": (SharedScale(word_bits=8), {}),
    "by name": ("qsgd:4", {}),
}


@pytest.fixture(scope="module", autouse=True)
def _imported_before_the_processes_fork():
    importlib.import_module("torch._dynamo")
    QSGD(levels=4)(np.ones(D, np.float32), key=Key(0))


class Point(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.ones(D))

    def forward(self, gradient):
        return self.x @ gradient


def trained(place, registered):
    model = DistributedDataParallel(Point())
    hook = registered(model)
    means = []
    for step in range(STEPS):
        model.zero_grad()
        model(torch.randn(D, generator=torch.Generator().manual_seed(10 * step + place.rank))).backward()
        means.append(model.module.x.grad.clone().numpy())
    return means, hook.payload_bytes, hook.codec_bits, hook.steps


@pytest.mark.parametrize("case", CASES)
def test_both_ways_give_the_same_gradients_and_bytes(case):
    operator, settings = CASES[case]

    def by_convention(model):
        state = state_of(model, operator, key=Key(3), **settings)
        assert isinstance(state, SummedGradients if case == "summed" else CompressedGradients)
        model.register_comm_hook(state, compress_hook)
        return state

    def work(place, emit):
        torch.set_num_threads(1)
        ways = by_convention, lambda model: register(model, operator, key=Key(3), **settings)
        emit([trained(place, way) for way in ways])

    found = list(run_ranks(work, processes=2, hang_timeout_s=60))
    assert len(found) == 2
    for (means, *counted), (registered, *others) in found:
        assert np.array_equal(means, registered)
        assert counted == others
        assert counted[0] > 0
        assert counted[2] == STEPS
    assert np.array_equal(found[0][0][0], found[1][0][0])


def test_a_state_without_its_hook_changes_nothing():
    def work(place, emit):
        model = DistributedDataParallel(Point())
        state = state_of(model, ScaledSign())
        model(torch.full((D,), float(place.rank))).backward()
        emit((float(model.module.x.grad.mean()), state.steps, state.payload_bytes))

    assert list(run_ranks(work, processes=2, hang_timeout_s=60)) == [(0.5, 0, 0)] * 2


def test_a_wrong_hook_would_be_found():
    def work(place, emit):
        model = DistributedDataParallel(Point())
        state = state_of(model, ScaledSign())

        def half(state, bucket):
            return compress_hook(state, bucket).then(lambda future: future.value() / 2)

        model.register_comm_hook(state, half)
        model(torch.ones(D)).backward()
        emit(float(model.module.x.grad.mean()))

    assert list(run_ranks(work, processes=2, hang_timeout_s=60)) == [0.5] * 2


@pytest.mark.parametrize("case", CASES)
def test_a_model_with_a_hook_is_copied_and_saved_and_its_copy_takes_a_hook_of_its_own(case):
    operator, settings = CASES[case]

    def stepped(model, place, step):
        model.zero_grad()
        model(torch.randn(D, generator=torch.Generator().manual_seed(10 * step + place.rank))).backward()
        return model.module.x.grad.clone().numpy()

    def work(place, emit):
        model = DistributedDataParallel(Point())
        hook = register(model, operator, key=Key(3), **settings)
        stepped(model, place, 0)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        copies = {
            "deepcopy": copy.deepcopy(model),
            "saved": torch.load(file, weights_only=False),
            "moving average": torch.optim.swa_utils.AveragedModel(model).module,
        }
        state = copy.deepcopy(hook.state_dict())
        expected = [stepped(model, place, step) for step in (1, 2)]  # the first model keeps its hook
        for name, twin in copies.items():
            exact = stepped(twin, place, 1)  # by torch's all-reduce
            mean = sum(torch.randn(D, generator=torch.Generator().manual_seed(10 + rank)) for rank in range(2)) / 2
            np.testing.assert_allclose(exact, mean.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
            own = register(twin, operator, key=Key(3), **settings)
            own.load_state_dict(copy.deepcopy(state))
            for step in (1, 2):
                np.testing.assert_array_equal(stepped(twin, place, step), expected[step - 1], err_msg=name)
            with pytest.raises(RuntimeError, match="a copied or loaded model has no hook: call register on it"):
                copy.deepcopy(own).reduce(None)
        emit(True)

    assert list(run_ranks(work, processes=2, hang_timeout_s=60)) == [True, True]
