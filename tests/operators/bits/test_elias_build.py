"""Codes of many numbers are those of each."""

import numpy as np

from operators.bits import elias


def test_many_codes_are_those_of_each_number():
    powers = 2 ** np.arange(41)
    numbers = np.unique(np.concatenate([np.arange(1, 3000), powers, powers[2:] - 1, powers[:-1] + 1]))

    codes, lengths = elias.build_each(numbers)

    assert list(zip(codes.tolist(), lengths.tolist(), strict=True)) == [
        tuple(map(int, elias.build(int(n)))) for n in numbers
    ]
