"""Periodic averaging in the training loops of other libraries; each library is imported only where it is used."""
