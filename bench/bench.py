"""Side by side: what a query costs through Millrace, HAProxy, mysqlrouter and raw relays.

One MariaDB, sysbench oltp_point_select over 2 tables of 20,000 rows, everything on loopback of one
machine. The rounds are interleaved (every way once, then every way again), so that what else the
machine does falls on all alike; figures are medians over the rounds. CPU per query is the user and
system time of the whole proxy process, from /proc/PID/stat, divided by the queries of the same span.
"""

import argparse
import csv
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
HERE = os.path.dirname(os.path.abspath(__file__))
USER, PASSWORD, SCHEMA = "bench", "bench", "sbtest"


def say(words):
    print(words, file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process, words, greeting=True, seconds=60):
    """Until the port accepts (and, as MySQL servers do, speaks first)."""
    until = time.time() + seconds
    while time.time() < until:
        if process.poll() is not None:
            raise SystemExit(f"{words} ended while starting: {process.returncode}; its log: {process.log}")
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as peer:
                peer.settimeout(2)
                if not greeting or peer.recv(5, socket.MSG_WAITALL)[4:5] == b"\x0a":
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit(f"{words} does not answer on port {port}; its log: {process.log}")


def start(command, folder, name):
    log = os.path.join(folder, name + ".log")
    with open(log, "ab") as out:
        # The kernel ends it when this script dies.
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    process.log = log
    return process


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()


def children(pid):
    """A process and all that it started: HAProxy works in a child."""
    found, queue = [], [pid]
    while queue:
        one = queue.pop()
        found.append(one)
        for task in os.listdir(f"/proc/{one}/task") if os.path.isdir(f"/proc/{one}/task") else []:
            try:
                with open(f"/proc/{one}/task/{task}/children") as file:
                    queue += [int(child) for child in file.read().split()]
            except OSError:
                pass
    return found


def cpu(pid):
    """(user, system) seconds."""
    user = system = 0
    for one in children(pid):
        try:
            with open(f"/proc/{one}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            user, system = user + int(fields[11]), system + int(fields[12])
        except OSError:
            pass
    return user / TICK, system / TICK


def resident(pid):
    """(resident, of it private and dirty) bytes."""
    total = private = 0
    for one in children(pid):
        with open(f"/proc/{one}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Rss:"):
                    total += int(line.split()[1]) * 1024
                elif line.startswith("Private_Dirty:"):
                    private += int(line.split()[1]) * 1024
    return total, private


class MariaDb:
    def __init__(self, folder, tls=False, more=()):
        self.folder = os.path.join(folder, "mariadb")
        data = os.path.join(self.folder, "data")
        os.makedirs(self.folder)
        self.socket = os.path.join(self.folder, "s")
        self.port = free_port()
        as_root = ["--user=root"] if os.getuid() == 0 else []
        secure, self.certificate = [], None
        if tls:
            key, certificate = os.path.join(self.folder, "key.pem"), os.path.join(self.folder, "certificate.pem")
            self.certificate = certificate
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                            "-keyout", key, "-out", certificate], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            secure = [f"--ssl-key={key}", f"--ssl-cert={certificate}"]
        subprocess.run(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
                        f"--datadir={data}", f"--tmpdir={self.folder}", *as_root], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        self.process = start([server, "--no-defaults", f"--datadir={data}", f"--tmpdir={self.folder}", f"--socket={self.socket}", f"--port={self.port}",
                              "--bind-address=127.0.0.1", "--skip-name-resolve", *(more or ["--skip-log-bin"]), "--max-connections=6000",
                              "--innodb-buffer-pool-size=256M", "--innodb-flush-log-at-trx-commit=0", "--back-log=1024", *secure, *as_root],
                             self.folder, "mariadb")
        wait_for(self.port, self.process, "MariaDB")
        self.sql(f"CREATE DATABASE {SCHEMA}; CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO {USER}@'%'")
        # The tables are those of sysbench's own scripts, whichever workload runs.
        subprocess.run(sysbench(f"127.0.0.1:{self.port}", 1, 1, "oltp_point_select") + ["prepare"], check=True, stdout=subprocess.DEVNULL)

    def sql(self, text):
        subprocess.run(["mariadb", "--no-defaults", "-uroot", f"--socket={self.socket}", "-e", text], check=True)


