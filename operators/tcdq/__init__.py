"""Encode and decode trellis-coded, subtractively dithered, entropy-coded quantisation: see ``compressors/tcdq.py``."""
