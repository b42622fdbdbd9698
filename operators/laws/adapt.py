"""One line from anybody's compressor to a subject of ``check``."""

from __future__ import annotations

from typing import Any

import torch

from ..functions.forms import Library, form_of
from .kit.examples import Domain
from .kit.subject import Array, ClaimSource, Subject, claim_spelled

RANGES = {torch.float16: (2.0**-8, 2.0**8), torch.bfloat16: (2.0**-60, 2.0**60)}


def adapt(
    target: Any,
    *,
    claim: ClaimSource = None,
    library: Library = "torch",
    dtype: torch.dtype = torch.float32,
    domain: Domain | None = None,
    state: Any = None,
) -> Subject:
    """Return a subject for ``check`` and ``parametrize_with_checks`` of what is not an Operator.

    Parameters
    ----------
    target : number
        One of.
    claim : ClaimSource, optional
        One of ``bounds.claims``, or a function of d; the default is ``target.claim``.
    library : Library, optional
        The name of the library, or None for a plain object or function.
    dtype : dtype, optional
        Of the tensors that it receives; vectors are rounded to it, and its rounding is allowed.
    domain : Domain or None, optional
        The vectors that it is meant for; by default those with ``2^-126 <= max|x| <= 2^100``, of float16 ``2^-8 <=
        max|x| <= 2^8``, of bfloat16 ``2^-60 <= max|x| <= 2^60``.
    state : optional
        Of a hook.

    Raises
    ------
    TypeError
        For what has none of these forms.
    ValueError
        For an unknown library, or one without the dtype.

    Notes
    -----
    - a function ``x -> x_hat`` of a 1-d array of ``library``; of jax, it may take a key (``key``, ``rng`` or second);

    - a communication hook of torch, ``hook(state, bucket) -> Future``, run in a process group of one;

    - a pair ``(compress, decompress)`` of functions, or an object with methods of these names; compress may take the
      name of the tensor, and return ``(tensors, ctx)``, both handed to decompress (as in GRACE);

    - a codec with ``compress(tensor, ...)`` and ``extract(message)`` (as in hivemind).
    """
    if library not in ("torch", "numpy", "jax"):
        raise ValueError(f'library must be "torch", "numpy" or "jax"; got {library!r}')
    if library != "torch" and dtype == torch.bfloat16:
        raise ValueError(f'bfloat16 needs library="torch"; got {library!r}')
    spelled = "state" if " at 0x" in repr(state) else repr(state)
    given = {
        "claim": "" if claim is None else claim_spelled(claim),
        "library": "" if library == "torch" else f'"{library}"',
        "dtype": "" if dtype == torch.float32 else str(dtype),
        "domain": "" if domain is None else repr(domain),
        "state": "" if state is None else spelled,
    }
    arguments = [_name(target), *(f"{name}={value}" for name, value in given.items() if value)]
    if domain is None:
        smallest, largest = RANGES.get(dtype, (Domain.smallest, Domain.largest))
        domain = Domain(smallest, largest, dtype=dtype)
    form = form_of(target, library, state)
    form.dtype = dtype
    if claim is None:
        claim = getattr(target, "claim", None)
    array: Array = "torch" if library == "torch" else "numpy"
    subject = Subject(form, claim, array, domain=domain, rounding=_rounding(dtype))
    subject.spelled = f"operators.laws.adapt({', '.join(arguments)})"
    return subject


def _name(target: Any) -> str:
    """Return how a script spells the target: a pair by its two names."""
    if isinstance(target, tuple):
        return f"({', '.join(map(_name, target))})"
    return getattr(target, "__name__", None) or repr(target)


def _rounding(dtype: torch.dtype) -> float:
    """Return the relative error of a few roundings to a 16-bit type; 0 for the others, whose rounding laws allow
    anyway.
    """
    return 4 * torch.finfo(dtype).eps if dtype in RANGES else 0.0
