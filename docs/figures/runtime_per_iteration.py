"""Seconds per iteration against tau and the number of workers, with stragglers (after Wang and Joshi 2018)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "straggler"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
