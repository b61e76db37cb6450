"""Side by side: much at once. A result of 2 GB and a LOAD DATA LOCAL INFILE of 1 GB, directly, through HAProxy and through Millrace, compressed and not.

One MariaDB, one client (the `mariadb` command line), everything on loopback of one machine. The rows are 1,000 random letters, which deflate packs to about two
thirds in the loaded file, and to about a tenth in the result, where each comes many times in succession; the loaded table keeps the first row only (all have one key), so that the server costs little. The rounds are interleaved; figures are medians. CPU is the user and system
time of the whole proxy process, from /proc/PID/stat; memory is what the process had at most beyond what it had before (VmHWM, reset before each run).
"""

import argparse
import os
import random
import statistics
import string
import subprocess
import tempfile
import time

import bench

ROW = 1000
GIB = 1 << 30


class Server(bench.MariaDb):
    def fill(self, rows):
        """So many different rows, asked for several times over."""
        noise = random.Random(1)
        path = os.path.join(self.folder, "rows")
        with open(path, "w") as file:
            for number in range(rows):
                file.write(f"{number}\t{''.join(noise.choices(string.ascii_letters, k=ROW))}\n")
        self.sql(f"CREATE TABLE {bench.SCHEMA}.much (id INT PRIMARY KEY, words VARCHAR({ROW}) CHARACTER SET latin1) ENGINE=MyISAM; "
                 f"CREATE TABLE {bench.SCHEMA}.nowhere LIKE {bench.SCHEMA}.much; "
                 f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {bench.SCHEMA}.much")
        return path


def peak(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def run(way, sql, compressed):
    """(seconds, CPU seconds of the proxy, bytes that it had at most beyond before)."""
    pids = bench.children(way.process.pid) if way.process else []
    for pid in pids:
        with open(f"/proc/{pid}/clear_refs", "w") as file:
            file.write("5")
    had = sum(peak(pid) for pid in pids)
    before = sum(bench.cpu(way.process.pid)) if way.process else 0
    begun = time.monotonic()
    subprocess.run(["mariadb", "--no-defaults", "--skip-ssl", "--quick", "--local-infile=1", "-N", *(["--compress"] if compressed else []), "-h127.0.0.1",
                    f"-P{way.port}", f"-u{bench.USER}", f"-p{bench.PASSWORD}", bench.SCHEMA, "-e", sql], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    after = sum(bench.cpu(way.process.pid)) if way.process else 0
    return seconds, after - before, sum(peak(pid) for pid in pids) - had


def millrace(folder, server, target, name, driver, fast_forward=False, compressed=False):
    port, admin = bench.free_port(), bench.free_port()
    home = os.path.join(folder, name.replace(" ", "-").replace(",", ""))
    os.makedirs(home)
    text = bench.CONFIGURATION.format(home=home, admin=admin, workers=1, port=port, server=server.port, user=bench.USER, password=bench.PASSWORD)
    text = text.replace("monitor_enabled = false", "monitor_enabled = false\n    enable_load_data_local_infile = true")
    text = text.replace("default_hostgroup = 0,", "default_hostgroup = 0, fast_forward = 1,") if fast_forward else text
    text = text.replace("max_connections = 1000 }", "max_connections = 1000, compression = 1 }") if compressed else text
    path = os.path.join(home, "proxysql.cnf")
    with open(path, "w") as file:
        file.write(text)
    process = bench.start([os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", home, "--io-driver", driver], home, "millrace")
    bench.wait_for(port, process, name)
    return bench.Way(name, port, process)


def main():
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--rounds", type=int, default=3, help="of every way, interleaved (3)")
    reading.add_argument("--gib", type=float, default=2, help="of the result; half as much is loaded (2)")
    reading.add_argument("--target", default="target", help="cargo's target folder (given by run.sh)")
    reading.add_argument("--bulk", action="store_true", help=argparse.SUPPRESS)
    reading.add_argument("--cache", help=argparse.SUPPRESS)
    wish = reading.parse_args()
    rows = 64 << 10
    times = max(1, round(wish.gib * GIB / ROW / rows))
    with tempfile.TemporaryDirectory(prefix="millrace-bulk-") as folder:
        bench.say("Starting MariaDB and making rows ...")
        server = Server(folder)
        path = server.fill(rows)
        load = os.path.join(folder, "load")
        with open(path) as rows_of_one, open(load, "w") as file:
            once = rows_of_one.read()
            for _ in range(max(1, times // 2)):
                file.write(once)
        select = f"SELECT words FROM much, seq_1_to_{times} AS again"
        tasks = [("result", select, rows * times * ROW), ("LOAD DATA", f"LOAD DATA LOCAL INFILE '{load}' IGNORE INTO TABLE nowhere (@id, words) SET id = 1", os.path.getsize(load))]
        ways = [bench.Way("direct", server.port), bench.haproxy(folder, server)]
        ways += [millrace(folder, server, wish.target, f"Millrace, {driver}", driver) for driver in ("uring", "epoll")]
        ways += [millrace(folder, server, wish.target, "Millrace, fast forward, uring", "uring", fast_forward=True),
                 millrace(folder, server, wish.target, "Millrace, compressed to the server, uring", "uring", compressed=True)]
        figures = {}
        try:
            for turn in range(wish.rounds):
                for what, sql, size in tasks:
                    for compressed in (False, True):
                        for way in ways:
                            bench.say(f"round {turn + 1} of {wish.rounds}: {what}{', compressed' * compressed}: {way.name}")
                            figures.setdefault((what, size, compressed, way.name), []).append(run(way, sql, compressed))
        finally:
            for way in ways:
                if way.process:
                    bench.stop(way.process)
            bench.stop(server.process)
    report(figures, wish)


def report(figures, wish):
    lines = [f"One client, MariaDB on the same machine ({os.cpu_count()} cores); medians of {wish.rounds} rounds", "",
             "| what | client compresses | | seconds | of direct | CPU s per GB | of HAProxy's | at most MB more |", "|:--|:--|:--|--:|--:|--:|--:|--:|"]
    medians = {key: [statistics.median(column) for column in zip(*runs)] for key, runs in figures.items()}
    for (what, size, compressed, name), (seconds, cost, more) in medians.items():
        direct = medians[(what, size, compressed, "direct")][0]
        peer = medians[(what, size, compressed, "HAProxy TCP, 1 thread")][1]
        costs = [f"{cost / size * 1e9:.2f}", f"{cost / peer:.2f}" if peer else "", f"{more / 1e6:.1f}"] if name != "direct" else ["", "", ""]
        lines.append(f"| {what}, {size / 1e9:.2f} GB | {'yes' if compressed else 'no'} | {name} | {seconds:.1f} | {seconds / direct:.2f} | {' | '.join(costs)} |")
    text = "\n".join(lines) + "\n"
    out = os.path.join(bench.HERE, "out")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "bulk.md"), "w") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
