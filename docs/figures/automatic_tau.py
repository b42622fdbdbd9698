"""What the rule without tau_0 loses to the best fixed tau (a hindsight regret; nothing published to reproduce)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "auto-tau"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
