"""Worst cases as semidefinite programs, with certificates; the solver (extra ``pep``) is loaded only to solve."""

from .certificate import Certificate as Certificate
from .certificate import NotProved as NotProved
from .certificate import verify as verify
from .certify import certify as certify
from .different_data import different_data as different_data
from .one_round import Case as Case
from .one_round import one_round as one_round
from .overlapped import overlapped as overlapped
from .periods import FloorPeriod as FloorPeriod
from .periods import ShortHorizon as ShortHorizon
from .periods import Worst as Worst
from .periods import floor_periods as floor_periods
from .periods import least_floor as least_floor
from .periods import short_horizon as short_horizon
from .program import Program as Program
from .solve import Solution as Solution
from .solve import solve as solve
from .table import Entry as Entry
from .table import certified_floor as certified_floor
from .table import entries as entries
from .two_shots import two_shots as two_shots
from .variants import Variant as Variant
from .variants import variants as variants
from .witness import Witness as Witness
from .witness import attained as attained
from .witness import worst_case as worst_case
