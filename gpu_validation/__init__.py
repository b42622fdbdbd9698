"""Does the machine agree?  Real processes, real bytes, verdicts."""

import lazy_loader as _lazy

import ratedist as _ratedist  # noqa: F401  says which module of the user hides one of ours

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
