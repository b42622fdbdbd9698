"""What real compressors do: encoders and decoders with packed payloads, and the claims they make."""

from typing import Any as _Any

import lazy_loader as _lazy

from bounds.extras import missing_extra as _missing_extra

_exported, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> _Any:
    """Return an exported name.

    Raises
    ------
    ImportError
        With the command that installs what is missing.
    """
    try:
        return _exported(name)
    except ImportError as error:
        raise _missing_extra(error, __name__) or error from None
