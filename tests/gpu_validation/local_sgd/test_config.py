"""What is refused before any rank waits for another."""

from functools import partial

import numpy as np
import pytest
import torch

from bounds.schedules import AdaComm
from gpu_validation.local_sgd.config import Settings
from gpu_validation.local_sgd.mixing import Elastic, Full, ring
from gpu_validation.local_sgd.periodic_averaging import PeriodicAveraging
from operators import QSGD, Identity, Key
from operators.fingerprint import differing


def settings(**changes):
    given = {
        "schedule": 4,
        "operator": None,
        "mixing": "full",
        "key": Key(0),
        "optimizer_state": "keep",
        "block_momentum": 0.0,
        "steps": None,
    }
    return Settings(**{**given, **changes})


def test_bad_arguments_are_refused_with_the_rule():
    model = torch.nn.Linear(1, 1)
    for given, words in (
        ({"schedule": 0}, "tau"),
        ({"schedule": AdaComm(tau_0=2, interval_s=1.0)}, "need the optimizer"),
        ({"optimizer_state": "average"}, "need the optimizer"),
        ({"block_momentum": 0.1}, "need the optimizer"),
        ({"optimizer_state": "forget"}, "must be keep, average or reset; got 'forget'"),
        ({"block_momentum": 1.0}, "0 <= beta < 1; got 1.0"),
        ({"mixing": "ring"}, "must be \"full\" or a mode of gpu_validation.local_sgd.mixing; got 'ring'"),
        ({"mixing": ring(4), "operator": QSGD(levels=2)}, "Gossip has none: use full or sampled"),
        ({"mixing": Elastic(0.1), "block_momentum": 0.1}, "Elastic has none"),
    ):
        with pytest.raises(ValueError, match=words):
            PeriodicAveraging(model, **given)
    with pytest.raises(ValueError, match="the model has no parameters"):
        PeriodicAveraging(torch.nn.Identity())


def test_full_is_a_name_for_its_mode():
    assert settings().mode == settings(mixing=Full()).mode == Full()


def test_fingerprint_tells_settings_apart_but_not_ranks():
    same = settings().fingerprint()

    assert settings(key=Key(0, rank=5), schedule=np.int64(3)).fingerprint() == settings(schedule=3).fingerprint()
    for name, value in {
        "schedule": 5,
        "operator": Identity(),
        "mixing": ring(2),
        "key": Key(1),
        "optimizer_state": "reset",
        "block_momentum": 0.1,
        "steps": 10,
        "outer": partial(torch.optim.SGD, lr=0.5),
    }.items():
        assert differing(settings(**{name: value}).fingerprint(), same) == [name]


def test_objects_without_a_readable_form_do_not_tell_processes_apart():
    class Rule(AdaComm):
        __repr__ = object.__repr__

    rules = [Rule(tau_0=2, interval_s=1.0) for _ in range(2)]

    assert repr(rules[0]) != repr(rules[1])
    assert settings(schedule=rules[0]).fingerprint() == settings(schedule=rules[1]).fingerprint()


def test_a_wrapped_model_is_refused_with_what_to_pass():
    with pytest.raises(ValueError, match=r"must not be in DataParallel.*pass the module inside it"):
        PeriodicAveraging(torch.nn.DataParallel(torch.nn.Linear(1, 1)))


def test_an_optimizer_of_another_model_is_refused():
    other = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)

    with pytest.raises(ValueError, match="the optimizer must be of this model; it has none of its parameters"):
        PeriodicAveraging(torch.nn.Linear(1, 1), other)


NAMES = ["schedule", "delay", "fragments", "ranks_per_node", "steps"]


@pytest.mark.parametrize("number", [np.int64(4), np.uint8(4), torch.tensor(4)], ids=repr)
@pytest.mark.parametrize("name", ["schedule", "delay", "fragments", "steps"])
def test_integers_of_other_libraries_are_integers(name, number):
    made = settings(overlap="corrected", **{name: number})

    assert type(getattr(made, name)) is int
    assert made == settings(overlap="corrected", **{name: 4})


@pytest.mark.parametrize("value", [True, np.True_, 2.5, np.float64(4), "4"], ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_whole_number_is_refused(name, value):
    if (name, value) != ("schedule", "4"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number.*; got "):
            settings(**{name: value})


@pytest.mark.parametrize("value", [True, "fast", None, torch.ones(2)], ids=repr)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="block_momentum must be a number; got "):
        settings(block_momentum=value)
