"""The mean of vectors that lie on m ranks: gathered whole, or in two shots over owners of shards."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
