"""Mixing modes: full averaging, elastic averaging, gossip and sampled clients."""

from .client_sampling import Sampled as Sampled
from .elastic import Elastic as Elastic
from .full import Full as Full
from .gossip import Gossip as Gossip
from .gossip import gossip as gossip
from .gossip import hypercube as hypercube
from .gossip import ring as ring
from .mixing import Mixing as Mixing
from .mixing import zeta as zeta
