"""Compressors of one's own: functions, hooks, pairs and codecs of other projects, as operators."""
