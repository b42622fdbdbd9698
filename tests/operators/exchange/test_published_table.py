"""The published table of bits and errors: what a rank sends a coordinate, and the relative error of the mean."""

import pytest
import torch

from operators import QSGD, TCDQ, Identity, Key
from operators.exchange import mean_of_ranks

QSGD16 = QSGD(levels=16, bucket=512)


def measured(m, d, operator, exchange):
    """(bits that a rank sends a coordinate, relative squared error) of independent Gaussian vectors."""
    vectors = torch.randn(m, d, generator=torch.Generator().manual_seed(m))
    result = mean_of_ranks(list(vectors), operator, exchange=exchange, key=Key(3))
    mean = vectors.double().mean(dim=0)
    return sum(result.sent_bits) / m / d, float((result.mean - mean).square().sum() / mean.square().sum())


@pytest.mark.parametrize(
    ("operator", "m", "exchange", "bits", "nmse", "law"),
    [
        (TCDQ(0.1), 4, "gather", 5.43, 0.09995, 0.1),
        (TCDQ(0.1), 4, "two_shot", 2.71, 0.20986, 0.21),
        (QSGD16, 8, "gather", 16.7, 0.332, 0.333),
        (QSGD16, 8, "two_shot", 4.17, 0.759, 0.777),
    ],
)
def test_bits_and_errors_are_the_published_ones(operator, m, exchange, bits, nmse, law):
    sent, error = measured(m, 100_000, operator, exchange)

    assert sent == pytest.approx(bits, rel=0.005)
    assert error == pytest.approx(nmse, rel=0.015)
    assert error <= 1.015 * law  # of 100 000 coordinates; the table has 400 000


@pytest.mark.parametrize(("m", "gather", "two_shots"), [(4, 3 * 32, 48), (16, 15 * 32, 60), (32, 31 * 32, 62)])
def test_wire_of_two_shots_does_not_grow(m, gather, two_shots):
    """Numbers of binary32: 2 (1 - 1/m) 32 bits, those of a ring, where gathering sends (m - 1) 32."""
    assert measured(m, 1024, Identity(), "gather")[0] == gather
    assert measured(m, 1024, Identity(), "two_shot")[0] == two_shots
