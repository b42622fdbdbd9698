"""Where a rank meets the network: which interface it talks through, in which namespace, and who counts its bytes."""

from __future__ import annotations

from dataclasses import dataclass

from .counters import Count, interface_count
from .namespaces import Space, enter


@dataclass(frozen=True)
class Port:
    """The interface of one rank.

    Parameters
    ----------
    interface : str
        Its name, for GLOO_SOCKET_IFNAME.
    method : str
        How the network was made and who counts, in words.
    shared : bool
        True if one counter sees the traffic of all ranks (loopback), False if each rank has its own.
    space : Space or None, optional
        The namespace to enter, or None to stay.
    """

    interface: str
    method: str
    shared: bool
    space: Space | None = None

    def enter(self) -> None:
        """Move this process into the port's namespace; it must have one thread only.

        Raises
        ------
        OSError
        """
        if self.space is not None:
            enter(self.space)

    def count(self) -> Count | None:
        """Return the counters of the interface; call it after ``enter``."""
        return interface_count(self.interface)


LOOPBACK = Port("lo", "loopback counter, no shaping (headers, acknowledgements and other programs included)", True)
