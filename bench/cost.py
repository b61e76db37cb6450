"""What a statement costs in instructions of user code, which no machine changes: `make cost`.

Millrace runs under callgrind (epoll, one worker, 8 connections, two rules) before a MariaDB, sysbench asks. The counters are zeroed after
a warm-up, so that logins and the opening of connections are not among them. Beside each kind of statement stand HAProxy's figure for the
same relay (`--haproxy`), the code that runs at least once in a hundred statements (lines of 64 bytes), and what is wanted.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import bench

# Kind: sysbench's script, how it sends (texts, or prepared statements), more of its options, instructions that are wanted.
KINDS = {
    "select": ("oltp_point_select", "disable", [], 7000),
    "select-prepared": ("oltp_point_select", "auto", [], 5500),
    "transaction": ("oltp_read_only", "disable", ["--range-selects=off"], 6000),
    "transaction-prepared": ("oltp_read_only", "auto", ["--range-selects=off"], 5000),
    "read-only": ("oltp_read_only", "disable", ["--skip-trx=on"], 8000),
    "read-write": ("oltp_read_write", "disable", [], 8000),
    "read-write-prepared": ("oltp_read_write", "auto", [], 6500),
    "update": ("oltp_update_non_index", "disable", [], 8000),
    "insert": ("oltp_insert", "disable", [], 8000),
}
CONNECTIONS = 8
LINE = 64


def ask(port, kind, events):
    """Runs that many events; how many statements they were."""
    script, prepared, extra, _ = KINDS[kind]
    command = ["sysbench", script, "--tables=2", "--table-size=20000", *extra, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}",
               f"--mysql-user={bench.USER}", f"--mysql-password={bench.PASSWORD}", f"--mysql-db={bench.SCHEMA}", f"--db-ps-mode={prepared}",
               f"--threads={CONNECTIONS}", f"--events={events}", "--time=0", "--mysql-ssl=off", "run"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    queries = re.search(r"queries:\s+(\d+)", ran.stdout)
    if ran.returncode != 0 or not queries:
        raise SystemExit(f"{kind}: " + ran.stdout.strip()[-400:])
    return int(queries.group(1))


def events_of(kind, statements):
    each = 1 if KINDS[kind][0] not in ("oltp_read_only", "oltp_read_write") else 14
    return max(CONNECTIONS, statements // each)


def counted(process, folder):
    """What the busiest thread has run since the counters were zeroed, the worker's: (instructions, file). Others work by the clock."""
    for old in os.listdir(folder):
        os.unlink(os.path.join(folder, old))
    control(process, "-d")
    until = time.time() + 120
    while time.time() < until:
        time.sleep(0.5)
        totals = []
        for name in os.listdir(folder):
            total = re.search(r"^(?:totals|summary): (\d+)", open(os.path.join(folder, name)).read(), re.MULTILINE)
            totals.append((int(total.group(1)) if total else None, os.path.join(folder, name)))
        if totals and all(total is not None for total, _ in totals) and max(totals)[0] > 0:
            return max(totals)
    raise SystemExit("callgrind wrote nothing")


def control(process, what):
    subprocess.run(["callgrind_control", what, str(process.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lines_of_code(dump, at_least):
    """Lines of code of which one instruction or more has run at least so often."""
    lines, at, skip = set(), 0, False
    with open(dump) as file:
        for line in file:
            if line.startswith("calls="):
                skip = True  # the next line is the call's cost, counted where it ran
                continue
            found = re.match(r"(0x[0-9a-f]+|\+\d+|-\d+|\*) (?:\S+) (\d+)$", line)
            if not found:
                continue
            word = found.group(1)
            at = int(word, 16) if word.startswith("0x") else at if word == "*" else at + int(word)
            if skip:
                skip = False
            elif int(found.group(2)) >= at_least:
                lines.add(at // LINE)
    return len(lines)


def millrace(folder, server, target):
    port, admin = bench.free_port(), bench.free_port()
    home, out = os.path.join(folder, "millrace"), os.path.join(folder, "out")
    os.makedirs(home)
    os.makedirs(out)
    path = os.path.join(home, "proxysql.cnf")
    with open(path, "w") as file:
        file.write(bench.CONFIGURATION.format(home=home, admin=admin, workers=1, port=port, server=server.port, user=bench.USER, password=bench.PASSWORD))
    process = bench.start(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--separate-threads=yes", f"--callgrind-out-file={out}/dump.%p",
                           os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", home, "--io-driver", "epoll"], home, "millrace")
    bench.wait_for(port, process, "Millrace", seconds=300)
    return port, process, out


def haproxy(folder, server):
    port, out = bench.free_port(), os.path.join(folder, "haproxy-out")
    os.makedirs(out)
    path = os.path.join(folder, "haproxy.cfg")
    with open(path, "w") as file:
        file.write("global\n  nbthread 1\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n"
                   f"listen mysql\n  bind 127.0.0.1:{port}\n  server one 127.0.0.1:{server.port}\n")
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    process = bench.start(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}/dump.%p", program, "-db", "-f", path], folder, "haproxy")
    bench.wait_for(port, process, "HAProxy", seconds=300)
    return port, process, out


def measure(way, kind, statements):
    port, process, out = way
    # What an INSERT's id means is asked when it has come often (decision 0030).
    ask(port, kind, events_of(kind, statements // 2))
    control(process, "-z")
    count = ask(port, kind, events_of(kind, statements))
    instructions, dump = counted(process, out)
    return instructions / count, dump, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="target")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of statements, with commas between them: " + " ".join(KINDS))
    parser.add_argument("--statements", type=int, default=8000)
    parser.add_argument("--haproxy", action="store_true", help="HAProxy beside it")
    parser.add_argument("--keep", help="a folder for what callgrind wrote, one file a kind (for callgrind_annotate)")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-cost-") as folder:
        server = bench.MariaDb(folder)
        ours, theirs = millrace(folder, server, wish.target), haproxy(folder, server) if wish.haproxy else None
        print(f"{'a statement':<22}{'instructions':>14}{'wanted':>9}{'code, KiB':>11}{'HAProxy':>9}")
        for kind in wish.only.split(","):
            instructions, dump, count = measure(ours, kind, wish.statements)
            code = lines_of_code(dump, max(1, count // 100)) * LINE / 1024
            if wish.keep:
                os.makedirs(wish.keep, exist_ok=True)
                subprocess.run(["cp", dump, os.path.join(wish.keep, kind)], check=True)
            beside = f"{measure(theirs, kind, wish.statements)[0]:>9.0f}" if theirs else ""
            print(f"{kind:<22}{instructions:>14.0f}{KINDS[kind][3]:>9}{code:>11.1f}{beside}", flush=True)
        for way in (ours, theirs):
            if way:
                bench.stop(way[1])
        bench.stop(server.process)


if __name__ == "__main__":
    sys.exit(main())
