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

    Parameters
    ----------
    net : int
        The first of them.
    user : int or None, optional
        Descriptor of the user namespace that owns it, None for root's.
    """

    net: int
    user: int | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The open descriptors."""
        return (self.net,) if self.user is None else (self.user, self.net)


def create(count: int, *, in_user_namespace: bool) -> tuple[Space, ...]:
    """Return ``count`` new network namespaces; with a new user namespace around them where this user is not root.

    Parameters
    ----------
    count : int
        Namespaces to be made, one a rank.
    in_user_namespace : bool
        Whether a user namespace is made around them.

    Raises
    ------
    NetworkUnavailable
        If the kernel refuses.
    """
    user = ("--user", "--map-root-user") if in_user_namespace else ()
    spaces: list[Space] = []
    try:
        for _ in range(count):
            first = spaces[0] if spaces and in_user_namespace else None
            prefix = ["unshare", *user, "--net"] if first is None else [*inside(first), "unshare", "--net"]
            spaces.append(_hold([*prefix, *HOLD], owner=first, with_user=in_user_namespace))
    except NetworkUnavailable:
        close(spaces)
        raise
    return tuple(spaces)


def close(spaces: Sequence[Space]) -> None:
    """Give the descriptors up; the kernel removes what nobody is in any more.

    Parameters
    ----------
    spaces : sequence of Space
        One for each rank, in rank order.
    """
    for descriptor in {d for space in spaces for d in space.descriptors}:
        os.close(descriptor)


def enter(space: Space) -> None:
    """Move this process into a namespace; for a user namespace it must have one thread.

    Parameters
    ----------
    space : Space
        One that has not been removed.

    Raises
    ------
    OSError
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for descriptor in space.descriptors:  # the user namespace first: it gives the right to enter the other
        if libc.setns(descriptor, 0):
            code = ctypes.get_errno()
            raise OSError(code, f"cannot enter the rank's namespace: {os.strerror(code)}")


def inside(space: Space) -> list[str]:
    """Return the command prefix that runs a program in a namespace; its descriptors must be passed on.

    Parameters
    ----------
    space : Space
        One that has not been removed.
    """
    user = [] if space.user is None else [f"--user=/proc/self/fd/{space.user}", "--preserve-credentials"]
    return ["nsenter", *user, f"--net=/proc/self/fd/{space.net}"]


def run_inside(
    space: Space, command: Sequence[str], *, text: str = "", others: Sequence[Space] = (), what: str = ""
) -> str:
    """Run a short command in a namespace and return what it prints.

    Parameters
    ----------
    space : Space
        One that has not been removed.
    command : sequence of str
        The program and its arguments.
    text : str, optional
        For its standard input.
    others : sequence of Space, optional
        Namespaces whose descriptors it needs too.
    what : str, optional
        For the message.

    Raises
    ------
    NetworkUnavailable
        If it fails or takes longer than COMMAND_TIMEOUT_S.
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

    then it has been killed.

    Parameters
    ----------
    process : Popen
        The program, its output and errors being pipes.
    name : str
        What it is called in an error.

    Raises
    ------
    NetworkUnavailable
        With the program's complaint, if it prints something else, ends, or takes longer than COMMAND_TIMEOUT_S.
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

    Parameters
    ----------
    owner : Space or None
        A space whose user namespace the new one belongs to.
    with_user : bool
        The helper makes a user namespace too.
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
