"""What is refused before any rank waits for another."""

import inspect
from functools import partial

import numpy as np
import pytest
import torch

from bounds.schedules import AdaComm
from gpu_validation.averaging.exchange.parts import Candidates, Cheapest, Gather, Sum, TwoShot
from gpu_validation.averaging.membership.parts import Nodes, Uneven
from gpu_validation.averaging.merge.rules import Blocking, Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.mixing import Elastic, Full, Sampled, ring
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing, Settings
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import QSGD, Identity, Key
from operators.fingerprint import differing
from operators.summed import SharedScale


def settings(**parts):
    return Settings.of(**{"schedule": 4} | parts)


def test_an_averaging_has_twelve_keywords():
    assert len(inspect.signature(PeriodicAveraging).parameters) == 12


def test_bad_arguments_are_refused_with_the_rule():
    model = torch.nn.Linear(1, 1)
    for given, words in (
        ({"schedule": 0}, "tau"),
        ({"schedule": AdaComm(tau_0=2, interval_s=1.0)}, "need the optimizer"),
        ({"merge": Blocking(optimizer_state="average")}, "need the optimizer"),
        ({"outer": BlockMomentum(0.1)}, "need the optimizer"),
        ({"mixing": "ring"}, "mixing must be a mode of gpu_validation.averaging.mixing, .*; got 'ring'"),
        ({"merge": "corrected"}, "merge must be Blocking.*; got 'corrected'"),
        ({"membership": None}, "membership must be All.*; got None"),
        ({"exchange": QSGD(levels=2)}, "exchange must be Gather.*; got QSGD"),
        ({"operator": Gather()}, "operator must be an operator; got Gather.*: pass it as exchange="),
        ({"operator": "qsgd:4"}, r"operator must be an operator.*; got 'qsgd:4': give operators\.parse\('qsgd:4'\)"),
        (
            {"schedule": 2, "merge": Overwrite(2)},
            "delay of Overwrite must be < tau, or all steps are dropped; got .* 2",
        ),
        ({"operator": QSGD(levels=2), "exchange": Gather()}, "give operator or exchange, not both"),
        (
            {"mixing": ring(4), "operator": QSGD(levels=2)},
            "Gossip does not work with operator = QSGD.*: use full or sampled",
        ),
        ({"mixing": Elastic(0.1), "outer": BlockMomentum(0.1)}, "Elastic does not work with outer = BlockMomentum"),
    ):
        with pytest.raises(ValueError, match=words):
            PeriodicAveraging(model, **given)
    with pytest.raises(ValueError, match="the model has no parameters"):
        PeriodicAveraging(torch.nn.Identity())


@pytest.mark.parametrize(
    ("part", "values", "words"),
    [
        (Corrected, {"delay": -1}, "0 <= delay <= tau; got delay = -1"),
        (Corrected, {"fragments": 0}, "fragments must be >= 1; got 0"),
        (Corrected, {"fragments": []}, r"fragments must be >= 1; got \(\)"),
        (Corrected, {"optimizer_state": "average"}, "keep or reset with Corrected; got 'average'"),
        (Blocking, {"optimizer_state": "forget"}, "keep or average or reset with Blocking; got 'forget'"),
        (Blocking, {"fragments": 2, "optimizer_state": "average"}, "keep or reset with Blocking; got 'average'"),
        (Overwrite, {"local_weight": 1.0}, "0 <= local_weight < 1; got 1.0"),
        (Overwrite, {"local_weight": True}, "local_weight must be a number"),
        (Overwrite, {"delay": 1.5}, "delay must be a whole number"),
        (Overwrite, {"delay": None}, "delay must be a whole number"),
        (BlockMomentum, {"beta": 1.0}, "0 <= beta < 1; got 1.0"),
        (Nodes, {"ranks_per_node": 0}, "ranks_per_node must be >= 1; got 0"),
        (TwoShot, {"operator": None}, "needs operators for movements and means; got None"),
        (TwoShot, {"operator": QSGD(4), "means": SharedScale(8)}, "got SharedScale.*Sum\\(method\\) for a Summed"),
        (Cheapest, {"operator": SharedScale(8)}, "Cheapest needs operators"),
        (Sum, {"operator": QSGD(4)}, "Sum needs a method of operators.summed"),
        (Pacing, {"schedule": "often"}, "must be a number, a rule or \"auto\"; got 'often'"),
    ],
)
def test_a_part_refuses_its_own_bad_values(part, values, words):
    with pytest.raises(ValueError, match=words):
        part(**values)


