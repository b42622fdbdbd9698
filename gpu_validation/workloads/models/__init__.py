"""Network architectures in plain torch, one per file."""

from .initialise import initialised as initialised
from .lenet import lenet as lenet
from .resnet20 import resnet20 as resnet20
from .resnet50 import resnet50 as resnet50
from .vgg16 import vgg16 as vgg16
