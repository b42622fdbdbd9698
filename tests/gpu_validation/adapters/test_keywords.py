"""The keywords of the adapters are those of the averaging."""

import inspect
from typing import get_type_hints

from gpu_validation import PeriodicAveraging
from gpu_validation.adapters.keywords import AveragingKeywords
from gpu_validation.local_sgd.keywords import ScheduledParts


def test_adapters_and_simulated_workers_take_the_keywords_of_the_averaging():
    taken = set(inspect.signature(PeriodicAveraging).parameters) - {"model", "optimizer"}

    assert set(get_type_hints(AveragingKeywords)) == taken - {"schedule"}
    assert set(get_type_hints(ScheduledParts)) == taken - {"process_group", "telemetry"}
