"""What real compressors do: encoders and decoders with packed payloads, and the claims they make."""

from bounds.extras import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
