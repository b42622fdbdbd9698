"""How far from the limit am I?  The bound calculator, sources, and measured rate-distortion curves."""

from typing import Any

import lazy_loader as _lazy

from .hidden import require_own_packages as _require_own_packages

_require_own_packages()

_exported, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Return an exported name, the version, or the function of a call that has no line in the stub."""
    if name == "__version__":
        from importlib.metadata import version

        return version("ratedist")
    try:
        return _exported(name)
    except AttributeError:
        from importlib.util import find_spec

        if name.startswith("_") or find_spec(f"{__name__}.{name}"):  # a module: calls that import it are half made
            raise
        from .calls import all_calls

        for call in all_calls().values():
            if call.function is not None and call.function.__name__ == name:
                return call.function
        raise
