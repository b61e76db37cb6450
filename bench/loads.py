"""What clients notice of LOADs: errors, and the longest time that an answer took.

One MariaDB and one Millrace with two workers on this machine. sysbench runs at a steady pace, and three probes ask something that a rule
answers, a thousand times a second each, so that what they wait for is Millrace and the machine alone. Each kind of LOAD is repeated for
some seconds, and so are seconds without any: what is long there, the machine has done. What a core has done itself is told apart by
stats_mysql_cores: the most that a turn (all that it does between two looks at its sockets) took of the processor.
"""

import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from bench import MariaDb, free_port, login, packet, say, start, stop, sysbench, wait_for, CONFIGURATION, PASSWORD, USER

SECONDS = 10
# Only the kinds of LOADs whose name has this.
WANTED = os.environ.get("LOADS", "")
PACE = 1500

RULES = "INSERT INTO mysql_query_rules (rule_id, active, {column}, destination_hostgroup, apply) " \
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT 100 + i, 1, {pattern}, 1, 1 FROM n"
ROWS = "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) " \
       "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT 'app', 'shard_' || i, 0, i % 2, '' FROM n"

USERS = "INSERT INTO mysql_users (username, password, default_hostgroup) " \
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT 'many_' || i, 'secret_' || i, 1 FROM n"

COMPLEX = r"""'^\s*(select|update|delete)\s+.*\b(from|join|into)\s+`?table_' || i || '`?\s+where\s+[a-z_]{1,20}\s*=\s*\d+'"""

# Expressions that are in force are not compiled again: these are others each time.
OTHERS = "UPDATE mysql_query_rules SET {column} = CASE WHEN {column} LIKE '% ' THEN rtrim({column}) ELSE {column} || ' ' END WHERE rule_id > {above}"

KINDS = [
    ("none", None),
    ("20,000 rules by schema", RULES.format(count=20000, column="schemaname", pattern="'shard_' || i")),
    ("50,000 rules by schema", RULES.format(count=50000, column="schemaname", pattern="'shard_' || i")),
    ("20,000 rules, match_digest, all new", RULES.format(count=20000, column="match_digest", pattern="'^SELECT .* FROM table_' || i || ' WHERE'"),
     OTHERS.format(column="match_digest", above=1)),
    ("20,000 rules, complex, all new", RULES.format(count=20000, column="match_pattern", pattern=COMPLEX), OTHERS.format(column="match_pattern", above=1)),
    ("20,000 rules, complex, one new", RULES.format(count=20000, column="match_pattern", pattern=COMPLEX), OTHERS.format(column="match_pattern", above=20099)),
    ("20,000 rules, match_pattern, all new", RULES.format(count=20000, column="match_pattern", pattern="'FROM table_' || i || ' WHERE id = [0-9]+'"),
     OTHERS.format(column="match_pattern", above=1)),
    ("200,000 rows of fast routing", ROWS),
    ("100,000 users", USERS),
    ("none, again", None),
]


def probe(port, until, answers):
    """Asks every millisecond; says the milliseconds that answers took, and how many were not the rule's."""
    peer = login(port)
    question = b"\x03SELECT 'probe'"
    framed = len(question).to_bytes(3, "little") + b"\0" + question
    took, wrong = [], 0
    while time.time() < until:
        asked = time.perf_counter()
        peer.sendall(framed)
        wrong += b"from the rule" not in packet(peer)
        took.append((time.perf_counter() - asked) * 1000)
        time.sleep(0.001)
    answers.put((took, wrong))


def told(port, sql):
    """What an operator's SELECT answers: its first row."""
    ran = subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uadmin", "-padmin", "-N", "-e", sql],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"{sql[:60]}: {ran.stdout}")
    return ran.stdout.splitlines()[0].split("\t") if ran.stdout else []


def turns(door):
    """Of all cores since the last time: the longest turn in ms, the most of the processor that one took, how many took more than 5 ms, and of the processor."""
    return told(door, "SELECT MAX(longest_turn_us) / 1000.0, MAX(longest_turn_cpu_us) / 1000.0, SUM(turns_above_5ms), SUM(turns_above_5ms_cpu) "
                      "FROM stats_mysql_cores_reset")


def cores(pid):
    """Milliseconds that the threads of the cores ran, and that they waited for a processor."""
    ran = waited = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm") as name, open(f"/proc/{pid}/task/{thread}/schedstat") as numbers:
            if name.read().startswith("core "):
                one, other, _ = numbers.read().split()
                ran, waited = ran + int(one) / 1e6, waited + int(other) / 1e6
    return ran, waited


