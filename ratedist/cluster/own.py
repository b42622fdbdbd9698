"""A compressor of one's own, for those who call ratedist alone."""

from __future__ import annotations

from operators.functions.own import Own as Own
from operators.functions.own import own as own
