"""One real server for all tests here: the command line's, on a free port of the loopback address."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

START_S = 60


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str

    def get(self, path):
        return self._open(urllib.request.Request(self.url + path))

    def post(self, path, body, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._open(urllib.request.Request(self.url + path, data=data, headers={"content-type": kind}))

    def _open(self, request):
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode(), dict(response.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), dict(error.headers)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def module(monkeypatch):
    """The name of a module of faults that processes can import."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return "faults"


@pytest.fixture(scope="session")
def server():
    port = free_port()
    command = [sys.executable, "-m", "ratedist", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = Server(f"http://127.0.0.1:{port}")
    deadline = time.monotonic() + START_S
    while True:
        try:
            if found.get("/healthz")[0] == 200:
                break
        except OSError:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
    yield found
    process.terminate()
    out, err = process.communicate(timeout=30)
    assert not out
    # Generated requests may be invalid; that a loop is compiled is no fault of the server.
    expected = ("Invalid HTTP request", "compiling loops for this processor")
    lines = [line for line in err.splitlines() if not any(words in line for words in expected)]
    assert lines == [f"ratedist serve: {found.url}/ (Ctrl-C ends it)"]
