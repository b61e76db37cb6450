"""What a request of an application that connects for each costs: time beside a direct connection and HAProxy, and what arrives at the server.

One MariaDB, one HAProxy, a relay that reads nothing and one Millrace with two workers on this machine. A program of C (requests.c, MariaDB's library) connects, says
what a framework says first, reads three rows and goes, one client or eight at once. The ways take turns, several rounds, and the median
counts. `SHOW GLOBAL STATUS` says what the server was sent for each request.
"""

import argparse
import os
import statistics
import subprocess
import tempfile

import bench
from bench import MariaDb, PASSWORD, SCHEMA, USER, haproxy, relay, say, stop

APPLICATIONS = [
    ("nothing", []),
    ("PyMySQL", ["SET AUTOCOMMIT = 0"]),
    ("WordPress", ["SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'", "SELECT @@SESSION.sql_mode",
                   "SET SESSION sql_mode='NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"]),
    ("Rails", ["SET NAMES utf8mb4, @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), @@SESSION.sql_auto_is_null = 0, "
               "@@SESSION.wait_timeout = 2147483"]),
    ("Laravel", ["set names 'utf8mb4' collate 'utf8mb4_unicode_ci'",
                 "set session sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO'"]),
]
READS = 3


def compiled(folder):
    program = os.path.join(folder, "requests")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requests.c")
    subprocess.run(["cc", "-O2", "-o", program, source, "-lmariadb"], check=True)
    return program


def run(program, port, clients, requests, first, authority=None):
    """Microseconds a request, of all clients at once. With an authority's file, by TLS."""
    words = [program, "127.0.0.1", str(port), USER, PASSWORD, SCHEMA, str(requests), str(READS), authority or "-", *first]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(clients)]
    took = [float(one.communicate()[0]) for one in running]
    return statistics.mean(took)


def questions(server):
    said = subprocess.run(["mariadb", "--no-defaults", "-uroot", f"--socket={server.socket}", "-N", "-e", "SHOW GLOBAL STATUS LIKE 'Queries'"],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(said.split()[1])


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "a processor without a name")


def table(folder, wish, program, tls):
    """With `tls` a direct connection and HAProxy's are the client's own TLS, and Millrace's client is beside it without."""
    server = MariaDb(folder, tls)
    between = haproxy(folder, server)
    bare = relay(folder, server, wish.target, "uring")
    through = bench.millrace(folder, server, wish.target, "uring", 2, tls=tls)
    secure = server.certificate
    ways = [("direct", server, secure), ("relay", bare, secure), ("HAProxy", between, secure), ("Millrace", through, None)]
    ways = [way for way in ways if way[1]]
    try:
        say("\nWith TLS to the server" if tls else "\nWithout TLS")
        names = [name for name, _, _ in ways]
        print("| application | clients | " + " | ".join(f"{name} µs" for name in names) + " | of direct | of HAProxy | statements a request, direct | Millrace |")
        print("|---|--:|" + "--:|" * (len(ways) + 4))
        for name, first in APPLICATIONS:
            for clients in [1, 8]:
                took, sent = {way: [] for way in names}, {}
                for _, at, secure in ways:
                    run(program, at.port, clients, 30, first, secure)
                for _ in range(wish.rounds):
                    for way, at, secure in ways:
                        before = questions(server)
                        took[way].append(run(program, at.port, clients, wish.each, first, secure))
                        # The question itself is one, and the client that asks says another.
                        sent[way] = (questions(server) - before - 1) / (clients * wish.each)
                us = {way: statistics.median(all_of_it) for way, all_of_it in took.items()}
                print(f"| {name} | {clients} | " + " | ".join(f"{us[way]:.0f}" for way in names) + f" | {us['Millrace'] / us['direct']:.2f} "
                      f"| {us['Millrace'] / us['HAProxy']:.2f} | {sent['direct']:.2f} | {sent['Millrace']:.2f} |", flush=True)
    finally:
        for _, one, _ in ways:
            stop(one.process)


def main():
    reading = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reading.add_argument("--target", default="target")
    reading.add_argument("--requests", action="store_true", help="this table")
    reading.add_argument("--rounds", type=int, default=5)
    reading.add_argument("--each", type=int, default=300, help="requests of a client in a round")
    reading.add_argument("--only-tls", action="store_true", help="the table with TLS to the server alone")
    wish = reading.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
        program = compiled(folder)
        for tls in [False, True] if not wish.only_tls else [True]:
            home = os.path.join(folder, "tls" if tls else "plain")
            os.makedirs(home)
            table(home, wish, program, tls)


if __name__ == "__main__":
    say("A request of an application that connects for each, on " + processor())
    main()
