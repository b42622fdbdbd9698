"""What all tests share: one thread a process, and the hypothesis profiles.

More threads than one only wait for each other where two workers share two cores; set before torch is imported.
Derandomised and without deadlines by default; deeper by hand with ``--hypothesis-profile=deep``.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("ci", derandomize=True, database=None, max_examples=150, **COMMON)
settings.register_profile("deep", max_examples=20_000, **COMMON)
if settings.get_current_profile_name() == "default":
    settings.load_profile("ci")
