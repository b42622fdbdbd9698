"""Network namespaces without names, made as root or in a user namespace, and held by file descriptors.

A namespace lives as long as a process is in it or a descriptor refers to it.  Descriptors are closed by the kernel
when their process ends, by whatever signal, so there is nothing to sweep up later.  A helper process makes each
namespace and ends as soon as its descriptors are open here; this process stays where it is.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

COMMAND_TIMEOUT_S = 20.0
READY = "ready"
HOLD = ("sh", "-c", f"echo {READY}; read wait")


class NetworkUnavailable(RuntimeError):  # noqa: N818  a name users are told to catch
    """This machine, or this user, cannot make such a network; the message says what was refused."""


@dataclass(frozen=True)
class Space:
    """One network namespace: its descriptor, and that of the user namespace that owns it (None for root's).

    net : the first of them.
    """

    net: int
    user: int | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The open descriptors."""
        return (self.net,) if self.user is None else (self.user, self.net)


def create(count: int, *, in_user_namespace: bool) -> tuple[Space, ...]:
    """``count`` new network namespaces; with a new user namespace around them where this user is not root.

    Raises NetworkUnavailable if the kernel refuses.
    """
    user = ("--user", "--map-root-user") if in_user_namespace else ()
    made: list[Space] = []
    try:
        for _ in range(count):
            first = made[0] if made and in_user_namespace else None
            prefix = ["unshare", *user, "--net"] if first is None else [*inside(first), "unshare", "--net"]
            made.append(_hold([*prefix, *HOLD], owner=first, with_user=in_user_namespace))
    except NetworkUnavailable:
        close(made)
        raise
    return tuple(made)


def close(spaces: Sequence[Space]) -> None:
    """Give the descriptors up; the kernel removes what nobody is in any more."""
    for descriptor in {d for space in spaces for d in space.descriptors}:
        os.close(descriptor)


def enter(space: Space) -> None:
    """Move this process into a namespace; for a user namespace it must have one thread.  Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    for descriptor in space.descriptors:  # the user namespace first: it gives the right to enter the other
        if libc.setns(descriptor, 0):
            code = ctypes.get_errno()
            raise OSError(code, f"cannot enter the rank's namespace: {os.strerror(code)}")


def inside(space: Space) -> list[str]:
    """The command prefix that runs a program in a namespace; its descriptors must be passed on."""
    user = [] if space.user is None else [f"--user=/proc/self/fd/{space.user}", "--preserve-credentials"]
    return ["nsenter", *user, f"--net=/proc/self/fd/{space.net}"]


def run_inside(
    space: Space, command: Sequence[str], *, text: str = "", others: Sequence[Space] = (), what: str = ""
) -> str:
    """Run a short command in a namespace and return what it prints.

    text : for its standard input.  others : namespaces whose descriptors it needs too.  what : for the message.
    Raises NetworkUnavailable if it fails or takes longer than COMMAND_TIMEOUT_S.
    """
    descriptors = {d for s in (space, *others) for d in s.descriptors}
    try:
        done = subprocess.run(
            [*inside(space), *command],
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            pass_fds=tuple(descriptors),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkUnavailable(f"{what or command[0]}: {error}") from error
    if done.returncode:
        raise NetworkUnavailable(f"{what or command[0]}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout


def await_ready(process: subprocess.Popen[bytes], name: str) -> None:
    """Wait until a program has printed READY, its output and errors being pipes.

    Raises NetworkUnavailable, with the program's complaint, if it prints something else, ends, or takes longer than
    COMMAND_TIMEOUT_S; then it has been killed.
    """
    assert process.stdout is not None  # pipes, says the contract
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        answered = selector.select(COMMAND_TIMEOUT_S)
    if answered and process.stdout.readline().decode().strip() == READY:
        return
    process.kill()
    complaint = process.stderr.read().decode().strip()
    raise NetworkUnavailable(f"{name}: {complaint or ('it ended without a word' if answered else 'no answer')}")


def _hold(command: Sequence[str], *, owner: Space | None, with_user: bool) -> Space:
    """Start a helper that makes a namespace, open its descriptors, and let the helper go.

    owner : a space whose user namespace the new one belongs to.  with_user : the helper makes a user namespace too.
    """
    pipe = subprocess.PIPE
    inherited = () if owner is None else owner.descriptors
    try:
        helper = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=inherited)
    except OSError as error:
        raise NetworkUnavailable(f"{command[0]}: {error}") from error
    with helper:
        try:
            await_ready(helper, command[0])
            user = owner.user if owner else _descriptor(helper.pid, "user") if with_user else None
            return Space(_descriptor(helper.pid, "net"), user)
        except OSError as error:
            raise NetworkUnavailable(f"{command[0]}: {error}") from error
        finally:
            helper.kill()


def _descriptor(process: int, kind: str) -> int:
    return os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
