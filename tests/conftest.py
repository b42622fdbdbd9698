"""One thread a process, set before torch is imported: on two cores more threads only wait for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
