"""The keywords of the adapters are those of the averaging."""

import inspect
from typing import get_type_hints

import pytest
import torch

from gpu_validation import PeriodicAveraging, SimulatedWorkers
from gpu_validation.adapters.diloco import DiLoCo
from gpu_validation.adapters.keywords import AveragingKeywords
from gpu_validation.averaging.settings import _OTHER_WORDS, _PARTS, ScheduledParts
from operators import QSGD


def test_adapters_and_simulated_workers_take_the_keywords_of_the_averaging():
    taken = set(inspect.signature(PeriodicAveraging).parameters) - {"model", "optimizer"}

    assert set(get_type_hints(AveragingKeywords)) == taken - {"schedule"}
    assert set(get_type_hints(ScheduledParts)) == taken - {"process_group", "telemetry"}


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"delay": 4}, r"'delay': delay belongs to a merge rule; use merge=Corrected\(delay=4\)"),
        ({"fragments": 2}, r"use merge=Corrected\(fragments=2\)"),
        ({"local_weight": 0.5}, r"use merge=Overwrite\(local_weight=0.5\)"),
        ({"means": QSGD(4)}, r"an exchange; use exchange=TwoShot\(operator=..., means=QSGD\(levels=4"),
        ({"momentum": 0.9}, r"an outer optimizer; use outer=Nesterov\(lr=..., momentum=0.9\)"),
        ({"clients": 3}, r"a mixing; use mixing=Sampled\(key=..., clients=3\)"),
        ({"ranks_per_node": 8}, r"the membership; use membership=Nodes\(ranks_per_node=8\)"),
        ({"piggyback": True}, r"a pacing; use schedule=Pacing\(schedule=..., piggyback=True\)"),
        ({"overlap": True}, r"use merge=Corrected\(\)$"),
        ({"exchange_operator": None}, r"use exchange=TwoShot\(operator, means\)$"),
        ({"nodes": 2}, r"use membership=Nodes\(ranks_per_node\)$"),
        ({"quorum": 2}, r"use membership=Quorum\(...\)$"),
        ({"tau": 8}, "use schedule=$"),
        ({"shedule": 8}, "use schedule$"),
        ({"zzz": 8}, "it takes model"),
    ],
)
@pytest.mark.parametrize("kind", [PeriodicAveraging, SimulatedWorkers])
def test_an_unknown_keyword_names_the_part_that_takes_it(kind, keywords, words):
    model = torch.nn.Linear(1, 1)
    with pytest.raises(TypeError, match=words):
        kind(model if kind is PeriodicAveraging else [model], **keywords)


def test_a_keyword_passed_by_position_is_named():
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TypeError, match="takes model and optimizer by position; got 4 values: name the others"):
        PeriodicAveraging(model, optimizer, 8, QSGD(16), delay=4)


def test_adapters_name_the_part_in_the_words_of_their_library():
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TypeError, match=r"DiLoCo has no keyword 'fragment_sync_delay': use merge=Overwrite\(delay"):
        DiLoCo(model, optimizer, sync_every=2, fragment_sync_delay=1)
    with pytest.raises(TypeError, match=r"use sync_every=Pacing\(schedule=..., clock=...\)"):
        DiLoCo(model, optimizer, sync_every=2, clock=None)


def test_every_other_word_leads_to_a_keyword_that_exists():
    taken = {*inspect.signature(PeriodicAveraging).parameters}
    assert {remedy.partition("=")[0] for remedy in _OTHER_WORDS.values()} | set(_PARTS) <= taken
    assert not taken & set(_OTHER_WORDS)
