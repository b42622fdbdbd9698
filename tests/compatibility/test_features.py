"""Every line of the table in docs/guides/compatibility.md: scripts give the bits of averages and hooks made by hand."""

import importlib.util
import multiprocessing
import re
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import Blocking, PeriodicAveraging, run_ranks
from operators import ErrorFeedback, Key, TopK
from operators.ddp import register

PLACE = Path(__file__).parent / "features.py"
SPEC = importlib.util.spec_from_file_location("compatibility_features", PLACE)
features = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(features)

GUIDE = Path(__file__).parents[2] / "docs/guides/compatibility.md"
RANKS, TAU = 2, 4
ELSEWHERE = {  # further rows, and the tests that they have below tests/
    "warm-up from 0, `AdaComm`": (
        "gpu_validation/averaging/test_learning_rates.py",
        "test_telemetry_changes_nothing_in_real_ranks_at_any_learning_rate",
    ),
    'warm-up from 0, `schedule="auto"`': (
        "gpu_validation/averaging/test_learning_rates.py",
        "test_telemetry_changes_nothing_in_real_ranks_at_any_learning_rate",
    ),
    "saving by torch": (
        "gpu_validation/averaging/test_savers.py",
        "test_torch_saves_a_model_and_its_parts_bit_for_bit_and_no_more",
    ),
    "saving by safetensors": ("gpu_validation/averaging/test_savers.py", "test_safetensors_saves_a_model_bit_for_bit"),
    "saving by `torch.distributed.checkpoint`, accelerate, transformers": (
        "gpu_validation/averaging/test_savers.py",
        "test_two_ranks_save_and_load_by_other_libraries_bit_for_bit",
    ),
    "elastic restart of torchrun (max-restarts)": (
        "compatibility/test_elastic_restart.py",
        "test_a_killed_rank_costs_no_bit",
    ),
}
pytestmark = [
    pytest.mark.timeout(280),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),  # by torch.compile itself
]


def gathered(tensor):
    parts = [torch.empty_like(tensor) for _ in range(RANKS)]
    dist.all_gather(parts, tensor.contiguous())
    return torch.stack(parts)


def mean(tensor):
    """Over the ranks: floats in float64; counts, such as BatchNorm's, rounded to the nearest."""
    value = gathered(tensor).double().mean(0)
    return value.to(tensor.dtype) if tensor.is_floating_point() else value.round().to(tensor.dtype)


# -- models averaged --------------------------------------------------------------------------------------------------
def averaged(script):
    averaging = PeriodicAveraging(script.network, script.optimizer, schedule=TAU, **script.averaging)
    script.prepare()
    losses = script.train(averaging.step)
    averaging.average()
    return losses, script.state()


def averaged_by_hand(script):
    script.prepare()
    steps = 0

    def average():
        with torch.no_grad():
            for tensor in [*script.network.parameters(), *script.network.buffers()]:
                if not isinstance(tensor, torch.nn.Parameter) or tensor.requires_grad:
                    tensor.copy_(mean(tensor))
            if script.averaging.get("merge") == Blocking(optimizer_state="average"):
                for parameter in script.network.parameters():
                    state = script.optimizer.state.get(parameter, {})  # a rank that has none counts as zero
                    moment = mean(state.get("momentum_buffer", torch.zeros_like(parameter)))
                    if gathered(torch.tensor([bool(state)])).any():
                        script.optimizer.state[parameter]["momentum_buffer"] = moment

    def communicate(loss):
        nonlocal steps
        steps += 1
        if steps % TAU == 0:
            average()

    losses = script.train(communicate)
    if steps % TAU:
        average()
    return losses, script.state()


# -- gradients compressed ---------------------------------------------------------------------------------------------
METHOD = ErrorFeedback(TopK(fraction=0.25))


def compressed(script):
    script.model = DistributedDataParallel(script.network, **script.wrapping)
    register(script.model, METHOD, scope="layer")
    script.prepare()
    return script.train(lambda loss: None), script.state()


