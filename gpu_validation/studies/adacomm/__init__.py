"""AdaComm against fixed periods on an emulated network, on small networks and on CIFAR's form."""

from .study import PRESET as PRESET
