"""Other names of compressors, in papers and libraries: for suggestions after an unknown name, and for the search."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "block_integer": ("int8", "int4", "absmax quantisation", "block-wise quantisation"),
    "cast": ("fp16", "bf16", "fp8", "float16", "bfloat16", "half precision"),
    "dgc": ("Deep Gradient Compression",),
    "e8": ("lattice quantisation", "E8 lattice"),
    "ef": ("error feedback", "EF14", "EF-SGD", "error compensation", "memory"),
    "global_topk": ("gTop-k",),
    "hard_threshold": ("threshold-v", "Strom"),
    "identity": ("none", "uncompressed", "no compression", "fp32", "binary32"),
    "kashin": ("Kashin compression", "democratic embedding"),
    "klevel": ("stochastic uniform quantisation", "stochastic rounding", "min-max quantisation"),
    "low_rank": ("PowerSGD", "rank-r"),
    "majority_vote": ("signSGD with majority vote",),
    "natural": ("natural compression", "C_nat"),
    "one_bit_adam": ("1-bit Adam",),
    "one_bit_sgd": ("1-bit SGD", "1bit"),
    "powersgd": ("PowerSGD",),
    "qsgd": ("QSGD", "random dithering", "stochastic quantisation"),
    "randomk": ("rand-k", "random-k", "random sparsification"),
    "rotated_klevel": ("rotated quantisation", "Hadamard quantisation", "SRHT"),
    "scaled_randomk": ("rand-k without scaling",),
    "scaled_sign": ("EF-signSGD", "sign with scale", "1-bit with scale"),
    "shared_scale": ("IntSGD", "SwitchML"),
    "signsgd": ("sign", "signum"),
    "summed_powersgd": ("PowerSGD",),
    "tcdq": ("trellis", "TCQ", "trellis-coded quantisation"),
    "terngrad": ("ternary", "3LC"),
    "topk": ("top-k", "gradient dropping", "magnitude sparsification"),
}


def near_names(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """Return the known names, up to three, that a name may mean: another name, another spelling, or a similar word.

    Parameters
    ----------
    name : str
        What was given.
    known : iterable of str
        Names that exist.
    cutoff : float, optional
        Least similarity, from 0 to 1.

    Examples
    --------
    >>> near_names("Rand-K", ["qsgd", "randomk", "topk"])
    ['randomk']
    """
    plain, names = _plain(name), list(known)
    same = [each for each in names if plain in {_plain(each), *map(_plain, OTHER_NAMES.get(each, ()))}]
    spelled = {_plain(each): each for each in names}
    same.sort(key=lambda each: _plain(each) != plain)
    return same[:3] or [spelled[each] for each in difflib.get_close_matches(plain, spelled, 3, cutoff)]


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold().replace("quantiz", "quantis")))
