"""An emulated network around the ranks, with set rate, delay, jitter and loss, and counted frames.

::

    with Network(m=4, rate_bit_per_s=1e8, delay_s=2e-3) as network:
        for item in run_ranks(work, processes=4, hang_timeout_s=60, network=network):
            ...

Every rank has a network namespace.  The namespaces have no names and are held by file descriptors.  The kernel removes
them with all their devices when this process and the ranks have ended, however they end.  Nothing is created in the
machine's own namespace.
"""

from .namespaces import NetworkUnavailable as NetworkUnavailable
from .network import METHODS as METHODS
from .network import Network as Network
from .port import LOOPBACK as LOOPBACK
from .port import Count as Count
from .port import Port as Port
from .port import interface_count as interface_count
from .port import parse_counters as parse_counters
from .shape import Shape as Shape
