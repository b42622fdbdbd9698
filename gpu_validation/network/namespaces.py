"""Network namespaces without names, created as root or in a user namespace, and held by file descriptors.

A namespace exists while a process is in it or a descriptor refers to it.  The kernel closes descriptors when their
process ends, so no clean-up is needed.  A helper process creates each namespace and ends when its descriptors are open
here; this process does not move.
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
HELPER = ("sh", "-c", f"echo {READY}; read wait")


class NetworkUnavailable(RuntimeError):  # noqa: N818  a public name
    """Raised if this machine or user cannot create the network; the message names what was refused."""


@dataclass(frozen=True)
class Space:
    """A network namespace: its descriptor, and that of the user namespace that owns it.

    Parameters
    ----------
    net : int
        Descriptor of the network namespace.
    user : int or None, optional
        Descriptor of the owning user namespace; None for root's.
    """

    net: int
    user: int | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The open descriptors."""
        return (self.net,) if self.user is None else (self.user, self.net)


def create(count: int, *, in_user_namespace: bool) -> tuple[Space, ...]:
    """Return ``count`` new network namespaces, in a new user namespace if this user is not root.

    Parameters
    ----------
    count : int
        Number of namespaces.
    in_user_namespace : bool
        Whether to create a user namespace around them.

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
            spaces.append(_open_space([*prefix, *HELPER], owner=first, with_user=in_user_namespace))
    except NetworkUnavailable:
        close(spaces)
        raise
    return tuple(spaces)


def close(spaces: Sequence[Space]) -> None:
    """Close the descriptors; the kernel removes unused namespaces.

    Parameters
    ----------
    spaces : sequence of Space
        Namespaces to release.
    """
    for descriptor in {d for space in spaces for d in space.descriptors}:
        os.close(descriptor)


def enter(space: Space) -> None:
    """Move this process into a namespace; with a user namespace it must have a single thread.

    Parameters
    ----------
    space : Space
        An existing namespace.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for descriptor in space.descriptors:  # the user namespace first: it grants the right to enter the other
        if libc.setns(descriptor, 0):
            code = ctypes.get_errno()
            raise OSError(code, f"cannot enter the rank's namespace: {os.strerror(code)}")


def inside(space: Space) -> list[str]:
    """Return the command prefix that runs a program in a namespace; pass on its descriptors.

    Parameters
    ----------
    space : Space
        An existing namespace.
    """
    user = [] if space.user is None else [f"--user=/proc/self/fd/{space.user}", "--preserve-credentials"]
    return ["nsenter", *user, f"--net=/proc/self/fd/{space.net}"]


def run_inside(
    space: Space, command: Sequence[str], *, text: str = "", others: Sequence[Space] = (), what: str = ""
) -> str:
    """Run a short command in a namespace and return its output.

    Parameters
    ----------
    space : Space
        An existing namespace.
    command : sequence of str
        Program and arguments.
    text : str, optional
        Standard input.
    others : sequence of Space, optional
        Further namespaces whose descriptors it needs.
    what : str, optional
        Name of the command in errors.

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
    """Wait until a program has printed READY; kill it on failure.

    Parameters
    ----------
    process : Popen
        The program, with pipes for output and errors.
    name : str
        Name of the program in errors.

    Raises
    ------
    NetworkUnavailable
        With the program's error output, if it prints something else, ends, or takes longer than COMMAND_TIMEOUT_S.
    """
    assert process.stdout is not None  # the callers pass pipes
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        answered = selector.select(COMMAND_TIMEOUT_S)
    if answered and process.stdout.readline().decode().strip() == READY:
        return
    process.kill()
    complaint = process.stderr.read().decode().strip()
    raise NetworkUnavailable(f"{name}: {complaint or ('it ended without a word' if answered else 'no answer')}")


def _open_space(command: Sequence[str], *, owner: Space | None, with_user: bool) -> Space:
    """Start a helper that creates a namespace, open its descriptors, and end the helper.

    The namespace belongs to the user namespace of ``owner``, if given; ``with_user`` creates a new one.
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
