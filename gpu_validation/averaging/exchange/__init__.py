"""How movements or models travel."""
