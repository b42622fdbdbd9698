"""The calculator on the command line, over HTTP and as a page."""
