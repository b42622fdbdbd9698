"""Whatever ends a run on a network, no process, namespace or device outlives it (fixture ``made`` looks too)."""

import json
import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gpu_validation.network import Network, NetworkUnavailable, switch
from gpu_validation.network import network as network_module
from gpu_validation.processes.launch import RunFailed, run_ranks

pytestmark = pytest.mark.timeout(90)

UNPRIVILEGED = 65534


def alive(process):
    """Whether a process exists and has not ended."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def in_a_fork(function):
    """Run ``function(tell)`` in a forked process; returns its id and a file of the lines that it tells."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, os.fdopen(reading)
    os.close(reading)
    try:
        with os.fdopen(writing, "w") as file:
            function(lambda value: (file.write(json.dumps(value) + "\n"), file.flush()))
    except BaseException as error:  # a fork of the test runner must never return to it
        os.write(2, f"{error!r}\n".encode())
    finally:
        os._exit(0)


def a_long_run(method):
    """A run on the switch that tells the processes in it and then sleeps."""

    def run(tell):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

        def work(place, emit):
            emit(os.getpid())
            time.sleep(0.2)  # until it is said
            if place.rank == 1:
                os.kill(os.getpid(), signal.SIGSTOP)  # a stopped rank must not stay either
            time.sleep(60)

        with Network(2, delay_s=1e-3, methods=(method,)) as network:
            running = run_ranks(work, processes=2, hang_timeout_s=60, network=network)
            tell(
                {
                    "processes": [network._switch._process.pid, next(running), next(running)],
                    "namespaces": [os.fstat(port.space.net).st_ino for port in network.ports],
                }
            )
            time.sleep(60)

    return run


@pytest.mark.parametrize("how", [(signal.SIGTERM,), (signal.SIGKILL,), (signal.SIGSTOP, signal.SIGKILL)])
def test_when_the_parent_is_killed_ranks_switch_and_files_end(some_method, how, made, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    parent, told = in_a_fork(a_long_run(some_method))
    with told:
        run = json.loads(told.readline())
        inside = run["processes"]
        made.extend(run["namespaces"])
        assert all(alive(process) for process in inside)
        time.sleep(0.3)  # until one of them has stopped itself
        for number in how:
            os.kill(parent, number)
        os.waitpid(parent, 0)

    deadline = time.monotonic() + 5
    while any(map(alive, inside)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, inside))
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith("torchinductor_")]  # PyTorch's cache


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
def test_a_killed_or_stopped_rank_ends_the_run_and_the_network(method, fate):
    def work(place, emit):
        emit(os.getpid())
        if place.rank == 0:
            os.kill(os.getpid(), fate)
        time.sleep(60)

    ranks = []
    failure = pytest.raises(RunFailed, match=r"rank 0 was killed by SIGKILL|no rank has reported for 1 s")
    with failure, Network(2, delay_s=1e-3, methods=(method,)) as network:
        switch = network._switch
        ranks.extend(run_ranks(work, processes=2, hang_timeout_s=1, network=network))

    assert not any(map(alive, ranks))
    assert not switch.running


def test_without_its_switch_a_run_ends_at_once(some_method):
    def work(place, emit):
        emit(place.rank)
        time.sleep(60)

    with Network(2, delay_s=1e-3, methods=(some_method,)) as network:
        running = run_ranks(work, processes=2, hang_timeout_s=60, network=network)
        next(running)
        assert network.alive
        os.kill(network._switch._process.pid, signal.SIGKILL)
        with pytest.raises(RunFailed, match="the switch between the ranks has ended"):
            list(running)


def test_an_exception_removes_the_network(some_method):
    with suppress(ZeroDivisionError), Network(2, delay_s=1e-3, methods=(some_method,)) as network:
        switch = network._switch
        assert switch.running
        _ = 1 / 0
    assert not switch.running
    assert network.ports == ()


def test_a_switch_that_cannot_start_tells_why(some_method, monkeypatch):
    monkeypatch.setattr(switch, "_arguments", lambda *_: ["0"])
    with (
        pytest.raises(NetworkUnavailable, match="the switch: usage: Invalid argument"),
        Network(2, delay_s=1e-3, methods=(some_method,)),
    ):
        pass


@pytest.mark.parametrize("failure", [NetworkUnavailable("no more links"), KeyboardInterrupt("no more links")])
def test_a_network_that_fails_half_way_leaves_nothing(some_method, monkeypatch, failure):
    def refuse(*_):
        raise failure

    monkeypatch.setattr(network_module, "set_up_rank", refuse)
    network = Network(2, delay_s=1e-3, methods=(some_method,))
    with pytest.raises(type(failure), match="no more links"), network:
        pass
    assert network.ports == ()
    assert network.switch_count() is None


@pytest.fixture
def tmp_path_of_all():
    """A folder that every user may read; other users cannot enter those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop privileges; this run is unprivileged anyway")
@pytest.mark.parametrize("delay_s", [0.0, 1e-3])
def test_without_privileges_user_namespaces_or_loopback_are_used_and_told(delay_s, tmp_path_of_all):
    # the sources and Python itself may lie in a folder that only root may enter
    source = tmp_path_of_all / switch.SOURCE.name
    source.write_bytes(switch.SOURCE.read_bytes())

    def run(tell):
        list(run_ranks(lambda place, emit: emit(None), processes=2, hang_timeout_s=30))  # imports what a run needs
        switch.SOURCE = source
        os.setgroups([])
        os.setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
        os.setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)

        def work(place, emit):
            emit([place.port.method, place.port.shared, place.port.count().sent_frames > 0])

        with Network(2, rate_bit_per_s=1e8, delay_s=delay_s) as network:
            reports = list(run_ranks(work, processes=2, hang_timeout_s=30, network=network))
            tell([os.geteuid(), network.method, network.refusals, reports])

    process, told = in_a_fork(run)
    with told:
        user, used, refusals, reports = json.loads(told.readline())
    os.waitpid(process, 0)

    assert user == UNPRIVILEGED
    assert used in ("user", "loopback")
    assert refusals[0].startswith("root: this process runs as user 65534")
    assert len(refusals) == 1 + (used == "loopback")
    for words, shared, counted in reports:
        assert (("user namespace" in words) and not shared) if used == "user" else (shared and "loopback" in words)
        assert counted
