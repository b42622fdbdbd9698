"""Map real numbers to finite sets: grids, codebooks, rotations before them, and scales that are sent."""
