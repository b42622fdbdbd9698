"""Laws of one gradient coordinate, one per file."""

from .bernoulli_gaussian import BernoulliGaussian as BernoulliGaussian
from .empirical import Empirical as Empirical
from .gaussian import Gaussian as Gaussian
from .generalised_gaussian import GeneralisedGaussian as GeneralisedGaussian
from .laplace import Laplace as Laplace
from .source import Cells as Cells
from .source import Source as Source
from .student import Student as Student
