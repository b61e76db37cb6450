"""What scripts cost (A97): none, empty hooks, the tokenizer at each statement, a rewrite, a copy of each result, LuaSQL; and hooks of today.

One MariaDB and one Millrace on this machine, whose script is changed by a LOAD. The scripts take turns, several rounds, and the median counts. CPU
is the user and system time of the proxy. Five tables, of which `--tables` chooses:

select    sysbench's point selects, the same number of them each time
slap      the command of A97: mariadb-slap with statements that it makes itself. `wait` collects each result for a hook that reads nothing of it
seed      the statement of A90 and A91, with eight comments, against its table of three rows
rows      one row of a large result: passed on as it comes, collected and unread, read, and copied
memory    one session of a script of ten functions, and each further closure, by `memory_bytes` of stats_millrace_scripts

With `--instructions` the proxy runs under callgrind instead, and what a script costs is counted in instructions, which no machine changes.
"""

import argparse
import os
import re
import shutil
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
LUASQL = f"""
require('luasql.mysql')
local env = assert(luasql.mysql())
local con
function read_query(packet)
  -- What the client says of its schema counts for the script's connection, too: mariadb-slap drops it, and makes it anew.
  if packet:byte() == 2 and con then assert(con:execute('USE `' .. packet:sub(2) .. '`')) end
  if packet:byte() ~= 3 then return end
  if not con then
    con = assert(env:connect(''))
    local schema = proxy.connection.client.default_db
    if schema ~= '' then assert(con:execute('USE `' .. schema .. '`')) end
  end
  local cur = assert(con:execute(packet:sub(2)))
  if type(cur) == 'number' then
    proxy.response = {{ type = proxy.MYSQLD_PACKET_OK, affected_rows = cur }}
    return proxy.PROXY_SEND_RESULT
  end
  local fields, rows = {{}}, {{}}
  for at, name in ipairs(cur:getcolnames()) do fields[at] = {{ name = name }} end
  local row = cur:fetch({{}}, 'n')
  while row do
    rows[#rows + 1] = row
    row = cur:fetch({{}}, 'n')
  end
  cur:close()
  proxy.response = {{ type = proxy.MYSQLD_PACKET_OK, resultset = {{ fields = fields, rows = rows }} }}
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
    "luasql": LUASQL,
    "today-empty": TODAY + "function m.on.statement(s) end",
    "today-rewrite": TODAY + "function m.on.statement(s) if s.text:find('^SELECT') then return m.rewrite((s.text:gsub('^SELECT', 'SELECT /* seen */'))) end end",
    "today-mask": TODAY + "function m.on.rows(s, r) return r:map(function(row) row.c = 'xxxx' end, { 'c', optional = true }) end",
}


QUEUES = f"function read_query(packet) if packet:byte() == 3 then {QUEUE} end end "
ROWS = {
    "none": None,
    "streamed": "function read_query(packet) if packet:byte() == 3 then proxy.queries:append(1, packet, { resultset_is_needed = false }) return proxy.PROXY_SEND_QUERY end end",
    "unread": QUEUES + "function read_query_result(inj) local r = inj.resultset.rows end",
    "read": QUEUES + "local sum = 0 function read_query_result(inj) if not inj.resultset.rows then return end for row in inj.resultset.rows do sum = sum + #row[2] end end",
    "copy": QUEUES + COPY,
}
# The statement and the table of the document, with its eight comments.
SMALL = "SELECT id, category FROM small WHERE small.category='books' /* Added */ /* some */ /* comments */ /* to */ /* produce */ /* a */ /* higher */ /* tokenizer */ /* load */"
TABLE = ("CREATE TABLE small (id INT UNSIGNED NOT NULL, category ENUM('books', 'hardware', 'software') NOT NULL, PRIMARY KEY(id)) ENGINE=HEAP; "
         "INSERT INTO small (id, category) VALUES (1, 'books'), (2, 'hardware'), (3, 'software')")


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
        for port in (self.port, self.admin):
            bench.wait_for(port, self.process, "Millrace", seconds=300)

    def ask(self, sql):
        """An operator's question, its first value."""
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.admin}", "-uadmin", "-padmin", "-NBe", sql]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def load(self, text):
        sql = "DELETE FROM mysql_scripts; "
        if text:
            body = text.replace("'", "''")
            sql += f"INSERT INTO mysql_scripts (script_name, body, on_error) VALUES ('bench', '{body}', 'error'); "
        self.ask(sql + "LOAD MYSQL SCRIPTS TO RUNTIME")


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


