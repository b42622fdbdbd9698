"""Laws of one gradient coordinate, one per file."""

from .empirical import Empirical as Empirical
from .laws import BernoulliGaussian as BernoulliGaussian
from .laws import Gaussian as Gaussian
from .laws import GeneralisedGaussian as GeneralisedGaussian
from .laws import Laplace as Laplace
from .laws import Student as Student
from .source import Cells as Cells
from .source import Source as Source
