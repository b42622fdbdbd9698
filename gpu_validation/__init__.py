"""Does the machine agree?  Real processes, real bytes, verdicts."""

import ratedist as _ratedist  # noqa: F401  says which module of the user hides one of ours
from bounds.extras import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
