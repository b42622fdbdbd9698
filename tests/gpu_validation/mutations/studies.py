"""Wrong numbers in studies of their own: tau*, laws of stragglers; and wrong transports between real processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from bounds.runtime import Exponential
from gpu_validation.judging.verdict import Comparison, Verdict
from gpu_validation.processes.launch import RankContext, run_ranks
from gpu_validation.records.environment import Environment
from gpu_validation.records.exit_status import MEASUREMENTS
from gpu_validation.records.storage import Record, plain
from gpu_validation.studies.grid.rows import compare
from gpu_validation.studies.grid.study import Preset, Work
from gpu_validation.studies.record_file import StaleResultsError, described, stored
from gpu_validation.studies.smoke import PRESET as SMOKE
from gpu_validation.studies.straggler import PRESET as STRAGGLER
from gpu_validation.studies.straggler import STEP_S
from gpu_validation.studies.tau_star import best_rows, measure_around
from gpu_validation.studies.wire import WirePlan, measure_wire, wire_rows
from operators import QSGD, Identity, Key
from tests.gpu_validation.mutations.bench import Bench
from tests.gpu_validation.mutations.mutation import Mutation
from tests.gpu_validation.mutations.transports import bodies_sent

HANG_TIMEOUT_S = 60.0
LEVEL = 1e-6  # of one row
CASE = STRAGGLER.kinds()["drawn"].text(4, "exponential")


# -- laws of stragglers ------------------------------------------------------------------------------------------
@lru_cache(maxsize=1)
def _drawn() -> Record:
    study = replace(STRAGGLER, cases={4: ("exponential",)}, taus=(1, 4), batches=32)
    return {"unit": CASE, **study.measure(CASE)}


def _predicted(change: Callable[[dict[str, Any]], float]) -> Callable[[Bench], Iterable[Comparison]]:
    def rows(_: Bench) -> list[Comparison]:
        drawn = _drawn()
        taus = [{**case, "predicted_s": change(case)} for case in drawn["taus"]]
        return STRAGGLER.judge([{**drawn, "taus": taus}])

    return rows


def _of_two_workers(at: dict[str, Any]) -> float:
    return Exponential(STEP_S).expected_max(m=2, tau=at["tau"])


# -- tau* --------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1)
def _around() -> list[Record]:
    return [measure_around(block) for block in range(BLOCKS)]


BLOCKS = 2


def tau_star_rows(factor: float) -> list[Comparison]:
    """Return the rows of Theorem 2 on the problem where its tau is the best one, for that tau times a factor."""
    records = [{**r, "claimed": round(factor * r["claimed"])} for r in _around()]
    return best_rows(records, LEVEL)


# -- transports --------------------------------------------------------------------------------------------------
SMALL_SMOKE = replace(
    SMOKE,
    operators=(Identity(), QSGD(levels=16)),
    cells=tuple(replace(cells, taus=(4,), steps=16) for cells in SMOKE.cells),
)
PLAN = WirePlan((Identity(), QSGD(levels=16)), 3000, (1, 2, 3, 2000, 3000, 4000), repeats=2)


def smoke_rows(preset: Preset = SMALL_SMOKE) -> list[Comparison]:
    """Return the rows of ``smoke`` with two real processes."""
    _compile(preset.operators)
    with closing(
        run_ranks(Work(preset, preset.units()), processes=preset.processes, hang_timeout_s=HANG_TIMEOUT_S)
    ) as ranks:
        return compare(list(ranks), false_alarm=preset.false_alarm)


def rows_of_wire(plan: WirePlan = PLAN, processes: int = 2) -> list[Comparison]:
    """Return the rows of ``wire`` without a network of its own."""
    _compile(plan.operators)

    def work(place: RankContext, emit: Any) -> None:
        for record in measure_wire(place, plan):
            if place.rank == 0:
                emit(record)

    with closing(run_ranks(work, processes=processes, hang_timeout_s=HANG_TIMEOUT_S)) as ranks:
        return list(wire_rows(list(ranks)))


def _compile(operators: Iterable[Any]) -> None:
    """Before the processes fork."""
    for operator in operators:
        operator.encode(torch.linspace(-1, 1, 64), key=Key(0))


def _four_times(run: Callable[[], list[Comparison]]) -> Callable[[Bench], list[Comparison]]:
    def rows(_: Bench) -> list[Comparison]:
        with bodies_sent(4):
            return run()

    return rows


# -- provenance --------------------------------------------------------------------------------------------------
def _two_trees(_: Bench) -> list[Comparison]:
    """Return one VIOLATED row if a run refuses to continue records of two uncommitted trees."""
    environment = Environment.here(SMOKE.name, SMOKE.processes, "gloo")
    trees = [replace(environment, commit="0" * 7 + "-dirty", code=code * 16) for code in ("a", "b")]
    heads = [{**plain(tree), "study": described(SMOKE)} for tree in trees]
    with TemporaryDirectory() as folder:
        path = Path(folder) / MEASUREMENTS
        path.write_text(
            "".join(f"{json.dumps(line)}\n{json.dumps({'unit': str(i)})}\n" for i, line in enumerate(heads))
        )
        try:
            stored(path.parent, SMOKE)
        except StaleResultsError:
            about: dict[str, Any] = {"interval": (2.0, 2.0), "bound": 1.0, "side": "tight", "verdict": Verdict.VIOLATED}
            return [Comparison(operator=SMOKE.name, quantity="codes in one file of records", measured=2.0, **about)]
    return []


STUDIES = (
    Mutation("records of two uncommitted trees", "record", _two_trees),
    Mutation("E max of drawn steps x 1.1", "study", _predicted(lambda at: 1.1 * at["predicted_s"])),
    Mutation("E max of drawn steps x .9", "study", _predicted(lambda at: 0.9 * at["predicted_s"])),
    Mutation("E max of two workers for four", "study", _predicted(_of_two_workers)),
    Mutation("mean step in the place of E max", "study", _predicted(lambda _: STEP_S)),
    Mutation("tau* x 2 in its study", "study", lambda _: tau_star_rows(2), costly=True),
    Mutation("tau* x .5 in its study", "study", lambda _: tau_star_rows(0.5), costly=True),
    Mutation("smoke: bodies sent four times", "transport", _four_times(smoke_rows), costly=True),
    Mutation("wire: bodies sent four times", "transport", _four_times(rows_of_wire), costly=True),
)
