"""Engines that carry out independent calls: processes of this machine, or jobs of a cluster."""
