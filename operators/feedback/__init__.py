"""Memory around a compressor, one method per file: what the operator drops today is sent later."""
