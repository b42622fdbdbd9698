"""Speed-up by averages in flight and outer steps, measured and predicted by the exact model."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "overlap"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
