"""Engines that run independent calls: processes of this machine, or jobs of a cluster."""
