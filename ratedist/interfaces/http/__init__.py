"""The calculator over HTTP: JSON under /v1 and a page at /; needs the extra ``serve``."""
