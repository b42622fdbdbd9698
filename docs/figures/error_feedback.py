"""The counterexamples that error feedback repairs, and its batch size (after Karimireddy et al. 2019)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "error-feedback"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
