"""Hard threshold against a scalar oracle, its absolute error, and accumulated gradients that get through."""

import numpy as np
import pytest
import torch

from operators import ErrorFeedback, HardThreshold, Key, TopK

from ..oracles import assert_equals_oracle, refuses_payloads


def oracle(x, operator, key, bitstring):
    """Count, then what top-k sends for that many."""
    most = max(1, int(np.ceil(operator.most * len(x))))
    passing = [i for i in range(len(x)) if abs(x[i]) >= np.float32(operator.threshold)]
    keep = sorted(sorted(passing, key=lambda i: (-abs(x[i]), i))[:most])
    head = f"{len(keep):0{most.bit_length()}b}"
    kept = set(keep)
    rest = bitstring(TopK(k=len(keep)).encode(x, key=key)) if keep else ""
    return head + rest, [float(v) if i in kept else 0.0 for i, v in enumerate(x)]


@pytest.mark.parametrize("operator", HardThreshold.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, key, bitstring):
    assert_equals_oracle(operator, vectors, key, lambda x: oracle(x, operator, key, bitstring))


def test_magnitudes_count_not_signed_values(key):
    assert HardThreshold(1.0)(np.array([-5.0, 0.5, 2.0]), key=key).tolist() == [-5, 0, 2]


def test_squared_error_is_below_d_threshold_squared(vectors, d, key):
    for x in vectors:
        error = (HardThreshold(0.5)(x, key=key).astype(float) - x) ** 2
        assert error.sum() < d * 0.25


def test_zero_vector_costs_the_count_only(key):
    assert HardThreshold(0.5).encode(np.zeros(1000), key=key).bits == 10


def test_accumulated_gradients_all_get_through_in_the_end():
    feedback, x = ErrorFeedback(HardThreshold(1.0)), torch.tensor([0.03, -0.4, 2.0])
    state, total = feedback.init(3), torch.zeros(3)
    for t in range(100):
        state, message = feedback.encode(state, x, key=Key(0, step=t))
        total += feedback.decode({}, message, d=3)[1]
    assert state["residual"].abs().max() < 1
    assert torch.allclose(total, 100 * x, atol=1.01)


@pytest.mark.parametrize("arguments", [{"threshold": 0.0}, {"threshold": -1.0}, {"most": 0.0}, {"most": 2.0}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match="must satisfy"):
        HardThreshold(**arguments)


ONE = "00111111100000000000000000000000"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0000",  # nothing and more
        "111" + "0" * 200,  # 7 of 4
        "001" + "00000" + "0" + ONE[:-1],
        "001" + "00000" + "0" + ONE + "0",
        "001" + "00000" + "0" + "0" * 32,  # a value below the threshold
    ],
)
def test_payload_that_nobody_sends_is_refused(text, message_of):
    refuses_payloads(HardThreshold(0.5), 4, message_of(text))
