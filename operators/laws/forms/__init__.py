"""The forms in which other projects write their compressors, each as a function of a vector."""
