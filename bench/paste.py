"""What the document about many schemas did, by anybody: its scripts pasted through the mysql client, and its loop of USE and SELECT 1.

First table: 20,000 rules and 50,000 rows of fast routing as single INSERTs, read by the client from a pipe, with TLS and without and over a Unix socket (A40).
Second table: the loop runs under 10 to 20,000 rules and rows, and the time that decisions took is read where the document read it:
Query_Processor_time_nsec over Questions, with mysql-stats_time_query_processor on (A35, A36, A41). Two looks at the clock are in these figures.
"""

import argparse
import os
import random
import statistics
import subprocess
import tempfile
import time

import bench

USER = "sbtest"
FIRST = 10001
CACHED = f'DELETE FROM mysql_query_rules; DELETE FROM mysql_query_rules_fast_routing;\nINSERT INTO mysql_query_rules (active,username,cache_ttl) VALUES (1,"{USER}",120000);\n'
RULE = f'INSERT INTO mysql_query_rules (active,username,schemaname,destination_hostgroup,apply) VALUES (1,"{USER}","shard_%d",1,1);\n'
ROW = f'INSERT INTO mysql_query_rules_fast_routing (username,schemaname,flagIN,destination_hostgroup,comment) VALUES ("{USER}","shard_%d",0,1,"");\n'
LOAD = "LOAD MYSQL QUERY RULES TO RUNTIME;\n"


def script(line, count):
    return CACHED + "".join(line % shard for shard in range(FIRST, FIRST + count))


