"""Models that change under an averaging: replaced, added, frozen parameters; and what cannot be averaged."""

import time

import numpy as np
import pytest
import torch

from gpu_validation.averaging.mixing import Elastic, Sampled, ring
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.averaging.structure import require_averageable
from gpu_validation.processes.tensors import flat
from operators import ErrorFeedback, Identity, Key, TopK
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
WAYS = {
    "models": {},
    "deltas": {"operator": TopK(fraction=1.0)},
    "feedback": {"operator": ErrorFeedback(TopK(k=2)), "outer": BlockMomentum(0.5)},
    "elastic": {"mixing": Elastic(0.3)},
    "gossip": {"mixing": ring(2)},
    "sampled": {"mixing": Sampled(1, Key(3))},
}


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    for operator in (TopK(fraction=1.0), TopK(k=2), Identity()):
        operator(np.ones(5, np.float32), key=Key(0))


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


def shift(model, amount):
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p += amount


def everything(model):
    return flat([*model.parameters(), *model.buffers()], torch.float64)


def started(model, **settings):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return PeriodicAveraging(model, optimizer, schedule=1, **settings)


def words_of(action):
    try:
        action()
    except (RuntimeError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def of_all_ways(work, processes=2):
    """What ``work(place, settings)`` returns in every way of averaging: {name: [result of each rank]}."""
    reports = in_ranks(lambda place: {name: work(place, given) for name, given in WAYS.items()}, processes)
    return {name: [report[name] for report in reports] for name in WAYS}


# -- what replaces or adds parameters --------------------------------------------------------------------------
def test_parameters_that_a_loaded_state_has_replaced_are_averaged():
    def work(place, settings):
        model = network()
        averaging = started(model, **settings)
        state = {name: value.clone() + place.rank for name, value in model.state_dict().items()}
        model.load_state_dict(state, assign=True)
        averaging.step()
        return averaging.parameters, list(model.parameters()), everything(model)

    for name, reports in of_all_ways(work).items():
        for averaged, own, _ in reports:
            assert all((a == b).all() for a, b in zip(averaged, own, strict=True)), name
        if name not in ("elastic", "gossip", "feedback"):
            np.testing.assert_array_equal(reports[0][2], reports[1][2], err_msg=name)


def test_replaced_parameters_are_averaged_to_their_mean_on_every_rank():
    def work(place):
        model = torch.nn.Linear(1, 1, bias=False)
        averaging = started(model)
        model.load_state_dict({"weight": torch.tensor([[2.0 + place.rank]])}, assign=True)
        averaging.step()
        return model.weight.item()

    assert in_ranks(work, processes=2) == [2.5, 2.5]


def test_an_added_layer_is_joined_and_all_ranks_hold_the_exact_mean():
    def work(place, settings):
        model = network()
        averaging = started(model, **settings)
        shift(model, 1.0 + place.rank)
        averaging.step()
        model.append(torch.nn.Linear(2, 2, bias=False))
        with torch.no_grad():
            model[2].weight.fill_(4.0 * place.rank)
        shift(model[0], place.rank)
        before = everything(model)
        averaging.step()
        after = everything(model)
        shift(model, 0.5)
        averaging.step()  # goes on as ever
        return before, after, everything(model)

    for name, reports in of_all_ways(work).items():
        (before, after, later), (other, same, _) = reports
        np.testing.assert_array_equal(after, same, err_msg=name)
        mean = (before + other) / 2
        trained = np.r_[0 : 8 + 2 + 4]  # of the linear layer, the normalisation, the new layer; buffers behind
        np.testing.assert_allclose(after[trained], mean[trained], rtol=1e-6, err_msg=name)
        assert (later[trained] != after[trained]).any(), name


def test_a_layer_that_one_rank_alone_adds_is_told_to_all_that_average_with_it():
    def work(place, settings):
        if "mixing" in settings and isinstance(settings["mixing"], Sampled):
            return None  # a rank that is not drawn is not heard; the others notice that it ends
        model = network()
        averaging = started(model, **settings)
        averaging.step()
        if place.rank:
            model.append(torch.nn.Linear(2, 2))
        began = time.monotonic()
        words = words_of(averaging.step)
        return words, time.monotonic() - began

    for name, reports in of_all_ways(work).items():
        for words, seconds in filter(None, reports):
            assert words.startswith(("UnevenModels: since the last averaging", "ValueError: all ranks must hold")), name
            assert seconds < 30, name


# -- frozen parameters -----------------------------------------------------------------------------------------
def test_frozen_parameters_start_as_rank_0s_and_are_never_sent():
    def work(place):
        torch.manual_seed(place.rank)
        base, adapter = torch.nn.Linear(100, 100), torch.nn.Linear(4, 2)
        model = torch.nn.Sequential(base.requires_grad_(False), adapter)
        averaging = started(model)
        start = everything(base)
        shift(model, place.rank)
        averaging.step()
        return start, everything(adapter), averaging.transport.payload_bytes

    (start, adapter, sent), (other, same, _) = in_ranks(work, processes=2)
    np.testing.assert_array_equal(start, other)
    np.testing.assert_array_equal(adapter, same)
    assert sent <= 4 * (10 + 17), "ten numbers and the count of steps"


def test_quantised_frozen_weights_do_no_harm():
    model = torch.nn.Linear(2, 1)
    model.packed = torch.nn.Parameter(torch.ones(4, dtype=torch.int8), requires_grad=False)
    averaging = SimulatedWorkers([model])
    shift(model, 1.0)
    averaging.step()
    assert model.packed.tolist() == [1] * 4


def test_freezing_and_unfreezing_between_averagings_leaves_all_ranks_alike():
    def work(place, settings):
        model = network()
        averaging = started(model, **settings)
        sizes = []
        for frozen in (False, True, False):
            shift(model, 1.0 + place.rank)  # of what is trained until now, and must not stay apart
            model[0].requires_grad_(not frozen)
            averaging.step()
            sizes.append(averaging.parameters[0].numel())
            alike = everything(model)
        return sizes, alike

    for name, reports in of_all_ways(work).items():
        assert [sizes for sizes, _ in reports] == [[6, 2, 6]] * 2, name
        np.testing.assert_array_equal(reports[0][1], reports[1][1], err_msg=name)


def test_a_rank_that_freezes_alone_is_told():
    def work(place):
        model = network()
        averaging = started(model)
        if place.rank == 2:
            model[0].requires_grad_(False)
        return words_of(averaging.step)

    for words in in_ranks(work, processes=3):
        assert words.startswith("UnevenModels: since the last averaging, parameters were added, removed, frozen or")


def test_a_state_of_other_parameters_is_refused_with_the_remedy():
    model = network()
    state = SimulatedWorkers([model], operator=TopK(k=2)).state_dict()
    model[0].requires_grad_(False)
    with pytest.raises(ValueError, match="differs in model: give the same model"):
        SimulatedWorkers([model], operator=TopK(k=2)).load_state_dict(state)


# -- what cannot be averaged -----------------------------------------------------------------------------------
def test_models_without_anything_to_average_are_refused():
    with pytest.raises(ValueError, match="no parameter of the model requires a gradient"):
        SimulatedWorkers([torch.nn.Linear(2, 2).requires_grad_(False)])
    with pytest.raises(ValueError, match="weight has no shape yet: run one batch"):
        SimulatedWorkers([torch.nn.LazyLinear(2)])


def test_sharded_parameters_are_refused_in_one_sentence():
    def work(place):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        model = torch.nn.Linear(4, 4)
        averaging = started(model)
        fully_shard(model, mesh=init_device_mesh("cpu", (place.size,)))
        return words_of(lambda: started(model)), words_of(averaging.step)

    for started_late, sharded_late in in_ranks(work, processes=2):
        assert started_late.startswith("ValueError: process_group must have one rank of the mesh over which weight is")
        assert "weight is float32 of shape (4, 4), shard 0 of 2" in sharded_late
        assert "\n" not in started_late + sharded_late


def test_flat_parameters_of_the_older_fsdp_are_refused():
    model = torch.nn.Linear(4, 4)
    model.weight._is_flat_param = True  # as FlatParameter marks itself
    with pytest.raises(TypeError, match="weight is sharded"):
        require_averageable(model)


# -- numbers that are not finite -------------------------------------------------------------------------------
@pytest.mark.parametrize("rank", [0, 1])
def test_a_movement_that_is_not_finite_is_told_to_all_ranks_at_once(rank):
    def work(place):
        model = network()
        averaging = started(model, operator=TopK(fraction=0.5))
        averaging.step()
        if place.rank == rank:
            with torch.no_grad():
                model[0].bias[1] = float("nan")
        began = time.monotonic()
        return words_of(averaging.step), time.monotonic() - began

    for words, seconds in in_ranks(work, processes=3):
        assert words == (
            f"ValueError: the movement of rank {rank} in averaging 1, after 2 local steps, is not finite in binary32: "
            "entry 1 of 0.bias; look for an overflow in the loss, lower the learning rate, or clip the gradients"
        )
        assert seconds < 20, "far below the time-out"


def test_an_operator_that_fails_on_one_rank_is_told_to_all():
    def work(place):
        model = network()
        averaging = started(model, operator=TopK(fraction=0.5))
        if place.rank:
            averaging._worker.sender.encode = lambda delta, round_index: 1 // 0
        return words_of(averaging.step)

    for words in in_ranks(work, processes=2):
        assert words.startswith("ValueError: the movement of rank 1 in averaging 0, after 1 local steps, could not be")
