"""Former module of ``operators.ddp``, kept for old imports."""

from .ddp.hook import CompressedGradients as CompressedGradients
from .ddp.register import register as register
