"""Time of local steps and of averagings: made steady, measured, fitted to laws, and compared with the model."""

from .padding import PaddedSteps as PaddedSteps
from .scheduling import Scheduling as Scheduling
from .scheduling import schedule as schedule
