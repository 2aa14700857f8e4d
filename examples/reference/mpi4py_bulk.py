"""The rate of large numpy arrays from one process to another with mpi4py, for comparison.

Run as: mpiexec -n 2 python mpi4py_bulk.py BYTES...
Prints one line of JSON: gigabytes per second by bytes.
"""

import json
import sys
import time

import numpy
from mpi4py import MPI

LASTING = 0.2
REPEATS_MIN = 3

world = MPI.COMM_WORLD
rank = world.Get_rank()
rates = {}
for size in map(int, sys.argv[1:]):
    values = numpy.ones(size // 8)
    found = []
    start = time.perf_counter()
    while True:
        is_over = len(found) > REPEATS_MIN and time.perf_counter() - start > LASTING
        request = numpy.array([is_over])
        if rank == 0:
            asked = time.perf_counter()
            world.Send(request, 1)
            if is_over:
                break
            world.Recv(values, 1)
            found.append(size / 1e9 / (time.perf_counter() - asked))
        else:
            world.Recv(request, 0)
            if request[0]:
                break
            world.Send(values, 0)
    if rank == 0:
        rates[size] = sorted(found)[len(found) // 2]
if rank == 0:
    print(json.dumps(rates))
