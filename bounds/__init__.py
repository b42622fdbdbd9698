"""What is claimed and proved: claims, limits, theorems, runtime and the choice of tau.  No torch in here."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
