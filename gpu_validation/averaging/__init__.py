"""Local-update SGD for a training script: rounds of local steps, each ended by a synchronisation."""
