"""How far from the limit am I?  The bound calculator, sources, and measured rate-distortion curves."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
