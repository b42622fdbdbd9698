"""Turn symbols, supports and short floats into bits, and bound how many bits that takes."""
