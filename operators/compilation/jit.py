"""The one way in which a loop of this tree is compiled for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from .code_cache import CodeCache


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function at its first call, or load what was compiled before; it runs without the interpreter's lock.

    Nobody calls the loops from C, so that no wrapper for it is compiled.

    Parameters
    ----------
    function : callable, optional
        What is compiled; None where options are given first, as in ``@jit(inline="always")``.
    options : keywords
        Further options of ``numba.njit``.

    Notes
    -----
    What is inlined always is compiled with its callers only, so that nothing of it is kept.
    """
    if function is None:
        return lambda function: jit(function, **options)
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if options.get("inline") != "always" and hasattr(dispatcher, "_cache"):  # no dispatcher under NUMBA_DISABLE_JIT=1
        dispatcher._cache = CodeCache(function, options)
    return dispatcher
