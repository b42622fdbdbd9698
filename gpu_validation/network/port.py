"""Network interface of a rank, its namespace and its counters."""

from __future__ import annotations

from dataclasses import dataclass

from .counters import Count, interface_count
from .namespaces import Space, enter


@dataclass(frozen=True)
class Port:
    """Network interface of one rank.

    Parameters
    ----------
    interface : str
        Name, for GLOO_SOCKET_IFNAME.
    method : str
        Description of the network and of its counters.
    shared : bool
        Whether one counter sees the traffic of all ranks (loopback).
    space : Space or None, optional
        Namespace to enter; None to stay.
    """

    interface: str
    method: str
    shared: bool
    space: Space | None = None

    def enter(self) -> None:
        """Move this process into the port's namespace; it must have a single thread.

        Raises
        ------
        OSError
            If the kernel refuses.
        """
        if self.space is not None:
            enter(self.space)

    def count(self) -> Count | None:
        """Return the counters of the interface; call it after ``enter``."""
        return interface_count(self.interface)


LOOPBACK = Port("lo", "loopback counter, no shaping (headers, acknowledgements and other programs included)", True)
