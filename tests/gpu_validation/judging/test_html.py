"""The report's text of what a row would have noticed, for numbers of any library."""

from types import SimpleNamespace

import numpy as np
import pytest

from gpu_validation.judging.html import noticed_text


@pytest.mark.parametrize("number", [float, np.float64])
@pytest.mark.parametrize(
    ("factors", "text"),
    [((0.5, 2.0), "< 0.5 or > 2"), ((0.0, 2.0), "> 2"), ((0.5, np.inf), "< 0.5"), ((0.0, np.inf), "none")],
)
def test_factors_that_a_row_would_have_noticed_are_shown(number, factors, text):
    below, above = map(number, factors)
    row = SimpleNamespace(noticed=(below, above), structural=False)

    assert noticed_text(row) == text
