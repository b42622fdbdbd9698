"""Periodic averaging inside the training loops of other libraries, each of which is imported only where it is used."""
