"""A study on an engine: what was stopped on one goes on under another, and a lost worker costs one unit at most."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gpu_validation.cli import main
from gpu_validation.records.exit_status import MEASUREMENTS, UsageError
from gpu_validation.records.storage import read_lines
from gpu_validation.studies import all_presets
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.engines.dask import Dask
from gpu_validation.studies.engines.engine import Engine, EngineLost, Job, Local, WorkerLost
from gpu_validation.studies.engines.slurm import Slurm
from gpu_validation.studies.record_file import StaleResultsError
from gpu_validation.studies.study import Study
from ratedist.interfaces.exit_status import FAILED, INTERRUPTED, OK, UNFINISHED, USAGE

from .test_study import Squares

pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[3]
SIX = (1, 2, 3, 4, 5, 6)
# in a module that workers can import; unit 3 kills its own process, or its worker, as long as the marker is missing
OUTSIDE = """
import os, signal
from dataclasses import dataclass
from pathlib import Path
from gpu_validation.studies.study import Study


@dataclass(frozen=True)
class Outside(Study):
    marker: str = ""
    deaths: int = 1
    of_worker: bool = False
    name = "outside"
    description = "squares of numbers"
    minutes = 0.01

    def units(self):
        return [str(n) for n in range(1, 5)]

    def measure(self, unit):
        for death in range(self.deaths if self.marker and unit == "3" else 0):
            marker = Path(f"{self.marker}-{death}")
            if not marker.exists():
                marker.touch()
                os.kill(os.getppid() if self.of_worker else os.getpid(), signal.SIGKILL)
                signal.pause()
        return {"square": int(unit) ** 2, "pair": (int(unit), float("inf"))}

    def judge(self, records):
        return []

    def figures(self, records):
        return []


