"""Majority vote under three attacks (after Bernstein et al. 2019), and election coding."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "byzantine"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
