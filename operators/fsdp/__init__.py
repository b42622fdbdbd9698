"""Compress the gradients that FSDP2 (``fully_shard``) reduces and scatters."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
