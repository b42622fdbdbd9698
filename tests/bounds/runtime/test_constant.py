import numpy as np

from bounds.runtime import Constant


def test_nothing_varies():
    law = Constant(0.7)
    assert {law.expected_max(m=m, tau=tau) for m in (1, 9) for tau in (1, 50)} == {0.7}
    assert law.expected_max_above(2.0, m=3) == 2.0
    assert law.sample(np.random.default_rng(0), (2, 2)).tolist() == [[0.7, 0.7], [0.7, 0.7]]
    assert law.sf([0.6, 0.7]).tolist() == [1.0, 0.0]
