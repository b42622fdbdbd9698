"""Distortion and training of layer-wise against entire-model compression (after Dutta et al. 2020)."""

from __future__ import annotations

from functools import partial

from common import main, study_check, study_figures

STUDY = "layerwise"
figures, check = partial(study_figures, STUDY), partial(study_check, STUDY)

if __name__ == "__main__":
    main(figures)
