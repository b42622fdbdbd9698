"""Cluster, links and codecs: seconds of local steps and averagings."""
