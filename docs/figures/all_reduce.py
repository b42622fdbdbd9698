"""Gathering, two shots and plain all-reduce: error, wire, seconds, losses."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "all-reduce"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
