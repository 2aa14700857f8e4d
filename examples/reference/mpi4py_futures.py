"""Empty tasks per second with mpi4py's pool, for comparison.

Run as: mpiexec -n 2 python -m mpi4py.futures mpi4py_futures.py
The first process submits and gathers, the others work. Prints one line of JSON.
"""

import json
import time

from mpi4py.futures import MPIPoolExecutor

TASKS = 20_000


def empty(_):
    return None


def submit_and_gather(pool, count):
    futures = [pool.submit(empty, n) for n in range(count)]
    for future in futures:
        future.result()


if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        submit_and_gather(pool, TASKS // 10)
        start = time.perf_counter()
        submit_and_gather(pool, TASKS)
        seconds = time.perf_counter() - start
    print(json.dumps({"tasks_per_second": TASKS / seconds}))
