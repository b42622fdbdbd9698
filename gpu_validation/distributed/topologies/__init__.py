"""Topologies of an all-gather of messages, with exactly predicted bytes."""

from .direct import Direct as Direct
from .exact_sum import ExactSum as ExactSum
from .parameter_server import Hub as Hub
from .ring import Ring as Ring
from .topology import Topology as Topology

TOPOLOGIES: tuple[Topology, ...] = (Direct(), Ring(), Hub())
