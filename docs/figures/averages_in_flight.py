"""How much sooner averages in flight and outer steps come to a loss, beside what the exact model says."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "overlap"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
