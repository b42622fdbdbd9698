"""What can go wrong in a worker process: the module that it computes with in these tests."""

import os
import resource
import signal
import sys
import time


def prepare():
    pass


def deep(n):
    return deep(n + 1)


def answer(name, given):
    match name:
        case "type":
            raise TypeError("unsupported operand type(s)")
        case "value":
            raise ValueError("d must satisfy d >= 1; got d = 0: give more")
        case "memory":
            return bytearray(1 << 45)
        case "torch":
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")
        case "runtime":
            raise RuntimeError("a generator")
        case "recursion":
            return deep(0)
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "unspeakable":
            return {"value": lambda: None}
        case "end":
            os._exit(5)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "abort":
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.abort()
        case "compute":
            return {"value": sum(range(10**13))}
        case "sleep":
            time.sleep(given["seconds"])
    return {"value": os.getpid()}
