"""How the hot loops become machine code once for a machine, and where the code is kept.

A loop is compiled when it is first called with arguments of some types.  The code goes to the first folder that can be
written, of those in ``folders``, and is looked for in all of them; code that came with the package is there as well.
"""

from .jit import jit as jit
