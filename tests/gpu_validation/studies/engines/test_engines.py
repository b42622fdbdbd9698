"""An engine carries out calls: an answer comes back, a killed worker is told, a cancelled one leaves no process."""

import os
import signal
import sys
import time

import pytest

from gpu_validation.records.exit_status import UsageError
from gpu_validation.studies.engines.dask import Dask
from gpu_validation.studies.engines.engine import ENGINES, Call, Local, WorkerLost
from gpu_validation.studies.engines.named import engine_named
from gpu_validation.studies.engines.slurm import Slurm

pytestmark = pytest.mark.timeout(120)
KINDS = {
    "local": Local,
    "submitit": lambda jobs, folder: Slurm(jobs, folder, cluster="local"),
    "dask": lambda jobs, folder: Dask(jobs),
}


@pytest.fixture(params=[pytest.param(name, marks=() if name == "local" else pytest.mark.thorough) for name in KINDS])
def engine(request, tmp_path):
    if request.param == "dask":
        request.getfixturevalue("dask_cluster")
    engine = KINDS[request.param](2, tmp_path / "jobs")
    yield engine
    engine.close()


def wait(ready):
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_call_is_answered_by_another_process(engine, tmp_path):
    jobs = [engine.submit(Call.of(divmod, 7, 2)), engine.submit(Call.of(os.getpid))]
    for job in jobs:
        wait(job.done)

    assert jobs[0].answer() == (3, 1)
    assert jobs[1].answer() != os.getpid()
    engine.close()
    assert not (tmp_path / "jobs").exists()


def test_a_killed_worker_is_told_with_the_signal_or_the_job(engine):
    job = engine.submit(Call.of(signal.raise_signal, signal.SIGKILL))
    wait(job.done)

    with pytest.raises(WorkerLost, match=r"SIGKILL|left no answer"):
        job.answer()


def test_a_cancelled_job_leaves_no_process(engine, tmp_path):
    path = tmp_path / "pid"
    words = f"import os, time; open({str(path)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    job = engine.submit(Call.of(exec, words))
    wait(lambda: path.exists() and path.read_text())
    job.cancel()

    wait(lambda: not os.path.exists(f"/proc/{path.read_text()}"))
    wait(job.done)


def test_a_worker_that_cannot_read_its_call_is_lost_and_says_why(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone/vanishing.py").write_text("def one():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "gone"))
    import vanishing

    call = Call.of(vanishing.one)
    (tmp_path / "gone/vanishing.py").unlink()
    job = Local(1, tmp_path / "jobs").submit(call)
    wait(job.done)

    with pytest.raises(WorkerLost, match="ended with status 1: ModuleNotFoundError: No module named 'vanishing'"):
        job.answer()


def test_a_script_for_slurm_asks_for_cores_and_where_seconds_count_for_whole_machines(tmp_path, monkeypatch):
    """SLURM is not here: its programs are empty files, and what submitit would hand to sbatch is read."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sbatch", "srun"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    texts = []
    for timed in (False, True):
        engine = engine_named("slurm", tmp_path / "jobs", jobs=None, cores=4, timed=timed)
        texts.append(engine._executor._executor._make_submission_file_text("echo", "0"))
        assert engine.shares_machines is not timed
    assert all("#SBATCH --cpus-per-task=4" in text and "#SBATCH --time=60" in text for text in texts)
    assert ["#SBATCH --exclusive" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("name", "jobs", "sentence"),
    [
        ("slurm", None, "--on slurm needs sbatch, which is not on this machine"),
        ("dask", None, "--on dask needs the address of a scheduler, but DASK_SCHEDULER_ADDRESS is not set: export"),
        ("local", 0, "--jobs must be >= 1; got 0"),
        ("pigeons", 1, "--on must be one of local, slurm, dask; got 'pigeons'"),
    ],
)
def test_an_engine_that_is_not_there_is_refused_in_one_sentence(name, jobs, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)

    with pytest.raises(UsageError, match=sentence) as refusal:
        engine_named(name, tmp_path / "jobs", jobs=jobs, cores=1, timed=False)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("name", "package"), [("slurm", "submitit"), ("dask", "distributed")])
def test_without_its_package_the_command_that_installs_it_is_named(name, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(UsageError, match=rf'^--on {name} needs {package}.*pip install "ratedist\[cluster\]"$'):
        engine_named(name, tmp_path, jobs=None, cores=1, timed=False)


def test_units_that_measure_seconds_get_this_machine_one_at_a_time(tmp_path):
    assert engine_named("local", tmp_path, jobs=None, cores=1, timed=True).jobs == 1
    assert engine_named("local", tmp_path, jobs=None, cores=10**6, timed=False).jobs == 1
    assert ENGINES == ("local", "slurm", "dask")
