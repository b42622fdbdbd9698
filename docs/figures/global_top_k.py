"""Global top-k: bits, mass and training (after Shi et al. 2019)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "gtopk"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
