"""Real processes that exchange real messages: the report holds for honest ones and accuses the others."""

import json

import numpy as np
import pytest
import torch

from bounds.schedules import AdaComm
from gpu_validation.averaging.mixing import Sampled, ring
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.judging.verdict import Evidence, Verdict
from gpu_validation.telemetry import Known, read_folder, report_of
from operators import ErrorFeedback, Key, ScaledSign, TopK
from tests.gpu_validation.ranks import in_ranks
from tests.gpu_validation.telemetry.dishonest import Boasting, Halved, HalvedSigns, Honest, Short, ShortSigns

pytestmark = pytest.mark.timeout(120)
D, ROUNDS = 60, 120


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile once, here: forked processes inherit it."""
    for operator in (Honest(), ScaledSign(), TopK(fraction=0.2)):
        operator(np.linspace(-1, 1, D, dtype=np.float32), key=Key(0))


def steps(averaging, model, optimizer, rank, number):
    """Local steps on a noisy quadratic."""
    draw = torch.Generator().manual_seed(rank)
    for _ in range(number):
        optimizer.zero_grad()
        noise = torch.randn(model.weight.shape, generator=draw)
        loss = (0.5 * model.weight**2 + 0.1 * noise * model.weight).sum()
        loss.backward()
        optimizer.step()
        averaging.step(loss)


def run(place, number=ROUNDS, *, buffers=0, d=D, dtype=torch.float32, **settings):
    model = torch.nn.Linear(d, 1, bias=False, dtype=dtype)
    if buffers:
        model.register_buffer("statistics", torch.zeros(buffers))
    torch.nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    averaging = PeriodicAveraging(model, optimizer, key=Key(1), **settings)
    steps(averaging, model, optimizer, place.rank, number)
    return averaging, model


def reported(folder, operators):
    """The reports of runs of two real processes, one an operator, from their folders."""

    def work(place):
        for operator in operators:
            number = ROUNDS if isinstance(operator, Honest) and not isinstance(operator, ShortSigns) else 10
            run(place, number, operator=operator, schedule=1, telemetry=folder / type(operator).__name__)

    in_ranks(work, processes=2)
    return {operator: report_of(read_folder(folder / type(operator).__name__)) for operator in operators}


def row(report, words):
    (found,) = [c for c in report.comparisons if words in c.quantity and not c.structural]
    return found


@pytest.mark.thorough
def test_honest_operators_hold_and_wrong_ones_are_accused(tmp_path):
    accused = {
        Honest(): set(),
        ScaledSign(): set(),
        Halved(): {"<C(x), x>/|x|^2, mean"},
        Boasting(): {"distortion, mean"},
        Short(): {"codec bits, mean", "codec bits, longest message"},
        ShortSigns(): {"codec bits, every message", "bytes sent", "bytes received"},
        HalvedSigns(): {"|<C(x), C(x) - x>|/|x|^2, largest", "distortion"},
    }
    reports = reported(tmp_path, list(accused))

    for operator, quantities in accused.items():
        found = {c.quantity for c in reports[operator].accused}
        assert bool(found) == bool(quantities), (operator, found)
        assert all(any(one.startswith(q) for q in quantities | {"bytes", "codec bits"}) for one in found), found
        assert not quantities or any(one.startswith(tuple(quantities)) for one in found)
    honest = reports[Honest()]
    direction, error = row(honest, "<C(x), x>"), row(honest, "distortion, mean")
    assert (direction.n, error.n) == (2 * ROUNDS, 2 * ROUNDS)
    assert direction.evidence is Evidence.INFORMATIVE
    assert error.verdict is Verdict.HOLDS
    assert error.evidence is Evidence.INFORMATIVE
    assert honest.compressor.error.value == pytest.approx(error.measured)
    assert 0 < honest.compressor.least_bits < honest.compressor.bits.value
    assert 0 < honest.compressor.least_error < honest.compressor.error.value


MODES = {
    "whole": {"schedule": 2, "buffers": 3},
    "adapting": {"schedule": AdaComm(tau_0=4, interval_s=0.01), "operator": ScaledSign(), "buffers": 3},
    "memory": {"schedule": 2, "operator": ErrorFeedback(TopK(fraction=0.2))},
    "sampled": {"schedule": 2, "mixing": Sampled(clients=2, key=Key(3)), "operator": ScaledSign()},
    "sampled models": {"schedule": 2, "mixing": Sampled(clients=2, key=Key(3))},
    "momentum": {"schedule": 2, "operator": ScaledSign(), "outer": BlockMomentum(0.5)},
    "gossip": {"schedule": 2, "mixing": ring(3)},
    "piggyback": {"schedule": Pacing(AdaComm(tau_0=4, interval_s=0.01), piggyback=True)},
    "shards": {"schedule": 4, "d": 100_000},
    "shards of half precision": {"schedule": 4, "d": 200_000, "dtype": torch.bfloat16},
}
UNPREDICTED = ("gossip",)


def test_bytes_are_those_predicted_in_every_mode_both_ways_and_ranks_agree(tmp_path):
    def work(place):
        for name, settings in MODES.items():
            run(place, 8, telemetry=tmp_path / name, **settings)

    in_ranks(work, processes=3)

    for name in MODES:
        report = report_of(read_folder(tmp_path / name))
        assert not report.accused, (name, [c.quantity for c in report.accused])
        counted = [c for c in report.comparisons if c.quantity.endswith("whole run")]
        if name in UNPREDICTED:
            assert not counted
            assert "cannot be predicted" in str(report)
        else:
            assert len(counted) == 2
            assert all(c.verdict is Verdict.HOLDS and c.measured > 0 for c in counted), name
            assert report.traffic.sent_bytes == report.traffic.expected_sent_bytes
        assert report.ranks == (0, 1, 2)
        json.loads(report.to_json())
        assert max(map(len, str(report).splitlines())) <= 140


def test_telemetry_changes_no_number_of_a_run_and_no_byte(tmp_path):
    def work(place):
        ends = []
        for telemetry in (False, True, tmp_path / "runs"):
            averaging, model = run(place, 20, operator=Honest(), schedule=3, telemetry=telemetry)
            ends.append((model.weight.detach().clone(), averaging.transport.payload_bytes))
        return ends

    for ends in in_ranks(work, processes=2):
        models, sent = zip(*ends, strict=True)
        assert (models[0] == models[1]).all()
        assert (models[0] == models[2]).all()
        assert sent[0] == sent[1] == sent[2] > 0


def test_one_rank_may_keep_telemetry_alone_and_says_what_it_cannot_know():
    def work(place):
        averaging, _ = run(place, 20, schedule=2, telemetry=place.rank == 1)
        return str(averaging.report(known=Known(L=1.0, sigma2=0.6, gap=30.0, time_s=10.0))) if place.rank else ""

    text = in_ranks(work, processes=2)[1]

    assert "reporting: 1" in text
    assert "OUT_OF_SCOPE  averaged models, rounds that differ" in text
    assert "only one rank has reported" in text
    assert "tau_star: tau = " in text


@pytest.mark.parametrize(("size", "counted"), [(0.0, 0), (1e-44, 0), (1e-36, 5), (1.0, 5)])
def test_movements_beyond_the_reach_of_claims_are_not_held_against_them(size, counted):
    def work(place):
        model = torch.nn.Linear(D, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        averaging = PeriodicAveraging(model, operator=ScaledSign(), telemetry=True)
        for _ in range(5):
            with torch.no_grad():
                model.weight.fill_(0.0 if float(model.weight[0, 0]) else size)
            averaging.step()
        report = averaging.report()
        return len(report.accused), 0 if report.compressor is None else report.compressor.error.n

    assert in_ranks(work, processes=1) == [(0, counted)]


def test_a_report_without_telemetry_is_refused():
    def work(place):
        averaging, _ = run(place, 2)
        with pytest.raises(ValueError, match="a report needs telemetry: pass telemetry=True"):
            averaging.report()
        return True

    assert in_ranks(work, processes=1) == [True]


def test_ranks_with_other_models_after_an_averaging_are_told(tmp_path):
    """The averaging is right, but somebody writes into one rank's model behind its back."""

    def work(place):
        averaging, model = run(place, 4, schedule=1, telemetry=tmp_path)
        if place.rank == 1:
            load = averaging._worker._flat.load

            def broken(vector):
                load(vector)
                model.weight.data[0, 0] += 1e-3

            averaging._worker._flat.load = broken
        averaging.step()

    in_ranks(work, processes=2)

    found = {row.quantity: row.measured for row in report_of(read_folder(tmp_path)).accused}
    assert found == {"averaged models, rounds that differ": 1, "averagings that are not the mean of the messages": 1}


def test_drift_is_that_of_the_models_with_an_unbiased_operator_too(tmp_path):
    """Ranks whose movements are known: opposite ones in half the coordinates."""

    def work(place):
        for name, operator in (("whole", None), ("sparse", Honest())):
            model = torch.nn.Linear(D, 1, bias=False)
            torch.nn.init.ones_(model.weight)
            averaging = PeriodicAveraging(model, operator=operator, key=Key(2), telemetry=tmp_path / name)
            sign = torch.ones(D)
            sign[::2] = 1 - 2 * place.rank
            for _ in range(16):
                with torch.no_grad():
                    model.weight += 0.01 * sign
                averaging.step()

    in_ranks(work, processes=2)

    whole, sparse = (report_of(read_folder(tmp_path / name)).drift for name in ("whole", "sparse"))
    assert whole.away == pytest.approx(0.01 * 2**-0.5 / 1.05, rel=0.1), "half of the coordinates go apart"
    assert sparse.away == pytest.approx(whole.away, rel=0.5)
    assert sparse.kept == pytest.approx(0.5, abs=0.25)
    assert not sparse.compressed
