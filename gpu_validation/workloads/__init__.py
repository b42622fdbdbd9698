"""Training problems; ``workload(name)`` returns one.

============== ============================================== ==========================================
name           problem                                        constants of the theorems
============== ============================================== ==========================================
quadratic      model A: additive noise                        exact, and the law of a run too
multiplicative model B: noise that grows with the gradient    exact, and the law of a run too
heterogeneous  model C: different quadratics, no noise        exact, and the limit of a run too
kink           convex with a kink, hardest for local steps    exact
ridge          ridge regression on a table                    L, mu, F* exact; sigma2 grows with x
logistic       logistic or softmax regression on a table      L, mu, F* exact; sigma2 bounded for all x
network        one hidden layer, digits                       estimated at the start
lenet          two convolutions, digits                       estimated at the start
characters     language model, Markov text of known entropy   estimated at the start
resnet20       CIFAR-shaped images, 0.27 million parameters   estimated at the start
vgg16          CIFAR-shaped images, 14.7 million parameters   estimated at the start
resnet50       CIFAR-shaped images, 23.5 million parameters   estimated at the start
============== ============================================== ==========================================

Problems on data have a ``source`` (``Bundled``, ``DigitImages``, ``Libsvm``, ``Cifar``, ``SyntheticImages``,
``MarkovText``) and a ``split`` over workers (``Iid``, ``Dirichlet``).  Without a split every worker draws from all
samples.
"""

from .data import Bundled as Bundled
from .data import Cifar as Cifar
from .data import DigitImages as DigitImages
from .data import Dirichlet as Dirichlet
from .data import Iid as Iid
from .data import Libsvm as Libsvm
from .data import MarkovText as MarkovText
from .data import SyntheticImages as SyntheticImages
from .images import ResNet20 as ResNet20
from .images import ResNet50 as ResNet50
from .images import Vgg16 as Vgg16
from .linear import LogisticRegression as LogisticRegression
from .linear import Ridge as Ridge
from .network import Characters as Characters
from .network import LeNet as LeNet
from .network import SmallNetwork as SmallNetwork
from .quadratic import HeterogeneousQuadratics as HeterogeneousQuadratics
from .quadratic import Kink as Kink
from .quadratic import MultiplicativeQuadratic as MultiplicativeQuadratic
from .quadratic import Quadratic as Quadratic
from .registry import all_workloads as all_workloads
from .registry import workload as workload
from .workload import Constants as Constants
from .workload import Description as Description
from .workload import Draw as Draw
from .workload import Loss as Loss
from .workload import Workload as Workload