# What sysbench does: its script, and how: `disable` for texts, `auto` for prepared statements.
WORKLOAD = {"script": "oltp_point_select", "prepared": "disable"}


def sysbench(address, connections, seconds, script=None):
    """`address`: a path, or a host and a port."""
    script = script or WORKLOAD["script"]
    extra = ["--tables=2", "--table-size=20000"] if script.startswith("oltp_") else []
    extra += ["--skip-trx=on"] if script == "oltp_read_only" else []
    script = script if script.startswith("oltp_") else os.path.join(HERE, f"{script}.lua")
    host, _, port = address.partition(":")
    place = ["--mysql-host=localhost", f"--mysql-socket={address}"] if address.startswith("/") else [f"--mysql-host={host}", f"--mysql-port={port}"]
    return ["sysbench", script, *extra, "--db-driver=mysql", *place, f"--mysql-user={USER}", "--report-interval=1",
            f"--mysql-password={PASSWORD}", f"--mysql-db={SCHEMA}", f"--db-ps-mode={WORKLOAD['prepared']}",
            f"--threads={connections}", f"--time={seconds}", "--percentile=99", "--mysql-ssl=off"]


class Way:
    """One thing that stands before the server (or nothing)."""

    def __init__(self, name, port, process=None, path=None):
        self.name, self.port, self.process = name, port, process
        self.address = path or f"127.0.0.1:{port}"

    def measure(self, connections, seconds, server):
        """One second to warm up, then a run: (queries a second, CPU µs a query, of it user, p99 ms, CPU µs of the server a query, how much the seconds
        differ: standard deviation in percent of the mean)."""
        subprocess.run(sysbench(self.address, connections, 1) + ["run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = cpu(self.process.pid) if self.process else (0, 0)
        behind = sum(cpu(server.process.pid))
        ran = subprocess.run(sysbench(self.address, connections, seconds) + ["run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        after = cpu(self.process.pid) if self.process else (0, 0)
        behind = sum(cpu(server.process.pid)) - behind
        queries = re.search(r"queries:\s+(\d+)\s+\(([\d.]+) per sec", ran.stdout)
        if ran.returncode != 0 or not queries:
            say(f"  {self.name} at {connections}: " + ran.stdout.strip().splitlines()[-1])
            return None
        count = int(queries.group(1))
        p99 = float(re.search(r"99th percentile:\s+([\d.]+)", ran.stdout).group(1))
        user, system = after[0] - before[0], after[1] - before[1]
        each_second = [float(said) for said in re.findall(r"^\[ \d+s \].* qps: ([\d.]+)", ran.stdout, re.MULTILINE)]
        differ = statistics.pstdev(each_second) / statistics.mean(each_second) * 100 if each_second else 0
        return float(queries.group(2)), (user + system) / count * 1e6, user / count * 1e6, p99, behind / count * 1e6, differ


def haproxy(folder, server):
    port = free_port()
    path = os.path.join(folder, "haproxy.cfg")
    with open(path, "w") as file:
        file.write(f"global\n  nbthread 1\n  maxconn 4000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n"
                   f"listen mysql\n  bind 127.0.0.1:{port}\n  server one 127.0.0.1:{server.port}\n")
    process = start([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", path], folder, "haproxy")
    wait_for(port, process, "HAProxy")
    return Way("HAProxy TCP, 1 thread", port, process)


def mysqlrouter(folder, server, cache):
    program = os.path.join(cache, "mysql/bin/mysqlrouter")
    if not os.path.exists(program):
        say("MISSING: mysqlrouter, so it is left out of the table")
        return None
    port = free_port()
    home = os.path.join(folder, "router")
    os.makedirs(home)
    path = os.path.join(home, "router.conf")
    with open(path, "w") as file:
        file.write(f"[DEFAULT]\nruntime_folder={home}\ndata_folder={home}\nlogging_folder={home}\n[io]\nthreads=1\n"
                   f"[routing:one]\nbind_address=127.0.0.1\nbind_port={port}\ndestinations=127.0.0.1:{server.port}\n"
                   "routing_strategy=first-available\nprotocol=classic\nclient_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT\n"
                   "max_connections=4000\n")
    as_root = ["--user=root"] if os.getuid() == 0 else []
    process = start([program, "-c", path, *as_root], home, "router")
    wait_for(port, process, "mysqlrouter")
    return Way("mysqlrouter, 1 thread", port, process)


def relay(folder, server, target, driver, repeat=False):
    """With `repeat` the least that a cache can cost: the answer before, again."""
    program = os.path.join(target, "release/examples/relay")
    if not os.path.exists(program):
        return None
    port = free_port()
    process = start([program, "--listen", f"127.0.0.1:{port}", "--target", f"127.0.0.1:{server.port}", "--io-driver", driver, *(["--repeat", "SELECT "] if repeat else [])], folder,
                    f"relay-{driver}{'-repeat' * repeat}")
    try:
        wait_for(port, process, f"the raw relay ({driver})", seconds=10)
    except SystemExit as why:
        say(str(why))
        return None
    return Way(f"raw {'repeater' if repeat else 'relay'}, {driver}", port, process)


CONFIGURATION = """datadir = "{home}"
admin_variables =
{{
    admin_credentials = "admin:admin"
    mysql_ifaces = "127.0.0.1:{admin}"
}}
mysql_variables =
{{
    threads = {workers}
    interfaces = "127.0.0.1:{port};{home}/s"
    max_connections = 20000
    monitor_enabled = false
}}
mysql_servers =
(
    {{ address = "127.0.0.1", port = {server}, hostgroup = 0, max_connections = 2500 }},
    {{ address = "127.0.0.1", port = {server}, hostgroup = 1, max_connections = 2500 }}
)
mysql_users = ( {{ username = "{user}", password = "{password}", default_hostgroup = 0, max_connections = 20000 }} )
mysql_query_rules =
(
    {{ rule_id = 1, active = 1, match_pattern = "^SELECT.*FOR UPDATE$", destination_hostgroup = 0, apply = 1 }},
    {{ rule_id = 2, active = 1, match_pattern = "^SELECT.*", destination_hostgroup = 1, apply = 1 }}
)
"""


def millrace(folder, server, target, driver, workers, cached=False, pipelined=False, forward=False, unix=False, tls=False):
    """A57: reads by the second rule to hostgroup 1, locking reads and the rest to 0. A104: or from the cache, once they are there.
    Pipelined: reads share connections in flight. Unix: no TCP on either side. TLS: to the server."""
    port, admin = free_port(), free_port()
    home = os.path.join(folder, f"millrace-{driver}-{workers}{'-cached' * cached}{'-pipelined' * pipelined}{'-ff' * forward}{'-unix' * unix}{'-tls' * tls}")
    os.makedirs(home)
    path = os.path.join(home, "proxysql.cnf")
    with open(path, "w") as file:
        text = CONFIGURATION.format(home=home, admin=admin, workers=workers, port=port, server=server.port, user=USER, password=PASSWORD)
        text = text.replace("default_hostgroup = 0,", "default_hostgroup = 0, fast_forward = 1,") if forward else text
        text = text.replace(f'"127.0.0.1", port = {server.port}', f'"{server.socket}", port = 0') if unix else text
        text = text.replace("max_connections = 2500", "max_connections = 2500, use_ssl = 1") if tls else text
        file.write(text.replace("destination_hostgroup = 1,", "destination_hostgroup = 1, cache_ttl = 600000,") if cached else text)
        if pipelined:
            file.write('mysql_hostgroup_attributes = ( { hostgroup_id = 1, hostgroup_settings = "{\\"pipelining\\":64}" } )\n')
    command = [os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", home, "--io-driver", driver]
    process = start(command, home, "millrace")
    wait_for(port, process, "Millrace")
    if cached:
        # Every statement once, so that all that is measured comes from the cache.
        asked = "".join(f"SELECT c FROM sbtest{table} WHERE id={row};\n" for table in (1, 2) for row in range(1, 20001)) + "SELECT 111;\n"
        subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{USER}", f"-p{PASSWORD}", SCHEMA],
                       input=asked, text=True, check=True, stdout=subprocess.DEVNULL)
    return Way(f"Millrace, {'cached' if cached else 'fast forward' if forward else '2 rules'}{', pipelined' * pipelined}{', Unix sockets' * unix}, {driver}, {workers} worker{'s' * (workers > 1)}", port, process,
               os.path.join(home, "s") if unix else None)


def sessions(way, count):
    """Logs in that many clients who then do nothing; (resident bytes each, private dirty bytes each)."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 1000)), hard))
    clients = []
    # A few first, so that what is made once (buffers, tables) is not counted as a session's.
    for _ in range(50):
        clients.append(login(way.port))
    time.sleep(1)
    before = resident(way.process.pid)
    for number in range(count):
        # Loopback has 28,000 ports for one pair of addresses; a second address of ours doubles them.
        clients.append(login(way.port, f"127.0.0.{1 + number % 4}"))
    time.sleep(2)
    after = resident(way.process.pid)
    alive = sum(1 for client in clients if ping(client))
    for client in clients:
        client.close()
    if alive != len(clients):
        say(f"  {way.name}: only {alive} of {len(clients)} idle sessions still answer")
    return (after[0] - before[0]) / count, (after[1] - before[1]) / count


def login(port, source="127.0.0.1"):
    """A minimal login by mysql_native_password."""
    import hashlib

    peer = socket.create_connection(("127.0.0.1", port), 20, (source, 0))
    greeting = packet(peer)
    at = greeting.index(b"\0", 1) + 5
    nonce = greeting[at:at + 8] + greeting[at + 27:at + 39]
    first = hashlib.sha1(PASSWORD.encode()).digest()
    mask = hashlib.sha1(nonce + hashlib.sha1(first).digest()).digest()
    answer = bytes(a ^ b for a, b in zip(first, mask))
    capabilities = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
    body = struct.pack("<IIB23x", capabilities, 1 << 24, 45) + USER.encode() + b"\0" + bytes([20]) + answer
    body += SCHEMA.encode() + b"\0" + b"mysql_native_password\0"
    peer.sendall(struct.pack("<I", len(body))[:3] + b"\x01" + body)
    said = packet(peer)
    if said[:1] == b"\xfe":
        end = said.index(b"\0", 1)
        nonce = said[end + 1:end + 21]
        mask = hashlib.sha1(nonce + hashlib.sha1(first).digest()).digest()
        peer.sendall(b"\x14\0\0\x03" + bytes(a ^ b for a, b in zip(first, mask)))
        said = packet(peer)
    if said[:1] != b"\0":
        raise SystemExit(f"login refused: {said!r}")
    return peer


def packet(peer):
    header = peer.recv(4, socket.MSG_WAITALL)
    return peer.recv(int.from_bytes(header[:3], "little"), socket.MSG_WAITALL)


def ping(peer):
    try:
        peer.sendall(b"\x01\0\0\0\x0e")
        return packet(peer)[:1] == b"\0"
    except OSError:
        return False


def main():
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--seconds", type=int, default=4, help="of one run (4)")
    reading.add_argument("--rounds", type=int, default=3, help="of every way, interleaved (3)")
    reading.add_argument("--connections", default="1,8,64,256", help="numbers of connections (1,8,64,256)")
    reading.add_argument("--only", default="", help="ways whose name contains one of these words (direct,haproxy,router,relay,repeater,millrace,millrace-pipelined,millrace-ff)")
    reading.add_argument("--workload", default=WORKLOAD["script"], choices=["oltp_point_select", "oltp_read_only", "oltp_read_write", "select_111"],
                         help="sysbench's script, or a statement without a table; A103, A104: oltp_read_only and select_111, --only direct,millrace "
                              "--connections 1,2,4,8,16,32,64,128 (oltp_point_select)")
    reading.add_argument("--workers", default="1,2", help="numbers of Millrace's workers (1,2)")
    reading.add_argument("--unix", action="store_true",
                         help="Millrace between Unix sockets as well; A61 to A64: --only haproxy,millrace --workers 1,2,4 --connections 1,4,8,32,256,512,1024,2048")
    reading.add_argument("--prepared", action="store_true", help="prepared statements instead of texts")
    reading.add_argument("--sessions", type=int, default=10000, help="idle sessions for the memory figure, 0 for none (10000)")
    reading.add_argument("--rules", action="store_true",
                         help="instead: decisions by number of rules and fast routing rows, and digests (handled by run.sh)")
    reading.add_argument("--seeds", action="store_true",
                         help="print the tables of --rules before all that (as without any argument)")
    reading.add_argument("--loads", action="store_true",
                         help="instead: what clients notice of LOADs of 20,000 rules and 200,000 rows (handled by run.sh)")
    reading.add_argument("--bulk", action="store_true",
                         help="instead: a result of 2 GB and a LOAD DATA of 1 GB, compressed and not (handled by run.sh)")
    reading.add_argument("--requests", action="store_true",
                         help="instead: what a request costs of an application that connects for each, beside direct and HAProxy (handled by run.sh)")
    reading.add_argument("--paste", action="store_true",
                         help="instead: 50,000 INSERTs pasted through the mysql client, and the time of decisions under the loop of the document about many "
                              "schemas (handled by run.sh)")
    reading.add_argument("--target", default="target", help="cargo's target folder (given by run.sh)")
    reading.add_argument("--cache", default="/var/cache/millrace", help="Millrace's cache folder (given by run.sh)")
    wish = reading.parse_args()
    WORKLOAD.update(script=wish.workload, prepared="auto" if wish.prepared else "disable")
    connections = [int(number) for number in wish.connections.split(",") if number]
    numbers = [int(number) for number in wish.workers.split(",") if number]
    words = [word.strip().lower() for word in wish.only.split(",") if word.strip()]

    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
        say("Starting MariaDB and loading two tables of 20,000 rows ...")
        server = MariaDb(folder)
        makers = [("direct", lambda: Way("direct", server.port)),
                  ("haproxy", lambda: haproxy(folder, server)),
                  ("mysqlrouter", lambda: mysqlrouter(folder, server, wish.cache))]
        makers += [(f"relay {driver}", lambda driver=driver: relay(folder, server, wish.target, driver)) for driver in ("uring", "epoll")]
        makers += [(f"millrace {driver} {workers}", lambda driver=driver, workers=workers: millrace(folder, server, wish.target, driver, workers))
                   for driver in ("uring", "epoll") for workers in numbers]
        makers += [(f"millrace-pipelined {driver} {workers}",
                    lambda driver=driver, workers=workers: millrace(folder, server, wish.target, driver, workers, pipelined=True))
                   for driver in ("uring", "epoll") for workers in numbers]
        makers += [(f"millrace-ff {driver} {workers}",
                    lambda driver=driver, workers=workers: millrace(folder, server, wish.target, driver, workers, forward=True))
                   for driver in ("uring", "epoll") for workers in numbers]
        if wish.unix:
            makers += [(f"millrace-unix{'-ff' * forward} uring {workers}",
                        lambda workers=workers, forward=forward: millrace(folder, server, wish.target, "uring", workers, forward=forward, unix=True))
                       for workers in numbers for forward in (False, True)]
        makers += [("repeater uring", lambda: relay(folder, server, wish.target, "uring", repeat=True))]
        makers += [("millrace cached", lambda: millrace(folder, server, wish.target, "uring", 1, cached=True))]
        ways = [make() for name, make in makers if not words or any(word in name for word in words)]
        ways = [way for way in ways if way]
        try:
            figures = rounds(ways, connections, wish, server)
            idle = []
            if wish.sessions:
                for way in ways:
                    if way.name.startswith("Millrace, 2 rules") and way.name.endswith("1 worker"):
                        say(f"{wish.sessions} idle sessions through {way.name} ...")
                        try:
                            idle.append((way.name, *sessions(way, wish.sessions)))
                        except (OSError, SystemExit) as error:
                            say(f"  {error}")
        finally:
            for way in ways:
                if way.process:
                    stop(way.process)
            stop(server.process)
    report(ways, connections, figures, idle, wish)


def rounds(ways, connections, wish, server):
    figures = {}
    for turn in range(wish.rounds):
        for count in connections:
            for way in ways:
                say(f"round {turn + 1} of {wish.rounds}, {count} connections: {way.name}")
                measured = way.measure(count, wish.seconds, server)
                if measured:
                    figures.setdefault((way.name, count), []).append(measured)
    return {key: [statistics.median(column) for column in zip(*rows)] + [len(rows)] for key, rows in figures.items()}


def report(ways, connections, figures, idle, wish):
    lines = [f"sysbench {wish.workload}, {'prepared statements' if wish.prepared else 'text protocol'}, {'2 x 20,000 rows, ' * wish.workload.startswith('oltp_')}MariaDB on the same machine ({os.cpu_count()} cores); "
             f"medians of {wish.rounds} rounds of {wish.seconds} s", ""]
    lines += ["| connections | | queries/s | of direct | CPU µs/query | of it user | of HAProxy's | p99 ms | server's CPU µs/query | seconds differ by % |", "|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|"]
    table = []
    for count in connections:
        direct = figures.get(("direct", count))
        peer = figures.get(("HAProxy TCP, 1 thread", count))
        for way in ways:
            row = figures.get((way.name, count))
            if not row:
                lines.append(f"| {count} | {way.name} | failed | | | | | | | |")
                continue
            qps, cost, user, p99, behind, differ, _ = row
            share = f"{qps / direct[0]:.2f}" if direct else ""
            ratio = f"{cost / peer[1]:.2f}" if peer and way.process else ""
            costs = (f"{cost:.1f}", f"{user:.1f}") if way.process else ("", "")
            lines.append(f"| {count} | {way.name} | {qps:,.0f} | {share} | {costs[0]} | {costs[1]} | {ratio} | {p99:.2f} | {behind:.1f} | {differ:.1f} |")
            table.append([count, way.name, round(qps, 1), share, *costs, ratio, p99, behind, differ])
    if idle:
        lines += ["", f"| {wish.sessions} idle sessions | resident bytes each | private dirty bytes each |", "|:--|--:|--:|"]
        lines += [f"| {name} | {total:,.0f} | {private:,.0f} |" for name, total, private in idle]
    text = "\n".join(lines) + "\n"
    out = os.path.join(HERE, "out")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "bench.md"), "w") as file:
        file.write(text)
    with open(os.path.join(out, "bench.csv"), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["connections", "way", "queries_s", "of_direct", "cpu_us_query", "user_us_query", "of_haproxy", "p99_ms", "server_cpu_us_query", "seconds_differ_percent"])
        writer.writerows(table)
    print(text)
    say(f"(also in {os.path.relpath(out)}/bench.md and bench.csv)")


if __name__ == "__main__":
    main()
