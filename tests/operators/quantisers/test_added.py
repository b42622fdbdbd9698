"""The sum of a few numbers: numba's own, and quick to load."""

import os
import subprocess
import sys

import numpy as np
import pytest

from operators.compilation import jit
from operators.quantisers.lloyd_max import added

SEND = """
import sys, torch
from operators import Key, parse
for text in ("drive", "eden:1", "rabitq:1", "turboquant:1"):
    parse(text).encode(torch.linspace(-1, 1, 1000), key=Key(0))
sys.stdout.write(str("numba.np.arraymath" in sys.modules or "scipy.linalg" in sys.modules))
"""


@jit
def numbas(numbers):
    return numbers.sum()


def test_it_is_numbas_sum_bit_for_bit():
    numbers = 10.0 ** np.random.default_rng(0).integers(-20, 20, (200, 8)) * np.array([1, -1, 1, -1, 1, 1, 1, -1])
    assert [added(row) for row in numbers] == [numbas(row) for row in numbers]
    assert any(added(row) != added(np.sort(row)) for row in numbers), "no order would be seen"


@pytest.mark.thorough
def test_a_process_that_compiles_nothing_loads_no_blas(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    for _ in range(2):  # the first may compile, for which numba loads all that it has
        sent = subprocess.run(
            [sys.executable, "-c", SEND], env=environment, capture_output=True, text=True, timeout=200
        )
        assert sent.returncode == 0, sent.stderr
    assert sent.stdout == "False"
