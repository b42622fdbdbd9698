"""Compressors whose messages are added on the way: what a rank sends does not grow with the number of ranks."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
