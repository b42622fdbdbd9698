"""Sources of samples; none of them downloads anything."""

from .bundled import Bundled as Bundled
from .bundled import DigitImages as DigitImages
from .cifar import Cifar as Cifar
from .dataset import Dataset as Dataset
from .dataset import Source as Source
from .dataset import load as load
from .libsvm import Libsvm as Libsvm
from .markov_text import MarkovText as MarkovText
from .split import Dirichlet as Dirichlet
from .split import Iid as Iid
from .split import Split as Split
from .synthetic_images import SyntheticImages as SyntheticImages