def slap(port, connections, statements, more):
    """Seconds that so many statements of mariadb-slap took."""
    name = shutil.which("mariadb-slap") or shutil.which("mysqlslap")
    if not name:
        raise SystemExit("there is no mariadb-slap here: scripts/setup.sh bench installs it")
    command = [name, "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{USER}", f"-p{PASSWORD}", "--skip-ssl", f"--concurrency={connections}",
               f"--number-of-queries={statements}", *more]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    took = re.search(r"Average number of seconds to run all queries: ([\d.]+)", ran.stdout)
    if ran.returncode != 0 or not took:
        raise SystemExit(ran.stdout.strip()[-400:])
    return float(took.group(1))


def in_turns(wish, proxy, scripts, connections, run):
    """Medians of (CPU of a statement in microseconds, seconds), by script."""
    seen = {name: [] for name in scripts}
    for _ in range(wish.rounds):
        for name, text in scripts.items():
            proxy.load(text)
            run(connections, max(connections, wish.statements // 5))
            before = sum(bench.cpu(proxy.process.pid))
            took = run(connections, wish.statements)
            seen[name].append(((sum(bench.cpu(proxy.process.pid)) - before) / wish.statements * 1e6, took))
    return {name: [statistics.median(column) for column in zip(*rounds)] for name, rounds in seen.items()}


def print_table(words, wish, proxy, scripts, clients, run):
    print(f"\n{words}\n{'script':<16}{'clients':>8}{'CPU µs':>9}{'over none':>11}{'elapsed s':>11}{'of empty':>10}{'of wait':>9}{'a second':>10}", flush=True)
    for connections in clients:
        median = in_turns(wish, proxy, scripts, connections, run)
        share = lambda took, of: f"{took / median[of][1]:.2f}" if of in median else "-"
        for name, (used, took) in median.items():
            over = used - median["none"][0] if "none" in median else float("nan")
            shares = f"{share(took, 'empty'):>10}{share(took, 'wait'):>9}"
            print(f"{name:<16}{connections:>8}{used:>9.1f}{over:>11.1f}{took:>11.3f}{shares}{wish.statements / took:>10.0f}", flush=True)


def selects(wish, proxy):
    clients = [int(count) for count in wish.connections.split(",")]
    scripts = {name: SCRIPTS[name] for name in wish.only}
    print_table("point selects", wish, proxy, scripts, clients, lambda count, statements: ask(proxy.port, count, statements))


def slaps(wish, proxy):
    scripts = {"none": None, "empty": SCRIPTS["empty"] + " function read_query_result(inj) end", "wait": SCRIPTS["queued"], "copy": SCRIPTS["copy"], "luasql": LUASQL}
    scripts = {name: text for name, text in scripts.items() if name in wish.only or wish.only == list(SCRIPTS)}
    run = lambda count, statements: slap(proxy.port, count, statements, ["--auto-generate-sql"])
    print_table("the command of A97", wish, proxy, scripts, [1, 8], run)


def seed(wish, proxy):
    scripts = {name: SCRIPTS[name] for name in ("none", "empty", "tokenizer", "copy")}
    more = [f"--create-schema={SCHEMA}", f"--query={SMALL}"]
    print_table("the statement of A90 and A91", wish, proxy, scripts, [1, 10, 20, 40], lambda count, statements: slap(proxy.port, count, statements, more))


def rows(wish, proxy):
    count, times = 10000, max(20, wish.statements // 50)
    text = f"SELECT id, c FROM sbtest1 LIMIT {count};\n" * times
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{proxy.port}", f"-u{USER}", f"-p{PASSWORD}", "--skip-ssl", "--quick", "-NB", SCHEMA]
    seen = {name: [] for name in ROWS}
    for _ in range(wish.rounds):
        for name, script in ROWS.items():
            proxy.load(script)
            before = sum(bench.cpu(proxy.process.pid))
            subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.DEVNULL)
            seen[name].append((sum(bench.cpu(proxy.process.pid)) - before) / (count * times) * 1e6)
    median = {name: statistics.median(all) for name, all in seen.items()}
    print(f"\nrows of 10,000, with two columns\n{'script':<16}{'CPU µs a row':>14}{'over none':>11}")
    for name, used in median.items():
        print(f"{name:<16}{used:>14.3f}{used - median['none']:>11.3f}", flush=True)


def memory(wish, proxy):
    """Bytes of a session, by the difference that a thousand make."""
    functions = lambda count: "local kept = {} " + " ".join(f"function f{at}(a) kept[a] = {at} return kept end" for at in range(count))
    gone = "function read_query(packet) if packet == '\\3DO 1 /* collect */' then collectgarbage() collectgarbage() end end"
    print(f"\nmemory of a session, of {wish.sessions}\n{'script':<24}{'bytes':>8}")
    each = {}
    for words, text in (("one function", gone), ("ten functions", functions(9) + " " + gone), ("fifty functions", functions(49) + " " + gone)):
        proxy.load(text)
        used = lambda: int(proxy.ask("SELECT memory_bytes FROM stats_millrace_scripts WHERE script_name = 'bench' AND hook = 'main'"))
        clients = []
        def met(count):
            while len(clients) < count:
                clients.append(bench.login(proxy.port))
                collect(clients[-1], "DO 1")
            collect(clients[-1], "DO 1 /* collect */")
            return used()
        first = met(1)
        each[words] = (met(wish.sessions + 1) - first) / wish.sessions
        for client in clients:
            client.close()
        print(f"{words:<24}{each[words]:>8.0f}", flush=True)
    print(f"{'each further closure':<24}{(each['fifty functions'] - each['ten functions']) / 40:>8.0f}", flush=True)


def collect(client, sql):
    """A statement over a connection of bench.login, and its answer."""
    payload = b"\x03" + sql.encode()
    client.sendall(len(payload).to_bytes(3, "little") + b"\0" + payload)
    bench.packet(client)


TABLES = {"select": selects, "slap": slaps, "seed": seed, "rows": rows, "memory": memory}


def timed(wish, folder, server):
    server.sql(f"USE {SCHEMA}; {TABLE}; CREATE DATABASE IF NOT EXISTS mysqlslap")
    # The memory of one core is the memory of all sessions.
    for workers, tables in ((wish.workers, [one for one in wish.tables if one != "memory"]), (1, [one for one in wish.tables if one == "memory"])):
        if not tables:
            continue
        home = os.path.join(folder, f"of-{workers}-{tables[0]}")
        os.makedirs(home)
        proxy = Proxy(home, server, wish.target, workers)
        try:
            for table in tables:
                TABLES[table](wish, proxy)
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
    reading.add_argument("--tables", default=",".join(TABLES), help="tables, with commas between them: " + " ".join(TABLES))
    reading.add_argument("--connections", default="1,8,64,256", help="clients of the point selects")
    reading.add_argument("--sessions", type=int, default=1000, help="sessions whose memory is compared")
    reading.add_argument("--statements", type=int, default=10000)
    reading.add_argument("--rounds", type=int, default=3)
    reading.add_argument("--workers", type=int, default=2)
    wish = reading.parse_args()
    wish.only, wish.tables = wish.only.split(","), wish.tables.split(",")
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
        server = MariaDb(folder)
        try:
            (counted if wish.instructions else timed)(wish, folder, server)
        finally:
            stop(server.process)


if __name__ == "__main__":
    main()
