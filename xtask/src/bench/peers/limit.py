"""Runs a program on the first N of the processors this process may use.

    python limit.py N PROGRAM [ARGUMENT ...]

Every program of the comparison starts like this, because MLX has no setting for its number of threads.
"""
import os, sys

count = int(sys.argv[1])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
elif count < os.cpu_count():
    sys.exit("this system can't keep a program to some of its processors: leave --threads out")
os.execvp(sys.argv[2], sys.argv[2:])
