"""A biased operator without error feedback causes one warning, and nothing else does."""

import warnings

import pytest
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import operators.fsdp
from gpu_validation import PeriodicAveraging
from gpu_validation.averaging.exchange.parts import TwoShot
from operators import QSGD, BiasWarning, BlockInteger, ErrorFeedback, FloatCast, PowerSGD, ScaledSign, SignSGD, TopK
from operators.ddp import register
from operators.feedback.memoryless import Memoryless, warn_of_bias
from operators.summed.power_sgd import SummedPowerSGD


def warned(make, *positional, **named):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BiasWarning)
        make(*positional, **named)
    return [str(warning.message) for warning in caught if warning.category is BiasWarning]


@pytest.fixture(scope="module")
def model():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield lambda: torch.nn.Linear(8, 4)
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "silent",
    [
        None,
        QSGD(4),
        SignSGD(),
        FloatCast("e5m2"),
        BlockInteger(8, rounding="nearest"),
        ErrorFeedback(TopK(fraction=0.1)),
        PowerSGD(1, (8, 4)),
        SummedPowerSGD(1),
    ],
)
def test_what_is_unbiased_or_has_a_memory_is_silent(silent):
    assert not warned(warn_of_bias, silent, d=32)


@pytest.mark.parametrize("operator", [TopK(fraction=0.1), ScaledSign(), Memoryless(ScaledSign())])
def test_a_contraction_without_memory_warns_once_with_the_remedy(operator):
    (words,) = warned(warn_of_bias, operator, operator, d=32)
    named = getattr(operator, "operator", operator)
    assert words.endswith(f"use ErrorFeedback({named!r})")


def test_every_way_to_train_with_a_biased_operator_warns_once(model):
    biased, fed = TopK(fraction=0.1), ErrorFeedback(TopK(fraction=0.1))

    def hooked(operator, **settings):
        register(DistributedDataParallel(model()), operator, **settings)

    def sharded(operator):
        operators.fsdp.register(fully_shard(model(), mesh=dist.init_device_mesh("cpu", (1,))), operator)

    assert len(warned(PeriodicAveraging, model(), operator=biased)) == 1
    assert len(warned(PeriodicAveraging, model(), exchange=TwoShot(fed, means=biased))) == 1
    assert len(warned(PeriodicAveraging, model(), exchange=TwoShot(biased))) == 1
    assert len(warned(hooked, biased)) == 1
    assert len(warned(sharded, biased)) == 1
    assert not warned(PeriodicAveraging, model(), operator=fed)
    assert not warned(hooked, biased, feedback=ErrorFeedback)
    assert not warned(sharded, fed)
