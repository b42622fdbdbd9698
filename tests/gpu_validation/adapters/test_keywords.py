"""The keywords of the adapters are those of the averaging."""

import inspect

from gpu_validation import PeriodicAveraging
from gpu_validation.adapters.keywords import AveragingKeywords


def test_adapters_hand_on_every_setting_that_they_can():
    taken = set(inspect.signature(PeriodicAveraging).parameters)

    assert set(AveragingKeywords.__annotations__) == taken - {"model", "optimizer", "schedule", "uneven", "quorum"}