PRESET = Outside()
"""


class Scripted(Engine):
    """Carries calls out here, the last one that was begun first; loses and interrupts as it is told."""

    def __init__(self, jobs=3, losing=(), interrupted_after=None, loss=WorkerLost):
        self.jobs, self.shares_machines, self.loss = jobs, jobs > 1, loss
        self.losing, self.interrupted_after = list(losing), interrupted_after
        self.begun, self.under_way, self.cancelled, self.most, self.closed = [], [], [], 0, False

    def submit(self, call):
        job = ScriptedJob(self, call)
        self.begun.append(job.unit)
        self.under_way.append(job)
        self.most = max(self.most, len(self.under_way))
        return job

    def close(self):
        self.closed = True


class ScriptedJob(Job):
    def __init__(self, engine, call):
        import pickle

        self.engine, self.call = engine, call
        self.unit = pickle.loads(call.pickled)[1][1]

    def done(self):
        if self.engine.interrupted_after == 0:
            raise KeyboardInterrupt
        return self is self.engine.under_way[-1]

    def answer(self):
        self.engine.under_way.remove(self)
        if self.engine.interrupted_after is not None:
            self.engine.interrupted_after -= 1
        if self.unit in self.engine.losing:
            self.engine.losing.remove(self.unit)
            raise self.engine.loss("its process was killed by SIGKILL")
        return self.call()

    def cancel(self):
        self.engine.cancelled.append(self.unit)


def lines_of(folder, name="squares"):
    return [{k: v for k, v in line.items() if k != "took_s"} for line in read_lines(folder / name / MEASUREMENTS)]


def units_of(folder, name="squares"):
    return [line for line in lines_of(folder, name) if "unit" in line]


# -- the order of work, without processes ----------------------------------------------------------------------
def test_units_come_in_any_order_and_the_file_is_that_of_a_run_here(tmp_path):
    engine = Scripted(jobs=3)
    carry_out(Squares(numbers=SIX), tmp_path / "here")
    outcome = carry_out(Squares(numbers=SIX), tmp_path / "engine", engine=engine)

    assert outcome.exit_code == OK
    assert engine.begun != [str(n) for n in SIX] or engine.most == 3
    assert engine.most == 3
    assert engine.closed
    assert lines_of(tmp_path / "engine") == lines_of(tmp_path / "here")
    assert [r["unit"] for r in outcome.records] == [str(n) for n in SIX]


def test_ctrl_c_cancels_what_is_under_way_and_keeps_the_rest_and_a_run_here_goes_on(tmp_path):
    engine = Scripted(jobs=3, interrupted_after=2)
    outcome = carry_out(Squares(numbers=SIX), tmp_path, engine=engine)

    assert outcome.exit_code == INTERRUPTED
    assert len(units_of(tmp_path)) == 2
    assert len(engine.cancelled) == 3
    assert engine.closed
    again = Squares(numbers=SIX)
    assert carry_out(again, tmp_path).exit_code == OK
    assert len(again.calls) == 4
    carry_out(Squares(numbers=SIX), tmp_path / "whole")
    assert units_of(tmp_path) == units_of(tmp_path / "whole")


def test_a_lost_worker_costs_its_unit_a_second_try(tmp_path):
    engine = Scripted(losing=["2"])

    assert carry_out(Squares(numbers=SIX), tmp_path, engine=engine).exit_code == OK
    assert sorted(engine.begun) == ["1", "2", "2", "3", "4", "5", "6"]
    assert [r["unit"] for r in units_of(tmp_path)] == [str(n) for n in SIX]


def test_a_unit_that_loses_two_workers_ends_the_run_and_the_next_one_does_exactly_what_is_missing(tmp_path):
    engine = Scripted(jobs=6, losing=["2", "2"])
    outcome = carry_out(Squares(numbers=SIX), tmp_path, engine=engine)

    assert outcome.exit_code == FAILED
    assert "unit 2 has lost 2 workers: its process was killed by SIGKILL; 5 of 6 units" in outcome.message
    again = Scripted()
    assert carry_out(Squares(numbers=SIX), tmp_path, engine=again).exit_code == OK
    assert again.begun == ["2"]


def test_an_engine_that_is_lost_ends_the_run_at_once_in_its_own_words(tmp_path):
    engine = Scripted(jobs=2, losing=["1", "2"], loss=EngineLost)
    outcome = carry_out(Squares(numbers=SIX), tmp_path, engine=engine)

    assert outcome.exit_code == FAILED
    assert outcome.message.startswith("its process was killed by SIGKILL; 0 of 6 units were measured")
    assert engine.begun == ["1", "2"]
    assert engine.closed


def test_an_engine_that_nothing_is_left_for_is_closed_too(tmp_path):
    carry_out(Squares(), tmp_path)
    engine = Scripted()

    assert carry_out(Squares(), tmp_path, engine=engine).exit_code == OK
    assert engine.begun == []
    assert engine.closed


def test_a_unit_that_raises_ends_the_run_in_words_and_no_other_is_begun(tmp_path):
    engine = Scripted(jobs=2)
    outcome = carry_out(Squares(numbers=SIX, failing={"2": TypeError("mauve")}), tmp_path, engine=engine)

    assert outcome.exit_code == FAILED
    assert outcome.message.startswith("unit 2 failed: TypeError: mauve; 1 of 6 units were measured")
    assert engine.begun == ["1", "2"]


def test_time_is_up_and_no_further_unit_is_begun_but_one_always_is(tmp_path):
    engine = Scripted()

    assert carry_out(Squares(numbers=SIX), tmp_path, engine=engine, seconds=0).exit_code == UNFINISHED
    assert engine.begun == ["1"]


@dataclass(frozen=True)
class Summing(Squares):
    """Every number adds the sum of the squares so far."""

    before_it: int = 0
    careless: bool = False

    def __repr__(self):
        return "Summing()"

    def before(self, unit):
        return () if self.careless else super().before(unit)

    def with_records(self, records, folder):
        return replace(self, before_it=sum(r["square"] for r in records))

    def measure(self, unit):
        return {"square": self.before_it + int(unit)}


def test_units_that_rest_on_earlier_ones_wait_for_them(tmp_path):
    carry_out(Summing(numbers=SIX), tmp_path / "here")
    engine = Scripted()
    carry_out(Summing(numbers=SIX), tmp_path / "engine", engine=engine)
    carry_out(Summing(numbers=SIX, careless=True), tmp_path / "careless", engine=Scripted())

    assert engine.most == 1
    assert units_of(tmp_path / "engine") == units_of(tmp_path / "here")
    assert units_of(tmp_path / "careless") != units_of(tmp_path / "here"), "the waiting makes the difference"


def test_a_worker_with_other_libraries_is_refused(tmp_path, monkeypatch):
    from gpu_validation.records.environment import Environment

    class Elsewhere(Environment):
        @classmethod
        def here(cls, *about):
            there = Environment.here(*about)
            return replace(there, versions={**there.versions, "torch": "0.1"})

    monkeypatch.setattr("gpu_validation.studies.on_engine.Environment", Elsewhere)

    with pytest.raises(StaleResultsError, match=r"and this is torch 0\.1"):
        carry_out(Squares(), tmp_path, engine=Scripted())
    assert units_of(tmp_path) == []


# -- refusals --------------------------------------------------------------------------------------------------
def test_a_study_whose_seconds_count_refuses_to_share_a_machine(tmp_path):
    study = all_presets()["wire"]

    with pytest.raises(UsageError, match=r"^wire measures seconds, .* give --jobs 1, got 3$"):
        carry_out(study, tmp_path, engine=Scripted(jobs=3))
    assert not (tmp_path / "wire").exists()


def test_the_studies_that_measure_seconds_are_those_that_the_makefile_runs_alone():
    text = (ROOT / "Makefile").read_text()
    alone, together = (
        set(re.findall(rf"^{name} *:= (.*)$", text, re.MULTILINE)[0].split()) for name in ("TIMED", "UNTIMED")
    )
    timed = {name for name, study in all_presets().items() if study.measures_seconds}

    assert alone <= timed
    assert not together & timed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("smoke", "--on", "local"), "smoke is carried out by one set of processes"),
        (("byzantine", "--jobs", "2"), "--jobs 2 is for --on"),
        (("byzantine", "--on", "local", "--jobs", "0"), "--jobs must be >= 1; got 0"),
        (("straggler", "--on", "local", "--jobs", "2"), "straggler measures seconds"),
    ],
)
def test_what_no_engine_can_do_is_one_sentence_and_status_2(arguments, sentence, tmp_path, capsys):
    assert main(["run", *arguments, "--out", str(tmp_path)]) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line


@pytest.mark.thorough
def test_what_rests_on_records_is_said_by_the_study_or_taken_for_all_earlier_ones():
    for study in all_presets().values():
        units = list(study.units())
        place = {unit: i for i, unit in enumerate(units)}
        for unit in units[:: max(1, len(units) // 3)]:
            assert all(place[other] < place[unit] for other in study.before(unit)), unit
        if type(study).with_records is not Study.with_records:
            assert study.before(units[-1])


# -- real workers ----------------------------------------------------------------------------------------------
@pytest.fixture
def outside(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/outside_squares.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.delitem(__import__("sys").modules, "outside_squares", raising=False)
    import outside_squares

    return outside_squares.Outside


def interrupting(after):
    """Ctrl-C when so many units have been told."""
    told = []

    def progress(unit):
        told.append(unit)
        if len(told) == after:
            raise KeyboardInterrupt

    return progress


@pytest.mark.thorough
def test_a_study_moves_from_engine_to_engine_and_its_records_are_those_of_one_run(outside, dask_cluster, tmp_path):
    study, jobs, moved = outside(), tmp_path / "jobs", tmp_path / "moved"
    assert carry_out(study, moved, seconds=0).exit_code == UNFINISHED
    for number, engine in ((2, Slurm(2, jobs, cluster="local")), (3, Dask(2))):
        assert carry_out(study, moved, engine=engine, progress=interrupting(number)).exit_code == INTERRUPTED
        assert len(units_of(moved, "outside")) == number
    assert carry_out(study, moved, engine=Local(1, jobs)).exit_code == OK
    carry_out(study, tmp_path / "whole")

    assert units_of(moved, "outside") == units_of(tmp_path / "whole", "outside")
    heads = [line for line in lines_of(moved, "outside") if "unit" not in line]
    assert all(head == lines_of(tmp_path / "whole", "outside")[0] for head in heads)
    assert not jobs.exists()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["local", "submitit", "dask"])
def test_a_killed_process_loses_one_unit_at_most(outside, tmp_path, kind, request):
    if kind == "dask":
        request.getfixturevalue("dask_scheduler").start_worker("--nworkers", "2")  # which their nannies start anew
    of_worker = kind == "dask"

    def engine():
        jobs = tmp_path / "jobs"
        if kind == "local":
            return Local(2, jobs)
        return Slurm(2, jobs, cluster="local") if kind == "submitit" else Dask(2)

    once = outside(marker=str(tmp_path / "once"), of_worker=of_worker)
    assert carry_out(once, tmp_path / "once-killed", engine=engine()).exit_code == OK
    twice = outside(marker=str(tmp_path / "twice"), deaths=2, of_worker=of_worker)
    outcome = carry_out(twice, tmp_path / "twice-killed", engine=engine())

    assert outcome.exit_code == FAILED
    assert "unit 3 has lost 2 workers" in outcome.message
    before = {r["unit"] for r in units_of(tmp_path / "twice-killed", "outside")}
    assert "3" not in before
    told = []
    assert carry_out(twice, tmp_path / "twice-killed", engine=engine(), progress=told.append).exit_code == OK
    assert set(told[len(before) :]) == set(twice.units()) - before
    assert units_of(tmp_path / "twice-killed", "outside") == units_of(tmp_path / "once-killed", "outside")


@pytest.mark.thorough
def test_the_command_runs_on_dask_and_says_in_one_sentence_that_the_scheduler_has_gone(outside, dask_cluster, tmp_path):
    def run(name, *where):
        command = [sys.executable, "-m", "gpu_validation", "run", "outside_squares:PRESET", "--seed", "0"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "modules"), str(ROOT)])}
        options = [*where, "--out", str(tmp_path / name)]
        return subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=200, check=False, env=environment
        )

    done = run("through-dask", "--on", "dask")
    assert (done.returncode, done.stderr) == (OK, "")
    assert main(["run", "outside_squares:PRESET", "--seed", "0", "--out", str(tmp_path / "here")]) == OK
    assert lines_of(tmp_path / "through-dask", "outside") == lines_of(tmp_path / "here", "outside")

    module = tmp_path / "modules/outside_squares.py"
    ending = f'[os.kill({dask_cluster.scheduler.pid}, signal.SIGKILL), signal.pause()] if unit == "2" else {{'
    module.write_text(module.read_text().replace('return {"square"', f'return {ending}"square"'))
    done = run("ended", "--on", "dask", "--jobs", "1")
    assert done.returncode == FAILED
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gpu-validation: the Dask scheduler at {dask_cluster.address} has gone: start it")
    assert "1 of 4 units were measured" in line
