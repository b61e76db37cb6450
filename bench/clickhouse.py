"""ClickHouse behind Millrace: a wide scan and `SELECT 1` beside ClickHouse's own HTTP, and months as texts beside months as numbers.

One Debian ClickHouse, one Millrace with `--clickhouse-server`. Rounds take turns, so that the machine's other work falls on all alike.
Clients only count bytes. HTTP's client is a socket that stays open, as Millrace's own is.
"""

import argparse
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from bench import cpu, free_port, login, start, stop, wait_for, PASSWORD, SCHEMA, USER

SERVER = shutil.which("clickhouse-server") or "/usr/sbin/clickhouse-server"
WIDE = ("CREATE TABLE wide ENGINE = MergeTree ORDER BY id AS SELECT toUInt64(number) AS id, toInt32(number % 100000) - 50000 AS small, "
        "toUInt8(number % 200) AS tiny, concat('customer number ', toString(number % 5000)) AS name, toDate('2018-01-01') + number % 700 AS day, "
        "toDateTime('2018-01-01 00:00:00') + number * 7 AS at, number / 7 AS share, toString(sipHash64(number)) AS token FROM system.numbers LIMIT {rows}")
EVENTS = ("CREATE TABLE tablename ENGINE = MergeTree ORDER BY id AS SELECT toUInt32(number) AS id, "
          "toDateTime('2015-01-01 00:00:00') + number * 13 AS created FROM system.numbers LIMIT {rows}")
# The statement of a user of ProxySQL, as his rule rewrote it, and the other way to have a row for each month.
AS_TEXT = ("SELECT COUNT(`id`), substring(toString(toDate(created)),1,7) AS `date` FROM `tablename` "
           "GROUP BY substring(toString(toDate(created)),1,7)")
AS_NUMBERS = "SELECT COUNT(`id`), toYear(created) AS y, toMonth(created) AS m FROM `tablename` GROUP BY y, m"


