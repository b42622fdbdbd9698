"""The command line as a user meets it: exit codes, one-line errors, Ctrl-C, a killed rank."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from gpu_validation.cli import main
from ratedist.interfaces.exit_status import OK, USAGE

pytestmark = pytest.mark.timeout(180)
COMMAND = [sys.executable, "-m", "gpu_validation"]


@pytest.fixture
def start():
    """Start runs, each in a process group of its own, and wait until it has measured something."""
    started = []

    def begin(folder, preset="quick"):
        process = subprocess.Popen(
            [*COMMAND, "run", preset, "--out", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # a shell in the background hands down that Ctrl-C is ignored
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        path = folder / preset / "measurements.jsonl"
        deadline = time.monotonic() + 120
        while not path.exists() or len(path.read_text().splitlines()) < 3:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return process, path

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def group(leader):
    """Living processes of the session that ``leader`` heads."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(entry))
    return found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "nonesuch"), "no preset 'nonesuch'; known: "),
        (("run", "smoke", "--out", "/proc/nowhere"), "cannot write results to /proc/nowhere"),
    ],
)
def test_usage_errors_are_one_line_and_status_2(capsys, arguments, words):
    assert main(arguments) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_the_process_ends_with_the_status_and_the_line():
    result = subprocess.run([*COMMAND, "walk"], capture_output=True, text=True, timeout=150, check=False)

    assert result.returncode == USAGE
    (line,) = result.stderr.splitlines()
    assert "invalid choice: 'walk'" in line


def test_list_names_the_experiments(capsys):
    assert main(["list"]) == OK
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == sorted(names)
    assert {"quick", "smoke"} <= set(names)


@pytest.mark.thorough
def test_smoke_run_prints_a_table_and_the_four_counts(smoke_run):
    result = smoke_run.result

    assert result.returncode == 0, result.stderr
    for words in (
        "qsgd",
        "comparisons are evidence; ",
        "loss on quadratic, after the first and the last averaging: identity ",
        "inconclusive",
        "not covered",
        "report.html",
        "summary.svg",
    ):
        assert words in result.stdout
    on_a_busy_machine = "VIOLATED (timings, which never decide)"
    assert "; 0 VIOLATED" in result.stdout or on_a_busy_machine in result.stdout


@pytest.mark.thorough
def test_ctrl_c_ends_every_process_and_keeps_what_was_measured(start, tmp_path):
    process, path = start(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "kept in" in errors
    assert not group(process.pid)
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert (path.parent / "report.html").exists()


@pytest.mark.thorough
def test_a_killed_rank_ends_every_process_and_the_run_says_so(start, tmp_path):
    process, path = start(tmp_path)
    rank = next(pid for pid in group(process.pid) if pid != process.pid)
    os.kill(rank, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 3, errors
    assert "was killed by SIGKILL" in errors
    assert not group(process.pid)
    assert len(path.read_text().splitlines()) >= 3
    assert (path.parent / "comparisons.jsonl").exists()


@pytest.mark.thorough
def test_a_killed_parent_takes_its_ranks_along(start, tmp_path):
    process, _ = start(tmp_path)
    assert len(group(process.pid)) > 1
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not group(process.pid)
