"""Ctrl-C at any time ends a command with status 130 and one line; nothing is left behind.

The moment is an event, not a time: the n-th function that the command calls.
"""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

INTERRUPT_AT = """
import importlib, os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
package, moment, *arguments = sys.argv[1:]
calls = 0


def count(frame, event, argument):
    global calls
    calls += event == "call"
    if calls == int(moment):
        sys.setprofile(None)
        print("interrupted at call", calls, flush=True)
        os.kill(os.getpid(), signal.SIGINT)


package = {"ratedist": "ratedist.interfaces"}.get(package, package)
main = importlib.import_module(f"{package}.cli").main
sys.setprofile(count)
status = main(arguments)
sys.setprofile(None)
sys.exit(status)
"""
LIMITS = "bits --d 1e9 --omega 1"
PLAN = "plan --d 1e6 --workers 8 --operators tcdq:omega=1 qsgd:4 --target 0.1"
COMPARE = "compare qsgd gradient.npy --bits 1 2 --out figure.svg"
CHECK = "check qsgd:4 --budget quick --seed 1"
RUN = "run smoke --seed 0"
MOMENTS = (10, 300, 3000, 20_000, 100_000, 300_000)
CASES = [(LIMITS, 10), *((line, moment) for line in (PLAN, COMPARE, CHECK, RUN) for moment in MOMENTS)]


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "gradient.npy", np.random.default_rng(0).standard_normal(500).astype(np.float32))
    return tmp_path


def left_behind(session):
    """Living processes of a session."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry))
    return found


def start(folder, command):
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def end(process):
    """Output and errors of a process that is about to end; it is killed if it does not."""
    try:
        return process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise


@pytest.mark.every(len(CASES))
@pytest.mark.parametrize(("line", "moment"), CASES)
def test_ctrl_c_is_one_line_and_status_130(line, moment, folder):
    package = "gpu_validation" if line == RUN else "ratedist"
    process = start(folder, [sys.executable, "-c", INTERRUPT_AT, package, str(moment), *line.split()])
    output, errors = end(process)

    assert f"interrupted at call {moment}" in output
    (words,) = errors.splitlines()
    assert words.startswith(f"{package.replace('_', '-')}: interrupted")
    assert process.returncode == 130
    assert not left_behind(process.pid)


DELETED = """
import os, signal, sys, time

class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)  # the interrupt is raised here, and Python drops it

def forever(*_):
    Deleted()
    while True:
        time.sleep(0.01)

signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.argv[1] == "ratedist":
    from ratedist.interfaces import cli
    cli._carry_out = forever
else:
    from gpu_validation import cli
    cli._parser = forever
sys.exit(cli.main(["bits"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", ["ratedist", "gpu_validation"])
def test_ctrl_c_that_arrives_while_an_object_is_deleted_ends_the_command_too(folder, package):
    process = start(folder, [sys.executable, "-c", DELETED, package])
    _, errors = end(process)

    (words,) = errors.splitlines()
    assert words.startswith(f"{package.replace('_', '-')}: interrupted")
    assert process.returncode == 130


@pytest.mark.thorough
def test_ctrl_c_ends_the_server_and_its_workers(folder):
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import sys; from ratedist.interfaces.cli import main; sys.exit(main(['serve', '--port', sys.argv[1]]))"
    process = start(folder, [sys.executable, "-c", code, free_port()])
    try:
        assert "Ctrl-C ends it" in process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
    finally:
        _, errors = end(process)

    assert errors == "ratedist: interrupted\n"
    assert process.returncode == 130
    assert not left_behind(process.pid)


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
