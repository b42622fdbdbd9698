"""Times of local steps and averagings: padded, measured, fitted to laws, and compared with the runtime model."""

from .fit import LawFit as LawFit
from .fit import StepFit as StepFit
from .fit import fit_law as fit_law
from .padding import PaddedSteps as PaddedSteps
from .padding import step_seconds as step_seconds
from .rounds import RoundFit as RoundFit
from .rounds import delay_from_rounds as delay_from_rounds
from .rounds import fit_rounds as fit_rounds
from .rounds import predicted_seconds_per_iteration as predicted_seconds_per_iteration
from .rounds import slowest_seconds as slowest_seconds