@pytest.mark.parametrize(
    ("part", "values"),
    [
        (Corrected, {"local_weight": 0.5}),
        (Delayed, {"delay": 2}),
        (Eager, {"delay": 2}),
        (Blocking, {"delay": 2}),
        (Gather, {"means": QSGD(4)}),
        (Sum, {"means": QSGD(4)}),
        (Candidates, {"errors": False}),
        (Uneven, {"ranks_per_node": 2}),
    ],
)
def test_combinations_that_mean_nothing_cannot_be_written(part, values):
    with pytest.raises(TypeError, match="unexpected keyword"):
        part(**values)


@pytest.mark.parametrize("version", [None, "0.1.5", "0.3.0"])
def test_a_state_of_another_version_names_the_version_that_reads_it(version):
    state = SimulatedWorkers([torch.nn.Linear(1, 1)]).state_dict()
    assert state.pop("version") == "0.2.0"
    given = {} if version is None else {"version": version}
    words = f"of ratedist 0.2.0; got one that ratedist {version or '0.1.0'} saved and reads: load it there"
    with pytest.raises(ValueError, match=words):
        SimulatedWorkers([torch.nn.Linear(1, 1)]).load_state_dict(state | given)


def test_full_averaging_is_the_default():
    assert settings().mixing == settings(mixing=Full()).mixing == Full()


def test_fingerprint_tells_settings_apart_but_not_ranks():
    same = settings().fingerprint()

    assert settings(key=Key(0, rank=5), schedule=np.int64(3)).fingerprint() == settings(schedule=3).fingerprint()
    for name, value in {
        "schedule": 5,
        "operator": Identity(),
        "exchange": Gather(errors=False),
        "mixing": Sampled(2, Key(0)),
        "key": Key(1),
        "merge": Blocking(optimizer_state="reset"),
        "membership": Uneven(),
        "outer": partial(torch.optim.SGD, lr=0.5),
    }.items():
        assert differing(settings(**{name: value}).fingerprint(), same) == [name]
    for name, value in {"steps": 10, "piggyback": True}.items():
        assert differing(settings(schedule=Pacing(4, **{name: value})).fingerprint(), same) == [name]


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


NUMBERS = {
    "schedule": lambda value: settings(schedule=value),
    "steps": lambda value: settings(schedule=Pacing(4, steps=value)),
    "delay": lambda value: settings(merge=Corrected(value)),
    "fragments": lambda value: settings(merge=Corrected(fragments=value)),
    "ranks_per_node": lambda value: settings(operator=QSGD(4), membership=Nodes(value)),
}


@pytest.mark.parametrize("number", [np.int64(4), np.uint8(4), torch.tensor(4)], ids=repr)
@pytest.mark.parametrize("name", NUMBERS)
def test_integers_of_other_libraries_are_integers(name, number):
    assert repr(NUMBERS[name](number)) == repr(NUMBERS[name](4))


@pytest.mark.parametrize("value", [True, np.True_, 2.5, np.float64(4), "4"], ids=repr)
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_whole_number_is_refused(name, value):
    if (name, value) != ("schedule", "4"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number.*; got "):
            NUMBERS[name](value)


@pytest.mark.parametrize("value", [True, "fast", None, torch.ones(2)], ids=repr)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="beta must be a number; got "):
        BlockMomentum(value)
