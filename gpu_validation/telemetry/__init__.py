"""What a run of one's own tells about itself: an account of every rank, and the report that judges it."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