class House:
    """A ClickHouse of its own."""

    def __init__(self, folder):
        self.http = free_port()
        tcp, between = free_port(), free_port()
        with open(os.path.join(folder, "config.xml"), "w") as file:
            file.write(f"<yandex><logger><level>warning</level><console>1</console></logger><http_port>{self.http}</http_port><tcp_port>{tcp}</tcp_port>"
                       f"<interserver_http_port>{between}</interserver_http_port><listen_host>127.0.0.1</listen_host><path>{folder}/data/</path>"
                       f"<tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/files/</user_files_path>"
                       f"<format_schema_path>{folder}/schemas/</format_schema_path><mark_cache_size>67108864</mark_cache_size>"
                       "<uncompressed_cache_size>0</uncompressed_cache_size><users_config>users.xml</users_config>"
                       "<default_profile>default</default_profile><default_database>default</default_database><timezone>UTC</timezone></yandex>\n")
        with open(os.path.join(folder, "users.xml"), "w") as file:
            file.write("<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>"
                       "<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>\n")
        self.process = start([SERVER, f"--config-file={folder}/config.xml"], folder, "clickhouse")
        wait_for(self.http, self.process, "ClickHouse", greeting=False)
        self.peer = socket.create_connection(("127.0.0.1", self.http))
        self.buffer = bytearray(1 << 20)

    def ask(self, sql, form="TabSeparated", database=SCHEMA):
        """Bytes of the answer."""
        body = sql.encode()
        self.peer.sendall(f"POST /?default_format={form}&database={database} HTTP/1.1\r\nHost: it\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        came, tail, text = 0, b"", b""
        while not tail.endswith(b"\r\n0\r\n\r\n") and b"Content-Length: 0\r\n\r\n" not in text:
            many = self.peer.recv_into(self.buffer)
            if not many:
                raise SystemExit(f"ClickHouse has gone: {sql}")
            came += many
            tail = (tail + bytes(self.buffer[max(0, many - 16):many]))[-16:]
            if len(text) < 400:
                text += bytes(self.buffer[:min(many, 400)])
        if not text.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{sql}: {text.decode(errors='replace')}")
        return came


def millrace(folder, house, target):
    """(port, process)"""
    port, traffic, door = free_port(), free_port(), free_port()
    path = os.path.join(folder, "proxysql.cnf")
    with open(path, "w") as file:
        file.write(f'datadir = "{folder}"\nadmin_variables = {{ admin_credentials = "admin:admin", mysql_ifaces = "127.0.0.1:{door}" }}\n'
                   f'mysql_variables = {{ threads = 1, interfaces = "127.0.0.1:{traffic}", monitor_enabled = false }}\n'
                   f'clickhouse_variables = {{ mysql_ifaces = "127.0.0.1:{port}", http_port = {house.http} }}\n')
    process = start([os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", folder, "--clickhouse-server"], folder, "millrace")
    wait_for(door, process, "Millrace")
    user = f"INSERT INTO clickhouse_users (username, password) VALUES ('{USER}', '{PASSWORD}'); LOAD CLICKHOUSE USERS TO RUNTIME"
    subprocess.run(["mariadb", "--no-defaults", "-uadmin", "-padmin", "-h127.0.0.1", f"-P{door}", "-e", user], check=True)
    return port, process


class Client:
    """A client of MySQL that counts the bytes of a result."""

    def __init__(self, port):
        self.peer, self.buffer = login(port), bytearray(1 << 20)

    def ask(self, sql):
        text = b"\x03" + sql.encode()
        self.peer.sendall(struct.pack("<I", len(text))[:3] + b"\0" + text)
        came, tail = 0, b""
        while True:
            many = self.peer.recv_into(self.buffer)
            if not many:
                raise SystemExit(f"Millrace has gone: {sql}")
            if came == 0 and self.buffer[4] == 0xFF:
                raise SystemExit(f"{sql}: {bytes(self.buffer[7:many]).decode()}")
            came += many
            tail = (tail + bytes(self.buffer[max(0, many - 9):many]))[-9:]
            # The EOF behind the definitions ends like the one behind the rows, and rows follow it at once or never.
            if tail[:3] == b"\5\0\0" and tail[4:5] == b"\xfe" and came > 200:
                return came


def latencies(ask, times):
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        ask()
        took.append((time.perf_counter() - begun) * 1e6)
    took.sort()
    return took[times // 2], took[times * 99 // 100]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", required=True)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--rows", type=int, default=3_000_000)
    options.add_argument("--clickhouse", action="store_true", help="what this script does")
    wish = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-clickhouse-") as folder:
        house = process = None
        try:
            house = House(folder)
            house.ask("CREATE DATABASE IF NOT EXISTS " + SCHEMA, database="default")
            house.ask(WIDE.format(rows=wish.rows))
            house.ask(EVENTS.format(rows=wish.rows * 2))
            home = os.path.join(folder, "proxy")
            os.makedirs(home)
            port, process = millrace(home, house, wish.target)
            report(house, port, process, wish)
        finally:
            for one in (process, house and house.process):
                if one:
                    stop(one)


def report(house, port, process, wish):
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    print(f"{wish.rounds} rounds in turn. {os.cpu_count()} × {names[0]}\n")
    client = Client(port)
    ways = {
        "through Millrace's port": lambda: client.ask("SELECT * FROM wide"),
        "ClickHouse's HTTP, TabSeparated": lambda: house.ask("SELECT * FROM wide"),
        "ClickHouse's HTTP, Native": lambda: house.ask("SELECT * FROM wide", "Native"),
    }
    rates, used = {way: [] for way in ways}, []
    for ask in ways.values():
        ask()
    for _ in range(wish.rounds):
        for way, ask in ways.items():
            before, begun = sum(cpu(process.pid)), time.perf_counter()
            came = ask()
            rates[way].append((wish.rows / (time.perf_counter() - begun) / 1e6, came))
            if way.startswith("through"):
                used.append((sum(cpu(process.pid)) - before) / wish.rows * 1e6)
    print(f"A scan of {wish.rows:,} rows with eight columns:\n\n| | million rows a second, median (all) | bytes |\n|:--|--:|--:|")
    middle = {}
    for way, all_ in rates.items():
        speeds = sorted(speed for speed, _ in all_)
        middle[way] = speeds[len(speeds) // 2]
        print(f"| {way} | {middle[way]:.2f} ({', '.join(f'{speed:.2f}' for speed, _ in all_)}) | {all_[-1][1]:,} |")
    ours, texts, _ = middle.values()
    print(f"\nMillrace has {ours / texts:.2f} of the rate of HTTP's texts, with {sorted(used)[len(used) // 2]:.2f} µs of CPU a row.\n")

    print("`SELECT 1`, 2,000 times over one connection, µs:\n\n| | median | 99 % |\n|:--|--:|--:|")
    one = {"through Millrace's port": lambda: client.ask("SELECT 1 AS a_name_that_makes_the_answer_longer_than_two_hundred_bytes" + "_" * 150),
           "ClickHouse's HTTP, TabSeparated": lambda: house.ask("SELECT 1")}
    for way, ask in one.items():
        latencies(ask, 200)
        print("| {} | {:,.0f} | {:,.0f} |".format(way, *latencies(ask, 2000)))

    print(f"\nA row for each month of {wish.rows * 2:,}, through Millrace's port, ms:\n\n| | median | best |\n|:--|--:|--:|")
    months = {}
    for words, sql in (("months as texts, `2018-03`", AS_TEXT), ("months as numbers, 2018 and 3", AS_NUMBERS)):
        client.ask(sql)
        took = []
        for _ in range(wish.rounds * 2):
            begun = time.perf_counter()
            client.ask(sql)
            took.append((time.perf_counter() - begun) * 1000)
        months[words] = sorted(took)[len(took) // 2]
        print(f"| {words} | {months[words]:,.1f} | {min(took):,.1f} |")
    texts, numbers = months.values()
    print(f"\nAs texts it takes {texts / numbers:.2f} times as long.")


if __name__ == "__main__":
    main()
