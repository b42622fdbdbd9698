"""AdaComm with compressed rounds against the joint bound."""

from .study import PRESET as PRESET