class Door:
    def __init__(self, folder, server, target, driver):
        self.home = os.path.join(folder, "millrace")
        os.makedirs(self.home)
        self.port, self.admin = bench.free_port(), bench.free_port()
        self.socket = os.path.join(self.home, "admin")
        text = bench.CONFIGURATION.format(home=self.home, admin=self.admin, workers=1, port=self.port, server=server.port, user=USER, password=USER)
        text = text.replace(f'mysql_ifaces = "127.0.0.1:{self.admin}"', f'mysql_ifaces = "127.0.0.1:{self.admin};{self.socket}"')
        text = text.replace("monitor_enabled = false", "monitor_enabled = false\n    stats_time_query_processor = true")
        path = os.path.join(self.home, "proxysql.cnf")
        with open(path, "w") as file:
            file.write(text)
        self.process = bench.start([os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", self.home, "--io-driver", driver], self.home, "millrace")
        bench.wait_for(self.port, self.process, "Millrace")

    def paste(self, text, way=("--skip-ssl",)):
        """Into the mysql client on the admin port; what it says."""
        place = [f"--socket={self.socket}", "-hlocalhost"] if way == ("socket",) else ["-h127.0.0.1", f"-P{self.admin}", *way]
        ran = subprocess.run(["mariadb", "--no-defaults", "-uadmin", "-padmin", "-NB", *place], input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if ran.returncode != 0:
            raise SystemExit(f"{text[:60]}: {ran.stdout[:500]}")
        return ran.stdout.strip()

    def counted(self):
        """(nanoseconds of decisions, questions)."""
        said = self.paste("SELECT Variable_Name, Variable_Value FROM stats_mysql_global WHERE Variable_Name IN ('Query_Processor_time_nsec', 'Questions');")
        told = dict(line.split("\t") for line in said.splitlines())
        return int(told["Query_Processor_time_nsec"]), int(told["Questions"])


def timed(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def pastes(door, wish, scale):
    yield "| pasted | by | INSERTs s | µs each | its LOAD s |"
    yield "|:--|:--|--:|--:|--:|"
    kinds = [(f"{50_000 // scale:,} rows of fast routing", ROW, 50_000 // scale), (f"{20_000 // scale:,} rules", RULE, 20_000 // scale)]
    ways = [("TCP, no TLS", ("--skip-ssl",)), ("TCP, TLS", ("--ssl",)), ("Unix socket", ("socket",))]
    took = {}
    for turn in range(wish.rounds):
        for what, line, count in kinds:
            for name, way in ways:
                bench.say(f"round {turn + 1} of {wish.rounds}: {what}, {name}")
                text = script(line, count)
                inserts = timed(lambda: door.paste(text, way))
                took.setdefault((what, name, count), []).append((inserts, timed(lambda: door.paste(LOAD))))
    for (what, name, count), rounds in took.items():
        inserts, load = (statistics.median(column) for column in zip(*rounds))
        yield f"| {what} | {name} | {inserts:.2f} | {inserts / count * 1e6:.0f} | {load:.3f} |"


def loops(door, wish, scale):
    yield "| | number | ns a question, schemas drawn at random | the first schema only | the last only | ProxySQL, by the document |"
    yield "|:--|--:|--:|--:|--:|--:|"
    kinds = [("rules", RULE, count, theirs) for count, theirs in [(10, "1,000"), (100, "2,000"), (500, "6,000"), (20_000, "256,000 (890 to 581,100)")]]
    kinds += [("rows of fast routing", ROW, count, theirs) for count, theirs in [(10, "1,700"), (10_000, "1,900"), (20_000, "2,200"), (50_000, "2,400")]]
    drawn = random.Random(1)
    for what, line, count, theirs in kinds:
        count = max(10, count // scale) if count > 1000 else count
        bench.say(f"{count:,} {what}: {wish.turns} turns of the loop, three times")
        door.paste(script(line, count) + LOAD)
        there = min(count, 20_000 // scale)
        figures = []
        for schema in (lambda: drawn.randrange(there), lambda: 0, lambda: there - 1):
            text = "".join(f"USE shard_{FIRST + schema()}\nSELECT 1;\n" for _ in range(wish.turns))
            before = door.counted()
            ran = subprocess.run(["mariadb", "--no-defaults", "--skip-ssl", "-h127.0.0.1", f"-P{door.port}", f"-u{USER}", f"-p{USER}", "-NB"], input=text, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if ran.returncode != 0 or ran.stdout.split() != ["1"] * wish.turns:
                raise SystemExit(f"the loop: {ran.stdout[-500:]}")
            after = door.counted()
            figures.append((after[0] - before[0]) / (after[1] - before[1]))
        yield f"| {what} | {count:,} | {' | '.join(f'{one:,.0f}' for one in figures)} | {theirs} |"


def main():
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--rounds", type=int, default=3, help="of the pastes (3)")
    reading.add_argument("--turns", type=int, default=20_000, help="of the loop for each figure (20000; the document has 50000)")
    reading.add_argument("--scale", type=int, default=1, help="numbers of rules, rows and schemas divided by this, to try it (1)")
    reading.add_argument("--driver", default="uring", choices=["uring", "epoll"], help="how Millrace talks to the kernel (uring)")
    reading.add_argument("--target", default="target", help="cargo's target folder (given by run.sh)")
    reading.add_argument("--paste", action="store_true", help=argparse.SUPPRESS)
    wish = reading.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-paste-") as folder:
        schemas = 20_000 // wish.scale
        bench.say(f"Starting MariaDB and creating {schemas:,} schemas ...")
        server = bench.MariaDb(folder)
        server.sql(f"CREATE USER {USER}@'%' IDENTIFIED BY '{USER}'; GRANT ALL ON *.* TO {USER}@'%'")
        created = "".join(f"CREATE DATABASE shard_{shard};\n" for shard in range(FIRST, FIRST + schemas))
        subprocess.run(["mariadb", "--no-defaults", "-uroot", f"--socket={server.socket}"], input=created, text=True, check=True)
        door = Door(folder, server, wish.target, wish.driver)
        lines = [f"The mysql client, one after another, on the same machine ({os.cpu_count()} cores); medians of {wish.rounds} rounds", ""]
        try:
            lines += [*pastes(door, wish, wish.scale), ""]
            lines += loops(door, wish, wish.scale)
        finally:
            bench.stop(door.process)
            bench.stop(server.process)
    text = "\n".join(lines) + "\n"
    out = os.path.join(bench.HERE, "out")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "paste.md"), "w") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
