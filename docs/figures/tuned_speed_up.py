"""How much faster local steps reach a loss, every schedule at its own tuned rate (after Wang and Joshi 2018)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "speed-up"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
