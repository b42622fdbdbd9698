"""Register compressed gradients with ``DistributedDataParallel``: the former place of ``operators.ddp``."""

from .ddp.hook import CompressedGradients as CompressedGradients
from .ddp.register import register as register
