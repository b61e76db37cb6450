"""What a sharded table costs beside one that is not, through the same proxy: `make bench ARGS=--shards`.

Two MariaDB servers, one Millrace with two workers. Schema `sbtest` has a table on the first server, schema `parted` the same rows in four
partitions on both (`MOD(4)`). The ways take turns, several rounds, and the median counts. CPU is the user and system time of the proxy,
from /proc/PID/stat; memory is what it had at most beyond what it had before.

- points: sysbench's point selects, 8 connections
- sums: `SUM` of eight rows by their keys, 64 connections
- scan: all rows of a table, as they come and in the order of their key, which merges those of the partitions
- move: a partition goes to the other server while a client changes one of its rows all the time
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import threading
import time

import bench
import bulk
from bench import PASSWORD, SCHEMA, USER, say, stop

CONFIGURATION = """datadir = "{home}"
admin_variables = {{ admin_credentials = "admin:admin" mysql_ifaces = "127.0.0.1:{admin}" }}
mysql_variables = {{ threads = 2 interfaces = "127.0.0.1:{port}" max_connections = 2000 monitor_enabled = false
                    monitor_username = "monitor" monitor_password = "monitor" }}
mysql_servers = ( {{ address = "127.0.0.1", port = {one}, hostgroup = 1, max_connections = 500 }},
                  {{ address = "127.0.0.1", port = {two}, hostgroup = 2, max_connections = 500 }} )
