"""Flower in an environment of its own, whose bounds exclude this one's packages, and a federation of real processes."""

import importlib.metadata
import os
import signal
import site
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

VERSION = "1.41.0"
ROOT = Path(__file__).parents[3]
LONGEST_S = 400
APP = """\
[project]
name = "digits"
version = "1.0.0"
description = "Two clients"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "nobody"

[tool.flwr.app.components]
serverapp = "{script}:server"
clientapp = "{script}:client"

[tool.flwr.app.config]
"""


def installed(folder):
    """The folder of the programs of an environment with flwr, whose other packages are those of this one."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=LONGEST_S)
    wanted = [f"flwr=={VERSION}", f"numpy=={importlib.metadata.version('numpy')}"]  # numba's numpy
    result = subprocess.run(
        [str(folder / "bin/python"), "-m", "pip", "install", *wanted],
        env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PIP_CONSTRAINT")},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert result.returncode == 0, f"flwr could not be installed: {result.stdout[-2000:]}{result.stderr[-2000:]}"
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "this_environment.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]) + "\n")
    return folder / "bin"


def environment(programs, home):
    return {
        **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
    }


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def running(command, log, **settings):
    """A program in a session of its own, which ends with everything that it has started."""
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True, **settings)
        try:
            yield process
        finally:
            for sign in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, sign)
                    process.wait(timeout=10)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue


def wait_for(port, process, log):
    began = time.monotonic()
    while time.monotonic() - began < LONGEST_S:
        assert process.poll() is None, f"the SuperLink has ended: {log.read_text()[-2000:]}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"the SuperLink does not listen: {log.read_text()[-2000:]}")


def federate(script, programs, folder, clients=2):
    """Run an app by a SuperLink and SuperNodes in a folder; what ``flwr run`` has said, and all logs behind it."""
    app, home = folder / "app", folder / "home"
    app.mkdir()
    home.mkdir()
    (app / script.name).write_text(script.read_text())
    (app / "pyproject.toml").write_text(APP.format(script=script.stem))
    link, *nodes = free_ports(1 + clients)
    address = f"127.0.0.1:{link}"
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "{address}"\ninsecure = true\n'
    )
    settings = {"cwd": folder, "env": environment(programs, home)}
    logs = [folder / "superlink.log", *(folder / f"supernode-{client}.log" for client in range(clients))]
    start = ["flower-superlink", "--insecure", "--port", str(link), "--disable-runtime-dependency-installation"]
    start[0] = str(programs / start[0])
    join = [str(programs / "flower-supernode"), "--insecure", "--superlink", address]
    with running(start, logs[0], **settings) as superlink:
        wait_for(link, superlink, logs[0])
        commands = [
            [*join, "--port", str(port), "--node-config", f"partition-id={client}"] for client, port in enumerate(nodes)
        ]
        with running(commands[0], logs[1], **settings), running(commands[1], logs[2], **settings):
            result = subprocess.run(
                [str(programs / "flwr"), "run", str(app), "here", "--stream"],
                **settings,
                capture_output=True,
                text=True,
                timeout=LONGEST_S,
                check=False,
            )
    heard = "".join(f"\n== {log.name}\n{log.read_text()[-2000:]}" for log in logs)
    return result.stdout[-3000:] + result.stderr[-2000:] + heard
