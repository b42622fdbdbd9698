"""The random streams of a run: each is a fold of the run's key, and no two of a run are the same.

A fold is a number by which ``Key.fold_in`` derives an independent key.  Committed records were made with these numbers.
"""

from __future__ import annotations

MINI_BATCHES = 0  # of every rank and local step
MESSAGES = 1  # randomness of the operator, by round and rank
VECTORS = 2  # synthetic vectors that are compressed outside of training
STEP_TIMES = 3  # durations of local steps, by worker
SLEEPS = 4  # imposed seconds of a synchronisation, the same on all ranks
TIMED_ALONE = 5  # mini-batches and messages of synchronisations that are timed by themselves
