"""``python -m tests.compile`` compiles what most tests run, once, before several workers would each do it.

Two processes fit small models, no kernel in both; the results are in numba's cache beside the sources, where every
worker, every process that a test starts and every later run finds them. With a full cache this takes seconds.
"""

import subprocess
import sys

HALVES = ("TWO_CLASSES", "OTHERS")

if __name__ == "__main__":
    if len(sys.argv) > 1:
        from discreet.models import compile as fits

        for _ in fits.compile_kernels(getattr(fits, sys.argv[1])):
            pass
    else:
        running = [subprocess.Popen([sys.executable, "-m", "tests.compile", half]) for half in HALVES]
        sys.exit(max(process.wait() for process in running))
