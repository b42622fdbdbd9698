"""Remember around a compressor, one method a file: what the operator drops today is sent later."""