def operator(door):
    """A session that stays: a client that starts anew for each LOAD takes the processor, too."""
    return subprocess.Popen(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{door}", "-uadmin", "-padmin", "-N", "--unbuffered", "--force"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measured(name, sql, change, port, door, pid):
    told(door, "DELETE FROM mysql_query_rules WHERE rule_id > 1; DELETE FROM mysql_query_rules_fast_routing; DELETE FROM mysql_users WHERE username LIKE 'many_%'" + (f"; {sql}" if sql else ""))
    turns(door)
    answers = multiprocessing.Queue()
    until = time.time() + SECONDS
    probes = [multiprocessing.Process(target=probe, args=(port, until, answers)) for _ in range(3)]
    for one in probes:
        one.start()
    traffic = subprocess.Popen(sysbench(f"127.0.0.1:{port}", 8, SECONDS) + [f"--rate={PACE}", "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    loads, session, before = [], operator(door), cores(pid)
    while sql and time.time() < until - 1:
        session.stdin.write(f"{change or 'SELECT 1'};\nSELECT 'changed';\n")
        session.stdin.flush()
        while "changed" not in session.stdout.readline():
            pass
        begun = time.time()
        session.stdin.write(f"LOAD MYSQL {'USERS' if sql is USERS else 'QUERY RULES'} TO RUNTIME;\nSELECT 'loaded';\n")
        session.stdin.flush()
        session.stdout.readline()
        loads.append(time.time() - begun)
    session.stdin.close()
    session.wait()
    asked = [answers.get() for _ in probes]
    said = traffic.communicate()[0]
    for one in probes:
        one.join()
    longest_turn, longest_cpu, long_turns, long_cpu = turns(door)
    ran, waited = (after - then for after, then in zip(cores(pid), before))
    took = sorted(one for some, _ in asked for one in some)
    wrong = sum(wrong for _, wrong in asked)
    longest = re.search(r"max:\s+([\d.]+)", said)
    errors = wrong + int((re.search(r"ignored errors:\s+(\d+)", said) or ["", "0"])[1]) + (traffic.returncode != 0)
    if traffic.returncode != 0:
        say(said)
    slow = sum(one > 5 for one in took)
    return (f"| {name} | {len(loads)} | {statistics.median(loads) if loads else 0:.2f} | {max(loads, default=0):.2f} | {errors} | {took[len(took) // 2]:.2f} | "
            f"{took[int(len(took) * 0.999)]:.2f} | {took[-1]:.1f} | {slow} of {len(took):,} | {longest[1] if longest else '?'} | "
            f"{float(longest_turn):.1f} | {long_turns} | {float(longest_cpu):.1f} | {long_cpu} | {ran:.0f} | {waited:.0f} |")


def main():
    target = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="millrace-loads-") as folder:
        server = MariaDb(folder)
        port, door = free_port(), free_port()
        path = os.path.join(folder, "proxysql.cnf")
        with open(path, "w") as file:
            text = CONFIGURATION.format(home=folder, admin=door, workers=2, port=port, server=server.port, user=USER, password=PASSWORD)
            rule = '{ rule_id = 1, active = 1, match_pattern = "^SELECT .probe", OK_msg = "from the rule", apply = 1 }'
            file.write(re.sub(r"mysql_query_rules =\n\(.*?\n\)", lambda _: f"mysql_query_rules =\n(\n    {rule}\n)", text, flags=re.S))
        millrace = start([os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", folder, "--io-driver", "uring"], folder, "millrace")
        try:
            wait_for(port, millrace, "Millrace")
            print(f"sysbench oltp_point_select at {PACE} a second and 3 probes, {SECONDS} s a row, {os.cpu_count()} cores\n")
            print("| LOAD of | LOADs | s each | s the longest | errors | probe median ms | p99.9 | longest | above 5 ms | sysbench longest ms | longest turn ms | turns above 5 ms | of the processor, ms | above 5 ms | cores ran ms | cores waited for a processor ms |")
            print("|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
            for name, sql, *change in KINDS:
                if not WANTED or WANTED in name:
                    print(measured(name, sql, *change or [None], port, door, millrace.pid), flush=True)
        finally:
            stop(millrace)
            stop(server.process)


if __name__ == "__main__":
    main()
