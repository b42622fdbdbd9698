"""Network between the ranks of a run, by the best method that machine and user allow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType

from operators import Key
from operators.random import bits32

from .links import INTERFACE, make_bridge, set_up_rank
from .namespaces import NetworkUnavailable, Space, close, create, run_inside
from .port import LOOPBACK, Count, Port, interface_count, parse_counters
from .shape import Shape
from .switch import Switch, SwitchCount

MOST_RANKS = 250
ROOT, USER, LOOP = METHODS = ("root", "user", "loopback")
WORDS = {ROOT: "network namespaces made as root", USER: "network namespaces in a user namespace (no privileges)"}


class Network:
    """An emulated network for m ranks; a context manager.

    Parameters
    ----------
    m : int
        Number of ranks, 1 to 250.
    rate_bit_per_s : float or None, bit/s, optional
        Rate of a link in each direction; None for no limit.
    delay_s : float, seconds, optional
        One-way delay, in [0, 10].
    jitter_s : float, seconds, optional
        Additional delay, uniform on [0, jitter_s].
    loss : float, optional
        Probability that a frame is lost, in [0, 1).
    mtu : int, optional
        Largest IP packet in bytes, 576 to 65000.
    key : Key, optional
        Seeds loss and jitter.
    methods : sequence of str, optional
        Methods to try, in order: "root" namespaces, "user" namespaces, and "loopback", which cannot be shaped.

    Attributes
    ----------
    method : str
        Method in use, after entering.
    shaped : bool
        Whether the shape is in force.
    refusals : tuple of str
        Reasons why earlier methods were not used.

    Raises
    ------
    ValueError
        For a wrong number or method.
    NetworkUnavailable
        On entering, if every method is refused.

    Notes
    -----
    A rate alone is set in the kernel (veth, bridge, tbf).  Delay, jitter and loss need a switch in user space on TAP
    devices.
    """

    def __init__(
        self,
        m: int,
        *,
        rate_bit_per_s: float | None = None,
        delay_s: float = 0.0,
        jitter_s: float = 0.0,
        loss: float = 0.0,
        mtu: int = 1500,
        key: Key = Key(0),  # noqa: B008  frozen
        methods: Sequence[str] = METHODS,
    ) -> None:
        if not 1 <= m <= MOST_RANKS:
            raise ValueError(f"m must satisfy 1 <= m <= {MOST_RANKS}; got m = {m}")
        unknown = set(methods) - set(METHODS)
        if unknown or not methods:
            raise ValueError(f"methods must be some of {', '.join(METHODS)}; got {tuple(methods)!r}")
        self.m, self.key, self.methods = m, key, tuple(methods)
        self.shape = Shape(rate_bit_per_s, delay_s, jitter_s, loss, mtu)
        self.ports: tuple[Port, ...] = ()
        self.method, self.refusals = "", ()
        self._switch: Switch | None = None
        self._open = ExitStack()

    method: str
    refusals: tuple[str, ...]

    @classmethod
    def of(cls, shape: Shape, m: int, *, key: Key = Key(0), methods: Sequence[str] = METHODS) -> Network:  # noqa: B008
        """Return the network of a shape for m ranks.

        Parameters
        ----------
        shape : Shape
            Rate, delay, jitter, loss and MTU of the links.
        m : int
            Number of ranks.
        key : Key, optional
            Seeds loss and jitter.
        methods : sequence of str, optional
            Methods to try, in order.
        """
        return cls(
            m,
            rate_bit_per_s=shape.rate_bit_per_s,
            delay_s=shape.delay_s,
            jitter_s=shape.jitter_s,
            loss=shape.loss,
            mtu=shape.mtu,
            key=key,
            methods=methods,
        )

    # -- life --------------------------------------------------------------------------------------------
    def __enter__(self) -> Network:
        makers: dict[str, Callable[[], tuple[Port, ...]]] = {
            ROOT: partial(self._namespaces, ROOT),
            USER: partial(self._namespaces, USER),
            LOOP: lambda: (LOOPBACK,) * self.m,
        }
        refusals: list[str] = []
        for method in self.methods:
            try:
                self.ports, self.method = makers[method](), method
                break
            except NetworkUnavailable as refusal:
                self._close()
                refusals.append(f"{method}: {refusal}")
            except BaseException:  # an interrupt half way
                self._close()
                raise
        self.refusals = tuple(refusals)
        if not self.ports:
            raise NetworkUnavailable("; ".join(refusals))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._open.close()
        self.ports, self._switch = (), None

    def _namespaces(self, method: str) -> tuple[Port, ...]:
        if method == ROOT and os.geteuid() != 0:
            raise NetworkUnavailable(f"this process runs as user {os.geteuid()}")
        spaces = create(self.m + 1, in_user_namespace=method == USER)
        self._open.callback(close, spaces)
        hub, ranks = spaces[0], spaces[1:]
        if self.shape.needs_switch:
            low, high = (int(word) for word in bits32(self.key, 2))
            self._switch = Switch(hub, ranks, self.shape, seed=high << 32 | low)
            self._open.callback(self._switch.close)
            links = "user-space switch on TAP devices"
        else:
            make_bridge(hub, ranks, self.shape)
            links = "veth, bridge"
        for rank, space in enumerate(ranks):
            set_up_rank(space, rank, self.m, self.shape)
        limit = "" if self.shape.rate_bit_per_s is None else ", tbf"
        words = f"{WORDS[method]}: {links}{limit}; frames counted on every rank's interface; {self.shape}"
        return tuple(Port(INTERFACE, words, False, space) for space in ranks)

    # -- state -------------------------------------------------------------------------------------------
    @property
    def shaped(self) -> bool:
        """Whether rate, delay, jitter, loss and MTU are in force."""
        return self.method in (ROOT, USER)

    @property
    def description(self) -> str:
        """Description of the network and of its counters."""
        return self.ports[0].method if self.ports else "not entered"

    @property
    def alive(self) -> bool:
        """Whether the switch runs; without it no frame passes."""
        return self._switch is None or self._switch.running

    def counts(self) -> list[Count | None]:
        """Return the interface counters of every rank, read from outside; on loopback the same m times."""
        return [self._count(port) for port in self.ports]

    def switch_count(self) -> SwitchCount | None:
        """Return the switch's counters and byte matrix, or None without a switch."""
        return None if self._switch is None else self._switch.count()

    @staticmethod
    def _count(port: Port) -> Count | None:
        if port.space is None:
            return interface_count(port.interface)
        return parse_counters(_counter_file(port.space), port.interface)


def _counter_file(space: Space) -> str:
    return run_inside(space, ["cat", "/proc/self/net/dev"])
