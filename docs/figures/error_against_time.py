"""Loss against wall-clock for several tau and AdaComm (after Wang and Joshi 2018, loss against time)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "adacomm"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