def compressed_by_hand(script):
    """A hook of PyTorch without any code of ours but the operator's: what is decoded travels as it is."""
    script.model = DistributedDataParallel(script.network, **script.wrapping)
    states = {}

    def hook(state, bucket):
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
            before = states.get(parameter, METHOD.init(gradient.numel()))
            states[parameter], message = METHOD.encode(before, gradient.flatten(), key=Key(0))
            receiver = METHOD.init_receiver(gradient.numel())
            _, decoded = METHOD.decode(receiver, message, d=gradient.numel(), key=Key(0))
            gradient.copy_(mean(decoded).view_as(gradient))
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    script.model.register_comm_hook(None, hook)
    script.prepare()
    return script.train(lambda loss: None), script.state()


# -- the table --------------------------------------------------------------------------------------------------------
def in_two_ranks(feature, *ways):
    """Of each rank the losses and states of the ways, one after the other."""

    def work(place, emit):
        torch.set_num_threads(1)
        multiprocessing.current_process()._config["daemon"] = False  # as under torchrun: loaders may have workers
        results = [way(feature(place.rank)) for way in ways]
        emit((place.rank, [(losses, [tensor.numpy() for tensor in state]) for losses, state in results]))

    reports = sorted(run_ranks(work, processes=RANKS, hang_timeout_s=120), key=lambda report: report[0])
    return [[(losses, list(map(torch.from_numpy, state))) for losses, state in report] for _, report in reports]


def assert_same_and_trained(results, name):
    for (losses, state), (losses_by_hand, state_by_hand) in results:
        assert losses == losses_by_hand, name
        assert all(torch.equal(a, b) for a, b in zip(state, state_by_hand, strict=True)), name
        assert sum(losses[-3:]) < sum(losses[:3]), name


@pytest.mark.every(6)
@pytest.mark.parametrize("name", features.FEATURES)
def test_averaging_works_with(name):
    results = in_two_ranks(features.FEATURES[name], averaged, averaged_by_hand)

    assert_same_and_trained(results, name)
    parameters = len(list(features.FEATURES[name](0).network.state_dict()))
    first, second = (state[:parameters] for (_, state), _ in results)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.every(6)
@pytest.mark.parametrize("name", features.FEATURES)
def test_compressed_gradients_work_with(name):
    assert_same_and_trained(in_two_ranks(features.FEATURES[name], compressed, compressed_by_hand), name)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "by_hand"), [(averaged, averaged_by_hand), (compressed, compressed_by_hand)])
def test_models_compiled_to_machine_code_work_too(way, by_hand):
    assert_same_and_trained(in_two_ranks(features.Inductor, way, by_hand), "inductor")


@pytest.mark.thorough
def test_steps_that_a_loss_scaler_leaves_out_are_local_steps_all_the_same():
    results = in_two_ranks(features.InfiniteGradients, averaged, averaged_by_hand)

    for (losses, state), (losses_by_hand, state_by_hand) in results:
        assert losses == losses_by_hand
        assert losses[0] > 0.9
        assert float(state[-1]) < features.InfiniteGradients.init_scale
        assert all(torch.equal(a, b) for a, b in zip(state, state_by_hand, strict=True))


def test_infinite_gradients_end_a_compressed_run_on_all_ranks_with_a_sentence():
    def work(place, emit):
        with pytest.raises(ValueError, match="not finite") as refusal:
            compressed(features.InfiniteGradients(place.rank))
        emit((place.rank, str(refusal.value)))

    assert len(list(run_ranks(work, processes=RANKS, hang_timeout_s=60))) == RANKS


def test_the_table_has_a_line_for_every_feature_tested_and_no_other():
    rows = re.findall(r"^\| (.+?) \|", GUIDE.read_text().partition("## The table")[2], re.MULTILINE)

    assert [row for row in rows if row not in ("feature", "---")] == [*features.FEATURES, *ELSEWHERE]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_rows_have_the_tests_that_are_named_here(name):
    place, test = ELSEWHERE[name]

    assert f"\ndef {test}(" in (GUIDE.parents[2] / "tests" / place).read_text()
