"""The calls of the bound calculator, each in Python, on the command line and over HTTP."""
