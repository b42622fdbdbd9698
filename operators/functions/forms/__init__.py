"""Call compressors in the forms in which other projects write them, each as a function of a vector."""
