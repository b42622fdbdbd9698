"""What ranks do not have alike is named on all of them before it travels, and none of them waits."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.structure import difference, digest, layout
from operators import TopK
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
NAMES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["float32", "int64"])), unique_by=lambda row: row[0]
)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_difference_names_a_tensor_and_ranks_that_differ_in_it(layouts):
    words = difference(layouts)
    assert bool(words) == any(rows != layouts[0] for rows in layouts)
    assert not words or any(
        f"{place}{name} " in words for rows in layouts for name, _ in rows for place in ("tensors; ", "is ")
    )


def test_a_digest_depends_on_every_byte():
    assert digest(b"ab", b"c") == digest(b"abc") != digest(b"abd")
    assert -(2**63) <= digest(b"") < 2**63


def test_a_layout_is_plain():
    model = torch.nn.BatchNorm1d(2)
    model.bias.requires_grad_(False)
    assert json.loads(json.dumps(layout(model)))[:2] == [
        ["weight", "float32 of shape (2,)"],
        ["bias", "float32 of shape (2,), frozen"],
    ]


# -- real ranks ------------------------------------------------------------------------------------------------
def _linear(**settings):
    return torch.nn.Sequential(torch.nn.Linear(2, 3, **settings))


def _half_frozen():
    model = _linear()
    model[0].weight.requires_grad_(False)
    return model


def _swapped():
    model = torch.nn.Module()
    model.b, model.a = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    return model


def _ordered():
    model = torch.nn.Module()
    model.a, model.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    return model


def _with(value, **settings):
    model = _linear()
    model.register_buffer("table", value, **settings)
    return model


AT_THE_START = {  # models of ranks 0 and 1, and what the sentence names
    "shape": (_linear, lambda: torch.nn.Sequential(torch.nn.Linear(2, 4)), "0.weight"),
    "dtype": (_linear, lambda: _linear(dtype=torch.float64), "0.weight"),
    "missing": (_linear, lambda: _linear(bias=False), "0.bias"),
    "order": (_ordered, _swapped, "number 0"),
    "frozen": (_linear, _half_frozen, "0.weight"),
    "lazy": (_linear, lambda: torch.nn.LazyLinear(3), "weight has no shape yet"),
    "sparse": (_linear, lambda: _with(torch.eye(2).to_sparse()), "table is sparse"),
    "unfolded": (_linear, lambda: _with(torch.arange(6).unfold(0, 3, 1)), "table share memory"),
    "buffer": (lambda: _with(torch.ones(2)), lambda: _with(torch.ones(3)), "table"),
    "mask": (
        lambda: _with(torch.ones(2), persistent=False),
        lambda: _with(torch.ones(2).bool(), persistent=False),
        "table",
    ),
}
LATER = {
    "corrected": {"merge": Corrected()},
    "corrected, late": {"merge": Corrected(delay=1)},
    "delayed": {"merge": Delayed()},
    "eager": {"merge": Eager()},
    "fragments": {"merge": Overwrite(fragments=2)},
    "deltas": {"merge": Corrected(), "operator": TopK(fraction=1.0)},
}


def _words(action):
    try:
        action()
    except (ValueError, TypeError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _cases(place):
    started = {
        name: _words(lambda models=models: PeriodicAveraging(models[place.rank]()))
        for name, (*models, _) in AT_THE_START.items()
    }
    return started, {name: _changed(place, settings) for name, settings in LATER.items()}


def _changed(place, settings):
    """One rank adds a layer while averages are in flight."""
    model = _linear()
    averaging = PeriodicAveraging(model, schedule=2, **settings)
    for k in range(12):
        if k == 3 and place.rank:
            model.append(torch.nn.Linear(3, 3))
        words = _words(averaging.step)
        if words:
            return words, k
    return _words(averaging.average), 12


@pytest.fixture(scope="module")
def reports():
    return in_ranks(_cases, processes=2)


@pytest.mark.parametrize("case", AT_THE_START)
def test_models_that_are_not_alike_at_the_start_are_named_on_both_ranks(reports, case):
    for started, _ in reports:
        assert AT_THE_START[case][2] in started[case], started[case]


@pytest.mark.parametrize("case", LATER)
def test_a_layer_that_one_rank_adds_while_averages_are_in_flight_is_refused_by_all_at_the_same_step(reports, case):
    (_, first), (_, second) = reports
    assert first[case] == second[case]
    assert "parameters that require a gradient must not change" in first[case][0]
