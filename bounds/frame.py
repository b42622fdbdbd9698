"""Records as a table of pandas, for those who have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .extras import missing_extra

if TYPE_CHECKING:
    from pandas import DataFrame


def frame(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return one row a record and one column a field, in their order.

    Parameters
    ----------
    rows : sequence of mapping
        The records.

    Raises
    ------
    MissingExtra
        Without pandas.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise missing_extra(error, "to_frame") or error from None
    return DataFrame(list(map(dict, rows)))
