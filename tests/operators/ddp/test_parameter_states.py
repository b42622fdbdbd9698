"""States cut along parameters: any grouping reads what another has written."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import EF21, DeepGradientCompression, ErrorFeedback, PowerSGD, TopK
from operators.ddp.ends import StatesByParameter, is_coordinatewise

SIZES = {"a": 3, "b": 0, "c": 1, "d": 6}
METHOD = DeepGradientCompression(0.5)


def fresh():
    return StatesByParameter(lambda name: METHOD.init(SIZES[name]), SIZES)


def test_starts_where_the_method_starts():
    state = fresh().read(["d", "a"])

    assert {entry: value.tolist() for entry, value in state.items()} == {"u": [0.0] * 9, "v": [0.0] * 9, "step": 0}


@given(order=st.permutations(sorted(SIZES)), cut=st.integers(1, 3))
def test_any_grouping_reads_what_another_has_written(order, cut):
    states = fresh()
    whole = torch.arange(10.0)
    states.write(list(SIZES), {"u": whole, "v": -whole, "step": torch.tensor(7)})
    pieces = dict(zip(SIZES, whole.split(list(SIZES.values())), strict=True))

    for group in (order[:cut], order[cut:]):
        state = states.read(group)
        expected = torch.cat([pieces[name] for name in group])
        assert torch.equal(state["u"], expected)
        assert torch.equal(state["v"], -expected)
        assert state["step"] == 7


def test_saved_states_are_copies_and_come_back():
    states, other = fresh(), fresh()
    states.write(["a", "c"], {"u": torch.ones(4), "v": torch.arange(4.0), "step": torch.tensor(2)})
    saved = states.to_dict()
    other.load_dict(saved)
    saved["a"]["v"].fill_(9)

    for entry, value in states.read(["c", "a"]).items():
        assert torch.equal(other.read(["c", "a"])[entry], value)


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        ({"e": {}}, "'e'; this model has none of that name"),
        ({"a": {"u": torch.zeros(3)}}, r"'a' must have the entries \['step', 'u', 'v'\]; got \['u'\]"),
        ({"a": METHOD.init(4)}, r"'a', u must have the shape and dtype \(3,\), float32; got \(4,\)"),
        ({"a": METHOD.init(3) | {"u": torch.tensor([0.0, float("nan"), 0.0])}}, "must be finite; 'a', u has NaN"),
    ],
)
def test_states_of_another_model_or_method_are_refused(saved, words):
    with pytest.raises(ValueError, match=words):
        fresh().load_dict(saved)


def test_methods_whose_state_no_group_can_share_are_known():
    assert all(is_coordinatewise(method, 7) for method in (ErrorFeedback(), EF21(TopK(k=1)), METHOD))
    assert not is_coordinatewise(PowerSGD(), 7)
