"""The same for problems that were held out later (nothing published to reproduce)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "prediction-anew"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
