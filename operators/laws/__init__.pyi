from .budget import Budget as Budget
from .check import check as check
from .parametrize import parametrize_with_checks as parametrize_with_checks
from .verdict import Outcome as Outcome
from .verdict import Report as Report
from .verdict import Verdict as Verdict
