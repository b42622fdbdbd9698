"""Telemetry of a training run: the account of every rank, and a report with verdicts."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
