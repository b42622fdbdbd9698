"""Ridge and logistic regression against bits sent; bits to an accuracy against omega (after Albasyoni et al. 2020)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "compressors"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
