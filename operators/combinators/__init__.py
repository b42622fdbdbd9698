"""Make operators of other operators: one after the other, one for the rest of another, or one for every part."""
