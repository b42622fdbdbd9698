"""What real compressors do: encoders and decoders with packed payloads, and the claims they make."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
