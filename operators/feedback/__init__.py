"""Feedback methods: compressors with memory, one method per file. The part that a message drops is sent later."""
