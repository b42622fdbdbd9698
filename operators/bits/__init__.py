"""Write, read and concatenate bit strings, and the integer codes of which they are made."""
