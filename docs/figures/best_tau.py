"""The best tau in measured runs against what the theorems and the plan advise."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "tau-star"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
