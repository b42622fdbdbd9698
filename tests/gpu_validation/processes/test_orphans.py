"""A process ends with the one that started it: not with the thread, and also where the kernel gives no descriptors."""

import os
import signal
import subprocess
import sys
import threading

import pytest

FORBIDDEN = "import os\ndef no(*_): raise PermissionError\nos.pidfd_open = no\n"
CHILD = """
import os, sys, time
from gpu_validation.processes.linux import end_with_parent
end_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(float(sys.argv[2]))
print("end of script", flush=True)
os._exit(0)
"""
PARENT = """
import subprocess, sys, threading, time
code, lasts = sys.argv[1:]
def start():
    import os
    subprocess.Popen([sys.executable, "-c", code, str(os.getpid()), lasts])
thread = threading.Thread(target=start)
thread.start()
thread.join()
time.sleep(60)
"""
MEANS = pytest.mark.parametrize("prelude", ["", FORBIDDEN], ids=["descriptor", "polling"])


@MEANS
def test_a_process_goes_on_when_the_thread_that_started_it_ends(prelude):
    started = []

    def start():
        command = [sys.executable, "-c", prelude + CHILD, str(os.getpid()), "0.6"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        started[0].stdout.readline()  # it watches now

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    with started[0] as process:
        assert process.stdout.read() == "end of script\n"
    assert process.returncode == 0


@MEANS
def test_a_process_ends_when_the_one_that_started_it_is_killed(prelude):
    command = [sys.executable, "-c", PARENT, prelude + CHILD, "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            os.kill(int(parent.stdout.readline()), 0)
        finally:
            parent.kill()
        assert parent.stdout.read() == ""  # the child's end closes the pipe


def test_a_process_whose_parent_has_ended_already_ends_at_once():
    with subprocess.Popen([sys.executable, "-c", CHILD, "1" if os.getpid() != 1 else "2", "60"]) as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
