"""Namespaces need root or user namespaces; where neither is allowed the tests say so instead of passing."""

import multiprocessing
import os
import subprocess
import time
from contextlib import suppress

import pytest

from gpu_validation.network import Network, NetworkUnavailable, namespaces
from gpu_validation.network import network as network_module


def available(method):
    try:
        with Network(1, methods=(method,)):
            return ""
    except NetworkUnavailable as refusal:
        return str(refusal)


REFUSED = {method: available(method) for method in ("root", "user")}


@pytest.fixture(params=["root", "user"])
def method(request):
    """Every way of making namespaces that this machine allows."""
    if REFUSED[request.param]:
        pytest.skip(REFUSED[request.param])
    return request.param


@pytest.fixture
def some_method():
    """One way of making namespaces."""
    allowed = [method for method, refusal in REFUSED.items() if not refusal]
    if not allowed:
        pytest.skip("; ".join(REFUSED.values()))
    return allowed[0]


def named_namespaces():
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, timeout=10, check=False).stdout


def devices():
    return sorted(os.listdir("/sys/class/net"))


def holders(namespaces):
    """Processes that are in one of the namespaces or hold it open, as far as this user sees them."""
    wanted, found = {f"net:[{number}]" for number in namespaces}, set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            links = [os.readlink(f"/proc/{process}/ns/net")]
            for name in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    links.append(os.readlink(f"/proc/{process}/fd/{name}"))
            if wanted.intersection(links):
                found.add(int(process))
    return found


@pytest.fixture(autouse=True)
def made():
    """The numbers of the namespaces that a test makes; after it, nobody is left in any of them."""
    numbers = []

    def create(*arguments, **named):
        spaces = namespaces.create(*arguments, **named)
        numbers.extend(os.fstat(space.net).st_ino for space in spaces)
        return spaces

    before = named_namespaces(), devices()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_module, "create", create)
        yield numbers
    deadline = time.monotonic() + 5
    while holders(numbers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not holders(numbers)
    assert (named_namespaces(), devices()) == before


def _call(port, function, pipe):
    port.enter()
    pipe.send(function())


@pytest.fixture
def in_ports():
    """Call functions in the namespaces of the first ports, all at the same time; returns what they return."""
    context = multiprocessing.get_context("fork")

    def run(network, *functions):
        pairs = []
        for port, function in zip(network.ports, functions, strict=False):
            ours, theirs = context.Pipe()
            process = context.Process(target=_call, args=(port, function, theirs), daemon=True)
            process.start()
            theirs.close()
            pairs.append((process, ours))
        try:
            return [pipe.recv() if pipe.poll(30) else pytest.fail("no answer from a port") for _, pipe in pairs]
        finally:
            for process, _ in pairs:
                process.kill()
                process.join(5)

    return run