mysql_users = ( {{ username = "{user}", password = "{password}", default_hostgroup = 1, max_connections = 2000 }} )
"""
PARTITIONS = {"p0": 1, "p1": 2, "p2": 1, "p3": 2}
MAP = ["HSCALE SETUP_TABLE('parted.{table}', 'id', '{table}_rest', 1, 'MOD(4)')"] + [
    f"HSCALE ADD_PARTITION('parted.{{table}}', '{name}', '{bucket}', {at})" for bucket, (name, at) in enumerate(PARTITIONS.items())]
RIGHTS = ("CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO monitor@'%'; "
          "GRANT SELECT, INSERT, DELETE, CREATE, DROP, ALTER, LOCK TABLES, TRIGGER ON parted.* TO monitor@'%'")


def client(port, sql, user=USER, password=PASSWORD, schema=None):
    words = ["mariadb", "--no-defaults", "--skip-ssl", "-N", "-h127.0.0.1", f"-P{port}", f"-u{user}", f"-p{password}", *([schema] if schema else []), "-e", sql]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


class World:
    def __init__(self, folder, target):
        self.servers = []
        for number in [1, 2]:
            home = os.path.join(folder, f"server-{number}")
            os.makedirs(home)
            server = bench.MariaDb(home, more=["--log-bin=log", f"--server-id={number}", "--binlog-format=ROW"])
            server.sql(f"CREATE DATABASE parted; {RIGHTS}")
            self.servers.append(server)
        self.port, self.admin = bench.free_port(), bench.free_port()
        home = os.path.join(folder, "millrace")
        os.makedirs(home)
        path = os.path.join(home, "proxysql.cnf")
        with open(path, "w") as file:
            file.write(CONFIGURATION.format(home=home, admin=self.admin, port=self.port, user=USER, password=PASSWORD,
                                            one=self.servers[0].port, two=self.servers[1].port))
        program = os.path.join(target, "release/millrace")
        self.process = bench.start([program, "-f", "-c", path, "-D", home], home, "millrace")
        bench.wait_for(self.port, self.process, "Millrace")

    def ask(self, sql):
        return client(self.admin, sql, "admin", "admin")

    def split(self, table, columns):
        """The rows of a table of the first server, in four partitions."""
        for bucket, (name, at) in enumerate(PARTITIONS.items()):
            self.servers[at - 1].sql(f"CREATE TABLE parted.{table}_{name} {columns}")
            if at == 1:
                self.servers[0].sql(f"INSERT INTO parted.{table}_{name} SELECT * FROM {SCHEMA}.{table} WHERE id % 4 = {bucket}")
                continue
            path = os.path.join(self.servers[0].folder, f"{table}_{name}")
            self.servers[0].sql(f"SELECT * FROM {SCHEMA}.{table} WHERE id % 4 = {bucket} INTO OUTFILE '{path}'")
            self.servers[at - 1].sql(f"LOAD DATA INFILE '{path}' INTO TABLE parted.{table}_{name}")
            os.unlink(path)
        self.servers[0].sql(f"CREATE TABLE parted.{table}_rest {columns}")
        for command in MAP:
            self.ask(command.format(table=table))

    def stop(self):
        for one in [self, *self.servers]:
            stop(one.process)


def rate(world, script, schema, threads, seconds):
    """(statements a second, µs of the proxy's CPU for one) of sysbench."""
    path = script if script.startswith("oltp_") else os.path.join(bench.HERE, f"{script}.lua")
    more = ["--tables=1"] if script.startswith("oltp_") else []
    before = sum(bench.cpu(world.process.pid))
    ran = subprocess.run(["sysbench", path, "--table-size=20000", *more, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={world.port}",
                          f"--mysql-user={USER}", f"--mysql-password={PASSWORD}", f"--mysql-db={schema}", "--db-ps-mode=disable", "--mysql-ssl=off",
                          f"--threads={threads}", f"--time={seconds}", "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    queries = re.search(r"total:\s+(\d+)", ran.stdout)
    if ran.returncode or not queries:
        raise SystemExit(ran.stdout[-600:])
    count = int(queries.group(1))
    return count / seconds, (sum(bench.cpu(world.process.pid)) - before) / count * 1e6


def beside(world, title, script, threads, wish):
    figures = {schema: [] for schema in [SCHEMA, "parted"]}
    for _ in range(wish.rounds):
        for schema, all_of_it in figures.items():
            all_of_it.append(rate(world, script, schema, threads, wish.seconds))
    (plain, cost), (parted, dearer) = ([statistics.median(values) for values in zip(*all_of_it)] for all_of_it in figures.values())
    print(f"| {title} | {plain:.0f} | {parted:.0f} | {parted / plain:.2f} | {cost:.1f} | {dearer:.1f} | {dearer - cost:+.1f} |", flush=True)


def scan(world, rows, wish):
    """All rows of a table, (seconds, CPU, bytes) of each way."""
    one = world.servers[0]
    columns = "(id INT PRIMARY KEY, k INT NOT NULL, c CHAR(40) NOT NULL)"
    one.sql(f"USE {SCHEMA}; CREATE TABLE {SCHEMA}.big {columns}; INSERT INTO {SCHEMA}.big SELECT seq, seq * 7 % 1000, MD5(seq) FROM seq_1_to_{rows}")
    world.split("big", columns)
    print(f"\nAll {rows:,} rows\n\n| | rows a second | µs of CPU a row | MiB more at most | of one table's rate |\n|---|--:|--:|--:|--:|")
    for order, how in [("", ""), (" ORDER BY id", ", in their order")]:
        figures = {schema: [] for schema in [SCHEMA, "parted"]}
        for _ in range(wish.rounds):
            for schema, all_of_it in figures.items():
                all_of_it.append(bulk.run(world, f"SELECT * FROM {schema}.big{order}", False))
        rates = []
        for all_of_it, name in zip(figures.values(), ["one table", "four partitions"]):
            seconds, cpu, more = (statistics.median(values) for values in zip(*all_of_it))
            rates.append(rows / seconds)
            print(f"| {name}{how} | {rates[-1]:,.0f} | {cpu / rows * 1e6:.2f} | {more / 2**20:.1f} | {rates[-1] / rates[0]:.2f} |", flush=True)


def move(world, megabytes):
    """One partition to the other server; what a client that changes one of its rows waits for."""
    rows = megabytes * 1000
    columns = "(id INT PRIMARY KEY, k INT NOT NULL, words VARCHAR(1000) CHARACTER SET latin1 NOT NULL)"
    first, second = world.servers
    for name, at in PARTITIONS.items():
        world.servers[at - 1].sql(f"CREATE TABLE parted.much_{name} {columns}")
    first.sql(f"USE parted; CREATE TABLE parted.much_rest {columns}; INSERT INTO parted.much_p0 SELECT seq * 4, 0, REPEAT(MD5(seq), 31) FROM seq_1_to_{rows}")
    for command in MAP:
        world.ask(command.format(table="much"))
    # As fast as can be.
    world.ask("SET mysql-sharding_move_rows_per_second = 0; LOAD MYSQL VARIABLES TO RUNTIME")
    waits, over = [], threading.Event()

    def writes():
        asks = subprocess.Popen(["mariadb", "--no-defaults", "--skip-ssl", "-N", "--unbuffered", "-h127.0.0.1", f"-P{world.port}", f"-u{USER}", f"-p{PASSWORD}",
                                 "parted"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while not over.is_set():
            begun = time.monotonic()
            asks.stdin.write("UPDATE much SET k = k + 1 WHERE id = 4; SELECT k FROM much WHERE id = 4;\n")
            asks.stdin.flush()
            if not asks.stdout.readline():
                raise SystemExit("the client that writes was ended")
            waits.append(time.monotonic() - begun)
        asks.stdin.close()
        asks.wait()

    writer = threading.Thread(target=writes)
    writer.start()
    begun = time.monotonic()
    world.ask("HSCALE MOVE_PARTITION('parted.much', 'p0', 2)")
    while True:
        state = world.ask("SELECT state FROM stats_millrace_moves ORDER BY move_id DESC LIMIT 1").strip()
        if state in ("done", "cancelled", "failed"):
            break
        time.sleep(0.2)
    took = time.monotonic() - begun
    over.set()
    writer.join()
    written = int(client(world.port, "SELECT k FROM much WHERE id = 4", schema="parted"))
    said = world.ask("SELECT * FROM stats_millrace_moves ORDER BY move_id DESC LIMIT 1").strip()
    print(f"\nA partition of {megabytes} MB in {rows:,} rows: {state} after {took:.1f} s, {megabytes / took:.1f} MB/s. A client changed one of its rows {len(waits):,} times meanwhile: "
          f"{statistics.median(waits) * 1000:.1f} ms each, {max(waits) * 1000:.0f} ms at most; {'none' if written == len(waits) else len(waits) - written} was lost.\n\n{said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="target")
    parser.add_argument("--shards", action="store_true", help="these tables")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of sysbench in a round")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the scan")
    parser.add_argument("--megabytes", type=int, default=1000, help="of the move")
    wish = parser.parse_args()
    with open("/proc/cpuinfo") as file:
        say("Sharded tables, on " + next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name")))
    with tempfile.TemporaryDirectory(prefix="millrace-shards-") as folder:
        world = World(folder, wish.target)
        try:
            world.split("sbtest1", "(id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)")
            print("| | statements a second, one table | four partitions | of one table | µs of CPU, one table | four partitions | more |\n|---|--:|--:|--:|--:|--:|--:|")
            beside(world, "points, 8 connections", "oltp_point_select", 8, wish)
            beside(world, "sums of eight rows, 64 connections", "sums_of_eight", 64, wish)
            scan(world, wish.rows, wish)
            move(world, wish.megabytes)
        finally:
            world.stop()


if __name__ == "__main__":
    main()
