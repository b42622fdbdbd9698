"""AdaComm on a residual network and images of CIFAR's form (after Wang and Joshi 2018, VGG-16 and ResNet-50)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "adacomm-cifar"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
