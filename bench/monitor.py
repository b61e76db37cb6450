"""What the monitor costs with very many servers: the processor's time of the proxy, and of which of its threads.

One process stands for all servers: it listens on all addresses of loopback, and answers checks at each. 2,000 rows of mysql_servers, 20
for each of 100 pairs of hostgroups; the first of the 20 may write. All intervals are the defaults. Nobody else asks for anything.
"""

import argparse
import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time

from bench import cpu, free_port, say, start, stop, wait_for

HEAD = """datadir = "{home}"
admin_variables = {{ admin_credentials = "admin:admin", mysql_ifaces = "127.0.0.1:{admin}" }}
mysql_variables = {{ threads = 2, interfaces = "127.0.0.1:{port}", monitor_username = "monitor", monitor_password = "monitor", monitor_enabled = true }}
mysql_users = ( {{ username = "app", password = "app", default_hostgroup = 0 }} )
"""


def packets(*payloads, seq=1):
    """Payloads with their headers."""
    return b"".join(len(one).to_bytes(3, "little") + bytes([seq + at]) + one for at, one in enumerate(payloads))


def text(word):
    return bytes([len(word)]) + word


def row(name, value):
    """A result of one column and one row."""
    column = b"\x03def\0\0\0" + text(name) + b"\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0"
    end = b"\xfe\0\0\2\0"
    return packets(b"\1", column, end, text(value), end)


GREETING = packets(
    b"\x0a5.5.5-10.11.9-MariaDB\0" + (1).to_bytes(4, "little") + b"12345678\0" + b"\xff\xf7\x21\2\0\x0f\x80\x15" + b"\0" * 10 + b"123456789012\0mysql_native_password\0",
    seq=0)
SAYS_OK = b"\0\0\0\2\0\0\0"


class Server(asyncio.Protocol):
    """A server that lets everybody in, and says of itself what its address says."""

    def connection_made(self, transport):
        self.transport, self.read, self.in_ = transport, b"", False
        self.may_write = transport.get_extra_info("sockname")[0].endswith(".1")
        transport.write(GREETING)

    def data_received(self, data):
        self.read += data
        while len(self.read) >= 4:
            length = int.from_bytes(self.read[:3], "little")
            if len(self.read) < 4 + length:
                return
            payload, seq, self.read = self.read[4:4 + length], self.read[3], self.read[4 + length:]
            if not self.in_:
                self.in_ = True
                self.transport.write(packets(SAYS_OK, seq=seq + 1))
            elif payload[:1] == b"\3" and b"read_only" in payload:
                self.transport.write(row(b"read_only", b"0" if self.may_write else b"1"))
            elif payload[:1] == b"\1":
                self.transport.close()
            else:
                self.transport.write(packets(SAYS_OK))


def servers(port):
    async def serve():
        server = await asyncio.get_running_loop().create_server(Server, "0.0.0.0", port, backlog=4096)
        await server.serve_forever()

    asyncio.run(serve())


def threads(pid):
    """Milliseconds that each thread ran, by its name."""
    ran = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/comm") as name, open(f"/proc/{pid}/task/{thread}/schedstat") as numbers:
                name = name.read().strip()
                ran[name] = ran.get(name, 0) + int(numbers.read().split()[0]) / 1e6
        except OSError:
            pass
    return ran


def rows(count, port):
    servers = ",\n".join(
        f'{{ address = "127.1.{at // 20}.{at % 20 + 1}", port = {port}, hostgroup = {2 * (at // 20)}, max_connections = 10 }}' for at in range(count))
    pairs = ",\n".join(f"{{ writer_hostgroup = {2 * at}, reader_hostgroup = {2 * at + 1} }}" for at in range((count + 19) // 20))
    return f"mysql_servers =\n(\n{servers}\n)\nmysql_replication_hostgroups =\n(\n{pairs}\n)\n"


def asked(door, sql):
    ran = subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{door}", "-uadmin", "-padmin", "-N", "-e", sql],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ran.stdout.strip()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", required=True)
    options.add_argument("--program", help="another Millrace than that of the release")
    options.add_argument("--servers", type=int, default=2000)
    options.add_argument("--seconds", type=int, default=30)
    options.add_argument("--monitor", action="store_true", help="what this script does")
    wish = options.parse_args()
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="millrace-monitor-") as folder:
        port, door, there = free_port(), free_port(), free_port()
        all_servers = multiprocessing.Process(target=servers, args=(there,), daemon=True)
        all_servers.start()
        path = os.path.join(folder, "proxysql.cnf")
        with open(path, "w") as file:
            file.write(HEAD.format(home=folder, admin=door, port=port) + rows(wish.servers, there))
        program = wish.program or os.path.join(wish.target, "release/millrace")
        begun = time.time()
        millrace = start([program, "-f", "-c", path, "-D", folder], folder, "millrace")
        try:
            wait_for(port, millrace, "Millrace")
            seen = "SELECT COUNT(*) FROM runtime_mysql_servers WHERE hostgroup_id % 2 = 1"
            wanted = wish.servers
            while asked(door, seen) != str(wanted):
                if time.time() > begun + 120:
                    raise SystemExit(f"not all servers were seen: {asked(door, seen)}; log: {open(millrace.log).read()[-2000:]}")
                time.sleep(0.2)
            at_start = sum(cpu(millrace.pid))
            say(f"all of {wish.servers} were seen after {time.time() - begun:.1f} s, and {at_start:.2f} s of the processor")
            time.sleep(5)
            before, then, since = sum(cpu(millrace.pid)), threads(millrace.pid), time.time()
            time.sleep(wish.seconds)
            took = time.time() - since
            after = threads(millrace.pid)
            share = (sum(cpu(millrace.pid)) - before) / took * 100
            of = ", ".join(f"{name} {(after[name] - then.get(name, 0)) / took / 10:.1f}" for name in sorted(after) if after[name] - then.get(name, 0) > took)
            print("| servers | until all were seen | s of the processor until then | % of a core after that | of which |")
            print("|--:|--:|--:|--:|:--|")
            print(f"| {wish.servers:,} | {since - begun - 5:.1f} s | {at_start:.2f} | {share:.1f} | {of} |")
        finally:
            stop(millrace)
            all_servers.terminate()


if __name__ == "__main__":
    main()
