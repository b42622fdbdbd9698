"""Choose what a function draws, the random numbers of torch, numpy, Python and ``operators.random``, as words.

Every generator is a stream of 32-bit words, identified by its state at its first draw in a call: two generators
seeded alike are one stream, and a generator seeded with the same number in every call is not random at all.
"""
