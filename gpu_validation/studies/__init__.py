"""Studies: named experiments with their measurements, verdicts and figures."""

from bounds.extras import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
