"""What the calls share: clusters, codecs, compressors and constants, and the evaluation of a bound at a point."""
