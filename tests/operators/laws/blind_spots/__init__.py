"""Wrong compressors that the conformance kit once passed, by kind: what is tried nowhere is never found wrong."""
