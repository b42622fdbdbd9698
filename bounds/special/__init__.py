"""Special functions of the theory: one file each, a float64 kernel and a ball-arithmetic twin."""
