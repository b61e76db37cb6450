"""What scripts cost (A97): none, empty hooks, the tokenizer at each statement, a rewrite, a copy of each result; and hooks of today.

One MariaDB and one Millrace on this machine, whose script is changed by a LOAD; sysbench's point selects, the same number of them each time. The
scripts take turns, several rounds, and the median counts. CPU is the user and system time of the proxy for a statement. With `--instructions` the
proxy runs under callgrind instead, and what a script costs is counted in instructions, which no machine changes.
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time

import bench
import cost
from bench import PASSWORD, SCHEMA, USER, MariaDb, say, stop

QUEUE = "proxy.queries:append(1, packet, { resultset_is_needed = true }) return proxy.PROXY_SEND_QUERY"
COPY = """
function read_query_result(inj)
  local fields, rows, res = {}, {}, inj.resultset
  if #res.fields == 0 then return end
  for i = 1, #res.fields do fields[i] = { type = res.fields[i].type, name = res.fields[i].name } end
  for row in res.rows do rows[#rows + 1] = row end
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
  return proxy.PROXY_SEND_RESULT
end"""
TODAY = "local m = require('millrace') "
SCRIPTS = {
    "none": None,
    "empty": "function read_query(packet) end",
    "queued": f"function read_query(packet) if packet:byte() == 3 then {QUEUE} end end function read_query_result(inj) local r = inj.resultset.rows end",
    "tokenizer": "local tokenizer = require('proxy.tokenizer') function read_query(packet) "
                 "if packet:byte() == 3 then local first = tokenizer.first_stmt_token(tokenizer.tokenize(packet:sub(2))) end end",
    "rewrite": "function read_query(packet) if packet:byte() == 3 then "
               "proxy.queries:append(1, string.char(3) .. packet:sub(2):gsub('^SELECT', 'SELECT /* seen */')) return proxy.PROXY_SEND_QUERY end end",
    "copy": f"function read_query(packet) if packet:byte() == 3 then {QUEUE} end end {COPY}",
    "today-empty": TODAY + "function m.on.statement(s) end",
    "today-rewrite": TODAY + "function m.on.statement(s) if s.text:find('^SELECT') then return m.rewrite((s.text:gsub('^SELECT', 'SELECT /* seen */'))) end end",
    "today-mask": TODAY + "function m.on.rows(s, r) return r:map(function(row) row.c = 'xxxx' end, { 'c', optional = true }) end",
}


class Proxy:
    """One Millrace, whose script can be changed."""

    def __init__(self, folder, server, target, workers, under=()):
        self.port, self.admin = bench.free_port(), bench.free_port()
        home = os.path.join(folder, "millrace")
        os.makedirs(home)
        path = os.path.join(home, "proxysql.cnf")
        with open(path, "w") as file:
            file.write(bench.CONFIGURATION.format(home=home, admin=self.admin, workers=workers, port=self.port, server=server.port, user=USER, password=PASSWORD))
        command = [*under, os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", home, *(["--io-driver", "epoll"] if under else [])]
        self.process = bench.start(command, home, "millrace")
        bench.wait_for(self.port, self.process, "Millrace", seconds=300)

    def load(self, text):
        sql = "DELETE FROM mysql_scripts; "
        if text:
            body = text.replace("'", "''")
            sql += f"INSERT INTO mysql_scripts (script_name, body, on_error) VALUES ('bench', '{body}', 'error'); "
        subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.admin}", "-uadmin", "-padmin", "-e", sql + "LOAD MYSQL SCRIPTS TO RUNTIME"], check=True)


def ask(port, connections, statements):
    """Seconds that so many point selects took."""
    command = ["sysbench", "oltp_point_select", "--tables=2", "--table-size=20000", "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}",
               f"--mysql-user={USER}", f"--mysql-password={PASSWORD}", f"--mysql-db={SCHEMA}", "--db-ps-mode=disable", f"--threads={connections}",
               f"--events={statements}", "--time=0", "--mysql-ssl=off", "run"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    took = re.search(r"total time:\s+([\d.]+)s", ran.stdout)
    if ran.returncode != 0 or not took:
        raise SystemExit(ran.stdout.strip()[-400:])
    return float(took.group(1))


def timed(wish, folder, server):
    proxy = Proxy(folder, server, wish.target, wish.workers)
    try:
        print(f"{'script':<16}{'clients':>8}{'CPU µs':>9}{'over none':>11}{'elapsed s':>11}{'a second':>10}", flush=True)
        for connections in map(int, wish.connections.split(",")):
            seen = {name: [] for name in wish.only}
            for _ in range(wish.rounds):
                for name in wish.only:
                    proxy.load(SCRIPTS[name])
                    ask(proxy.port, connections, max(connections, wish.statements // 5))
                    before = sum(bench.cpu(proxy.process.pid))
                    took = ask(proxy.port, connections, wish.statements)
                    used = sum(bench.cpu(proxy.process.pid)) - before
                    seen[name].append((used / wish.statements * 1e6, took))
            median = {name: [statistics.median(column) for column in zip(*rounds)] for name, rounds in seen.items()}
            for name, (used, took) in median.items():
                over = used - median["none"][0] if "none" in median else float("nan")
                print(f"{name:<16}{connections:>8}{used:>9.1f}{over:>11.1f}{took:>11.3f}{wish.statements / took:>10.0f}", flush=True)
    finally:
        stop(proxy.process)


def counted(wish, folder, server):
    out = os.path.join(folder, "out")
    os.makedirs(out)
    proxy = Proxy(folder, server, wish.target, 1, ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}/dump.%p"])
    try:
        print(f"{'script':<16}{'instructions':>14}{'over none':>11}", flush=True)
        none = None
        for name in wish.only:
            proxy.load(SCRIPTS[name])
            ask(proxy.port, 8, wish.statements // 4)
            cost.control(proxy.process, "-z")
            began = time.time()
            ask(proxy.port, 8, wish.statements)
            each = cost.counted(proxy.process, out)[0] / wish.statements
            none = each if name == "none" else none
            over = each - none if none is not None else float("nan")
            say(f"  {name}: {time.time() - began:.0f} s")
            print(f"{name:<16}{each:>14.0f}{over:>11.0f}", flush=True)
    finally:
        stop(proxy.process)


def main():
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--target", default="target")
    reading.add_argument("--scripts", action="store_true", help="this table")
    reading.add_argument("--instructions", action="store_true", help="instructions of a statement with each script, logins included")
    reading.add_argument("--only", default=",".join(SCRIPTS), help="scripts, with commas between them: " + " ".join(SCRIPTS))
    reading.add_argument("--connections", default="1,8,64")
    reading.add_argument("--statements", type=int, default=10000)
    reading.add_argument("--rounds", type=int, default=3)
    reading.add_argument("--workers", type=int, default=2)
    wish = reading.parse_args()
    wish.only = wish.only.split(",")
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
        server = MariaDb(folder)
        try:
            (counted if wish.instructions else timed)(wish, folder, server)
        finally:
            stop(server.process)


if __name__ == "__main__":
    main()
