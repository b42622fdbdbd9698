"""Jobs of Dask, on a real scheduler with real workers: what dies is told once, and what is ended leaves nothing."""

import os
import signal
import subprocess
import sys
import time

import pytest

from gpu_validation.records.exit_status import UsageError
from gpu_validation.studies.engines import dask
from gpu_validation.studies.engines.dask import Dask
from gpu_validation.studies.engines.engine import Call, EngineLost, WorkerLost

pytestmark = pytest.mark.timeout(150)
SLEEPER = "import os, time; f = open({path!r}, 'a'); f.write(f'{{os.getpid()}} '); f.close(); time.sleep(600)"


def wait(ready):
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def begun(path):
    """The processes that have begun to sleep."""
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def sleeping(engine, path):
    """A job that sleeps, and its process."""
    job = engine.submit(Call.of(exec, SLEEPER.format(path=str(path))))
    wait(lambda: begun(path))
    return job, begun(path)[0]


def is_alive(process):
    return os.path.exists(f"/proc/{process}")


def parent(process):
    with open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def left_at_the_scheduler(engine):
    def left(dask_scheduler):
        return list(dask_scheduler.tasks) + list(dask_scheduler.extensions["events"]._events)

    return engine._client.run_on_scheduler(left)


def wait_until_nothing_is_left(engine):
    """That a client is done with a task reaches the scheduler a moment after its answer."""
    wait(lambda: left_at_the_scheduler(engine) == [])


def test_a_scheduler_that_does_not_answer_is_one_sentence(monkeypatch):
    monkeypatch.setattr(dask, "CONNECT_S", 0.2)

    with pytest.raises(UsageError, match=r"^no Dask scheduler answers at tcp://127\.0\.0\.1:9: start one by .*$"):
        Dask(address="tcp://127.0.0.1:9")
    with pytest.raises(UsageError, match=r"^no Dask scheduler answers at pigeons://here: start one by .*$"):
        Dask(address="pigeons://here")


@pytest.mark.thorough
def test_units_never_meet_their_worker_nor_one_another(dask_cluster):
    engine = Dask()
    assert (engine.jobs, engine.shares_machines) == (2, True)
    setting = "import os; assert 'MARK' not in os.environ; os.environ['MARK'] = ''"
    for words in (setting, setting):
        job = engine.submit(Call.of(exec, words))
        wait(job.done)
        assert job.answer() is None
    wait_until_nothing_is_left(engine)
    engine.close()


@pytest.mark.thorough
def test_a_killed_worker_loses_its_unit_which_dask_does_not_begin_again_by_itself(dask_cluster, tmp_path):
    engine, path = Dask(), tmp_path / "begun"
    job, process = sleeping(engine, path)
    os.kill(parent(process), signal.SIGKILL)

    wait(job.done)
    with pytest.raises(WorkerLost, match="its Dask worker was killed or has left the cluster") as loss:
        job.answer()
    assert not isinstance(loss.value, EngineLost)
    wait(lambda: not is_alive(process))
    assert len(begun(path)) == 1
    again = engine.submit(Call.of(divmod, 7, 2))
    wait(again.done)
    assert again.answer() == (3, 1)
    wait_until_nothing_is_left(engine)
    engine.close()


@pytest.mark.thorough
def test_a_worker_that_is_started_anew_by_its_nanny_takes_the_next_unit(dask_scheduler, tmp_path):
    dask_scheduler.start_worker("--nworkers", "1")
    engine = Dask()
    job, process = sleeping(engine, tmp_path / "begun")
    os.kill(parent(process), signal.SIGKILL)

    again = engine.submit(Call.of(divmod, 7, 2))
    wait(lambda: job.done() and again.done())
    with pytest.raises(WorkerLost, match="has left the cluster"):
        job.answer()
    assert again.answer() == (3, 1)
    engine.close()


@pytest.mark.thorough
def test_a_cancelled_job_leaves_nothing_on_the_cluster(dask_cluster, tmp_path):
    engine = Dask()
    job, process = sleeping(engine, tmp_path / "begun")
    job.cancel()

    assert not is_alive(process)
    assert job.done()
    wait_until_nothing_is_left(engine)
    wait(lambda: not list(dask_cluster.folder.rglob("call.pickle")))
    engine.close()


@pytest.mark.thorough
def test_units_end_with_the_program_that_has_handed_them_in(dask_cluster, tmp_path):
    path = tmp_path / "begun"
    program = (
        "import time\n"
        "from gpu_validation.studies.engines.dask import Dask\n"
        "from gpu_validation.studies.engines.engine import Call\n"
        f"job = Dask().submit(Call.of(exec, {SLEEPER.format(path=str(path))!r}))\ntime.sleep(600)"
    )
    client = subprocess.Popen([sys.executable, "-c", program])
    wait(lambda: begun(path))
    client.kill()
    client.wait(30)

    wait(lambda: not is_alive(begun(path)[0]))


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_a_scheduler_that_ends_is_one_sentence_and_ends_the_units(dask_cluster, tmp_path, number):
    engine = Dask()
    job, process = sleeping(engine, tmp_path / "begun")
    dask_cluster.scheduler.send_signal(number)

    wait(job.done)
    with pytest.raises(EngineLost, match=rf"^the Dask scheduler at {dask_cluster.address} has gone: .*$"):
        job.answer()
    late = engine.submit(Call.of(divmod, 7, 2))
    late.cancel()
    wait(lambda: not is_alive(process))
    engine.close()
    with pytest.raises(EngineLost, match="has gone"):
        engine.submit(Call.of(divmod, 7, 2)).answer()


@pytest.mark.thorough
def test_without_workers_nothing_is_waited_for_in_vain(dask_scheduler, tmp_path, monkeypatch):
    sentence = (
        r"^no worker has been connected to the Dask scheduler at tcp://[\d.:]+ for 1 s: start one by `dask worker .*$"
    )
    with pytest.raises(UsageError, match=sentence):
        Dask(workers_s=1)

    monkeypatch.setattr(dask, "WATCH_S", 0.1)
    dask_scheduler.start_worker()
    patient = Dask()
    engine = Dask(workers_s=1)
    job, process = sleeping(engine, tmp_path / "begun")
    os.kill(parent(process), signal.SIGKILL)
    wait(job.done)
    with pytest.raises(EngineLost, match=sentence):
        job.answer()
    wait_until_nothing_is_left(patient)
    engine.close()
    patient.close()


@pytest.mark.thorough
def test_where_seconds_count_a_machine_gets_one_unit_at_a_time(dask_cluster, tmp_path):
    with pytest.raises(UsageError, match=r"^no worker with the resource machine=1, which .* --resources .*$"):
        Dask(exclusive=True, workers_s=0.5)

    dask_cluster.start_worker("--no-nanny", "--resources", "machine=1")
    engine = Dask(4, exclusive=True)
    assert (engine.jobs, engine.shares_machines) == (4, False)
    path = tmp_path / "begun"
    job, _ = sleeping(engine, path)
    waiting = engine.submit(Call.of(divmod, 7, 2))
    time.sleep(0.5)
    assert not waiting.done()
    job.cancel()
    wait(waiting.done)
    assert waiting.answer() == (3, 1)
    engine.close()
    own = Dask(exclusive=True)
    assert own.jobs == 1
    own.close()

    dask_cluster.start_worker("--no-nanny", "--resources", "machine=1")
    with pytest.raises(UsageError, match=r"^the workers on 127\.0\.0\.1 have the resource machine 2 times, .*$"):
        Dask(exclusive=True)
