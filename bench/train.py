"""Traffic that a build learns from (`make pgo`): statements as applications send them, by both drivers.

One MariaDB, one Millrace for each driver with the two rules of the other tables. sysbench asks all kinds of `make cost` with one
connection, eight and sixty-four; then applications connect for each request, without TLS and with it. Nothing is measured.
"""

import argparse
import os
import subprocess
import tempfile

import bench
import cost
import requests
from bench import MariaDb, say, stop


def asks(port, seconds):
    for kind, (script, prepared, extra, _) in cost.KINDS.items():
        for threads in [1, 8, 64]:
            command = ["sysbench", script, "--tables=2", "--table-size=20000", *extra, "--db-driver=mysql", "--mysql-host=127.0.0.1",
                       f"--mysql-port={port}", f"--mysql-user={bench.USER}", f"--mysql-password={bench.PASSWORD}", f"--mysql-db={bench.SCHEMA}",
                       f"--db-ps-mode={prepared}", f"--threads={threads}", f"--time={seconds}", "--mysql-ssl=off",
                       "--mysql-ignore-errors=1213,1020,1062,1205", "run"]
            ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if ran.returncode != 0:
                raise SystemExit(f"{kind}: " + ran.stdout.strip()[-400:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, help="where release/millrace is, built to be trained")
    parser.add_argument("--seconds", type=int, default=2, help="of each kind and number of connections")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-train-") as folder:
        program = requests.compiled(folder)
        server = MariaDb(folder)
        for driver in ["epoll", "uring"]:
            say(f"training, {driver}")
            way = bench.millrace(folder, server, wish.target, driver, 2)
            asks(way.port, wish.seconds)
            for _, first in requests.APPLICATIONS:
                requests.run(program, way.port, 4, 200, first)
            # What ran is written down at an orderly end.
            way.process.terminate()
            way.process.wait()
        stop(server.process)


if __name__ == "__main__":
    main()
