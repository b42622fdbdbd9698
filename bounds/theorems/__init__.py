"""Convergence and runtime theorems, a family in a file; every Bound is exported under its name."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
