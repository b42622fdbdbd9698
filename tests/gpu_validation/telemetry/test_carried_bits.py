"""A compressor of one's own: the report counts the bits that it states, and the bytes that really travel."""

import pytest
import torch

from gpu_validation.averaging.exchange.parts import Gather, TwoShot
from gpu_validation.averaging.membership.parts import Nodes
from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.judging.verdict import Verdict
from gpu_validation.telemetry import read_folder, report_of
from operators import ErrorFeedback, Key, own
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
D, TAU, ROUNDS, STATED = 60, 2, 6, 16  # bits per coordinate; the output travels besides in 32
SETTINGS = {
    "gather": (2, Gather, {}),
    "two shots": (3, TwoShot, {}),
    "fragments": (2, Gather, {"merge": Corrected(delay=1, fragments=2)}),
    "nodes": (4, Gather, {"membership": Nodes(2)}),
}


def half(x):
    return x.half().float()


def work(place, folder, exchange, given):
    model = torch.nn.Linear(D, 1, bias=False)
    averaging = PeriodicAveraging(model, schedule=TAU, exchange=exchange, key=Key(1), telemetry=folder, **given)
    accounts = []
    for step in range(TAU * ROUNDS):
        with torch.no_grad():
            model.weight += torch.randn(1, D, generator=torch.Generator().manual_seed(10 * step + place.rank))
        accounts += [averaging.step()]
    return [account.bits[place.rank] - account.carried_bits for account in accounts if account]


def check_bits(name, operator, folder):
    processes, exchange, given = SETTINGS[name]
    counted = in_ranks(lambda place: work(place, folder, exchange(operator), given), processes)
    sent = STATED * D // (2 if name == "nodes" else 1)  # a rank's shard of the node's movement
    assert [bits for rounds in counted for bits in rounds] == [sent] * (ROUNDS * processes)
    report = report_of(read_folder(folder))
    assert report.compressor.bits.value == sent
    assert f"{STATED} per coordinate" in str(report)
    assert [row for row in report.comparisons if row.verdict is Verdict.VIOLATED] == []
    return report


def test_stated_bits_count_and_bytes_are_those_that_travel(tmp_path):
    report = check_bits("gather", own(half, bits=STATED), tmp_path)

    assert report.compressor.declared_bits == STATED * D
    promised = [row for row in report.comparisons if row.quantity == "bytes sent, by the operator's size"]
    assert [row.verdict for row in promised] == [Verdict.HOLDS]
    assert report.traffic.sent_bytes > (32 + STATED) * D / 8


@pytest.mark.thorough
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("operator", [own(half, bits=STATED), ErrorFeedback(own(half, bits=STATED))])
def test_stated_bits_count_in_every_exchange(name, operator, tmp_path):
    check_bits(name, operator, tmp_path)
