"""The window without service: how long a client that writes gets no answer, when its server dies, hangs, or hands over.

A primary of MariaDB and two replicas, semi-synchronous so that what was acknowledged is on a replica; a script promotes one at once, as
a tool that has noticed would. Three nodes of Galera and three members of MySQL's Group Replication with their own timeouts, which find
out by themselves. One client writes unique rows through a proxy, each as soon as the one before is answered. Then the server that gets them is killed, is stopped (it
hangs), or hands over. Beside Millrace there is HAProxy with an external check, and mysqlrouter with static routes, which knows only
that a server is dead.

The window is the longest time between two rows that were acknowledged. A part of it no proxy can help: until another server takes
writes. At the end every row that was acknowledged must be there.
"""

import argparse
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

from bench import free_port, login, packet, say, start, stop, wait_for, PASSWORD, SCHEMA, USER

NODES = 3
MARIADBD = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
AS_ROOT = ["--user=root"] if os.getuid() == 0 else []
FAULTS = ("kill -9 of the writer", "the writer hangs (SIGSTOP)", "planned switchover")


SEMI_SYNC = ["--log-bin=binlog", "--log-slave-updates", "--gtid-strict-mode=1", "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
             "--rpl-semi-sync-master-timeout=3600000", "--rpl-semi-sync-slave-enabled=1", "--slave-net-timeout=3600"]
SETS_UP = (f"CREATE DATABASE {SCHEMA}; CREATE TABLE {SCHEMA}.told (n INT PRIMARY KEY, at TIMESTAMP(6) DEFAULT NOW(6)) ENGINE=InnoDB; "
           f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON {SCHEMA}.* TO {USER}@'%'; "
           "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; CREATE USER copies@'%' IDENTIFIED BY 'copied'; GRANT REPLICATION SLAVE ON *.* TO copies@'%'")


class Node:
    server = [MARIADBD, "--innodb-log-file-size=8M"]
    greets = True

    def __init__(self, folder, number, data, more, port=None):
        self.folder = os.path.join(folder, f"node{number}")
        os.makedirs(self.folder)
        self.data, self.socket, self.port = os.path.join(self.folder, "data"), os.path.join(self.folder, "s"), port or free_port()
        shutil.copytree(data, self.data)
        self.process = start(
            [self.server[0], "--no-defaults", f"--datadir={self.data}", f"--tmpdir={self.folder}", f"--socket={self.socket}", f"--port={self.port}",
             "--bind-address=127.0.0.1", "--skip-name-resolve", f"--server-id={number}", "--innodb-flush-log-at-trx-commit=2",
             "--innodb-buffer-pool-size=64M", *self.server[1:], *more, *AS_ROOT], self.folder, "server")
        wait_for(self.port, self.process, "a server", self.greets)
        while not os.path.exists(self.socket):
            time.sleep(0.01)

    def sql(self, text, within=30):
        ran = subprocess.run(["mariadb", "--no-defaults", "-uroot", f"--socket={self.socket}", "-N", "-e", text],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=within)
        if ran.returncode != 0:
            raise SystemExit(f"{text}: {ran.stdout}")
        return ran.stdout.strip()

    def follows(self, primary):
        self.sql(f"STOP SLAVE; CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='copies', MASTER_PASSWORD='copied', "
                 "MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE; SET GLOBAL read_only=1")


class Cluster:
    """Servers of which the first gets the writes."""

    password = PASSWORD
    monitor_password = "monitor"
    login = staticmethod(login)

    def stop(self):
        end(self.nodes)


class Primary(Cluster):
    """A primary, which is the first, and its replicas."""

    name = "a primary and two replicas"
    pair = "mysql_replication_hostgroups = ( { writer_hostgroup = 0, reader_hostgroup = 1 } )"
    check = "SELECT @@global.read_only = 0"

    def __init__(self, folder, data):
        self.nodes = [Node(folder, number, data, SEMI_SYNC) for number in range(1, NODES + 1)]
        primary = self.nodes[0]
        primary.sql(SETS_UP)
        for node in self.nodes[1:]:
            node.follows(primary)
        primary.sql("SET GLOBAL rpl_semi_sync_master_enabled=1")
        while primary.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").split()[-1] != str(NODES - 1):
            time.sleep(0.1)

    def promote(self, planned):
        """What a failover tool does when it has noticed: the replica that has most takes writes, the other follows it."""
        old, replicas = self.nodes[0], self.nodes[1:]
        if planned:
            old.sql("SET GLOBAL read_only=1")
            there = old.sql("SELECT @@gtid_binlog_pos")
            for node in replicas:
                node.sql(f"SELECT MASTER_GTID_WAIT('{there}', 10)")
        else:
            for node in replicas:
                # All that has arrived is applied before anybody is compared.
                node.sql("STOP SLAVE IO_THREAD")
                while "has read all relay log" not in node.sql("SHOW PROCESSLIST"):
                    time.sleep(0.01)
        new = max(replicas, key=lambda node: int(node.sql("SELECT @@gtid_slave_pos").rsplit("-", 1)[-1] or 0))
        new.sql("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only=0")
        promoted = time.monotonic()
        for node in replicas + ([old] if planned else []):
            if node is not new:
                node.follows(new)
        return new, promoted


def end(nodes):
    for node in nodes:
        if node.process.poll() is None:
            node.process.send_signal(signal.SIGCONT)
        stop(node.process)


GALERA = "/usr/lib/galera/libgalera_smm.so"

# A node that joins has a copy of the first one's data and needs only what was written since, so the program that brings a copy only says so.
BRINGS_NOTHING = """#!/bin/sh
bypass=no
while [ $# -gt 0 ]; do
    case $1 in
        --role) role=$2; shift ;;
        --address) address=$2; shift ;;
        --datadir) data=$2; shift ;;
        --gtid) gtid=$2; shift ;;
        --bypass) bypass=yes ;;
    esac
    shift
done
case $role in
    joiner)
        mark=${data%/}/../transfer
        rm -f "$mark"
        echo "ready 127.0.0.1:1/$mark"
        until [ -e "$mark" ]; do sleep 0.05; done
        cat "$mark" ;;
    donor)
        [ $bypass = yes ] || exit 22
        mark=${address#*/}
        echo "$gtid" >"$mark.new" && mv "$mark.new" "$mark"
        echo "done $gtid" ;;
esac
"""


class Galera(Cluster):
    """Three nodes; the first gets the writes."""

    name = "three nodes of Galera"
    pair = "mysql_galera_hostgroups = ( { writer_hostgroup = 0, backup_writer_hostgroup = 2, reader_hostgroup = 1, offline_hostgroup = 3, active = 1, max_writers = 1 } )"
    check = ("SELECT @@global.read_only = 0 AND (SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_local_state') = 4 "
             "AND (SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_cluster_status') = 'Primary'")

    def __init__(self, folder, data):
        tool = os.path.join(folder, "wsrep_sst_brings_nothing")
        with open(tool, "w") as file:
            file.write(BRINGS_NOTHING)
        os.chmod(tool, 0o755)
        os.environ["PATH"] = folder + ":" + os.environ["PATH"]
        ports = [(free_port(), free_port()) for _ in range(NODES)]
        members = ",".join(f"127.0.0.1:{group}" for group, _ in ports)

        def options(at):
            group, transfer = ports[at]
            return ["--log-bin=binlog", "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=1", "--wsrep-sst-method=brings_nothing",
                    f"--wsrep-provider={GALERA}", f"--wsrep-cluster-address=gcomm://{members}", f"--wsrep-node-address=127.0.0.1:{group}",
                    f"--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{transfer};gcache.size=16M;"
                    "gcache.recover=no;pc.recovery=false"]

        first = Node(os.path.join(folder, "begins"), 1, data, [*options(0), "--wsrep-new-cluster"])
        synced(first)
        first.sql(SETS_UP)
        first.sql("SHUTDOWN")
        first.process.wait(60)
        for own in ("galera.cache", "gvwstate.dat"):
            if os.path.exists(os.path.join(first.data, own)):
                os.remove(os.path.join(first.data, own))
        self.nodes = []
        for at in range(NODES):
            self.nodes.append(Node(folder, at + 1, first.data, [*options(at), *(["--wsrep-new-cluster"] if at == 0 else [])]))
            synced(self.nodes[-1])

    def promote(self, planned):
        """Nobody promotes: the others find out, or the first says that it only reads."""
        new = self.nodes[1]
        if planned:
            self.nodes[0].sql("SET GLOBAL read_only=1")
        else:
            while status(new, "wsrep_cluster_size") != str(NODES - 1) or status(new, "wsrep_ready") != "ON":
                time.sleep(0.02)
        return new, time.monotonic()


def status(node, name):
    return node.sql(f"SHOW STATUS LIKE '{name}'").split()[-1]


def synced(node):
    until = time.monotonic() + 60
    while status(node, "wsrep_local_state") != "4":
        if time.monotonic() > until:
            raise SystemExit(f"a node of Galera is not synced; its log: {node.process.log}")
        time.sleep(0.1)


def login_without_password(port):
    """Of a user without a password, whatever the server's plugin is."""
    peer = socket.create_connection(("127.0.0.1", port), 20)
    packet(peer)
    capabilities = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
    body = struct.pack("<IIB23x", capabilities, 1 << 24, 45) + USER.encode() + b"\0\0" + SCHEMA.encode() + b"\0caching_sha2_password\0"
    peer.sendall(struct.pack("<I", len(body))[:3] + b"\x01" + body)
    said = packet(peer)
    if said[:1] == b"\xfe":
        peer.sendall(b"\0\0\0\x03")
        said = packet(peer)
    if said[:1] != b"\0":
        raise SystemExit(f"login refused: {said!r}")
    return peer


class Member(Node):
    # It has no accounts for anybody on this host yet.
    greets = False
    server = [None, "--innodb-redo-log-capacity=8M", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog", "--mysqlx=OFF", "--secure-file-priv=NULL",
              "--performance-schema=ON", "--report-host=127.0.0.1", "--plugin-load-add=group_replication.so", "--innodb-doublewrite=0"]


class Group(Cluster):
    """Three members of Group Replication with one primary, which is the first."""

    name = "three members of Group Replication"
    pair = ("mysql_group_replication_hostgroups = ( { writer_hostgroup = 0, backup_writer_hostgroup = 2, reader_hostgroup = 1, offline_hostgroup = 3, "
            "active = 1, max_writers = 1 } )")
    check = "SELECT @@global.super_read_only = 0"
    # The plugin that all accounts have wants TLS for a password.
    password = monitor_password = ""
    login = staticmethod(login_without_password)

    def __init__(self, folder, data):
        Member.server[0] = self.program
        own = os.path.join(os.path.dirname(data), "mysql")
        if not os.path.exists(own):
            subprocess.run([self.program, "--no-defaults", "--initialize-insecure", "--innodb-redo-log-capacity=8M", f"--datadir={own}", *AS_ROOT],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # Members are told apart by it.
            os.remove(os.path.join(own, "auto.cnf"))
        ports = [free_port() for _ in range(NODES)]
        seeds = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.nodes = []
        for at, port in enumerate(ports):
            member = Member(folder, at + 1, own, [
                "--loose-group-replication-group-name=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "--loose-group-replication-start-on-boot=OFF",
                "--loose-group-replication-communication-stack=MYSQL", f"--loose-group-replication-local-address=127.0.0.1:{port}",
                f"--loose-group-replication-group-seeds={seeds}", "--loose-group-replication-recovery-use-ssl=ON", "--loose-group-replication-ssl-mode=REQUIRED"], port)
            self.nodes.append(member)
            member.sql("SET sql_log_bin = 0; CREATE USER member@'%' IDENTIFIED BY 'members'; "
                       "GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO member@'%'; "
                       "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'member', SOURCE_PASSWORD = 'members' FOR CHANNEL 'group_replication_recovery'")
            if at == 0:
                member.sql("SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; SET GLOBAL group_replication_bootstrap_group = OFF")
                member.sql(f"CREATE DATABASE {SCHEMA}; CREATE TABLE {SCHEMA}.told (n INT PRIMARY KEY, at TIMESTAMP(6) DEFAULT NOW(6)) ENGINE=InnoDB; "
                           f"CREATE USER {USER}@'%'; GRANT ALL ON {SCHEMA}.* TO {USER}@'%'; CREATE USER monitor@'%'; GRANT SELECT ON performance_schema.* TO monitor@'%'")
            else:
                member.sql("START GROUP_REPLICATION", within=60)
                until = time.monotonic() + 60
                while member.sql("SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@global.server_uuid") != "ONLINE":
                    if time.monotonic() > until:
                        raise SystemExit(f"a member of the group is not online; its log: {member.process.log}")
                    time.sleep(0.1)

    def promote(self, planned):
        """The group elects who takes writes, or is told."""
        old, others = self.nodes[0], self.nodes[1:]
        if planned:
            old.sql(f"SELECT group_replication_set_as_primary('{others[0].sql('SELECT @@global.server_uuid')}')", within=60)
        while True:
            for node in others:
                if node.sql("SELECT @@global.super_read_only") == "0":
                    return node, time.monotonic()
            time.sleep(0.02)


class Writer(threading.Thread):
    """Writes 1, 2, 3 and so on until it is told to end. One that failed is not tried again: nobody knows whether it was done."""

    def __init__(self, port, login):
        super().__init__(daemon=True)
        self.port, self.login, self.over, self.told, self.errors = port, login, False, [], {}

    def run(self):
        peer, number = None, 0
        while not self.over:
            number += 1
            try:
                if peer is None:
                    peer = self.login(self.port)
                    peer.settimeout(60)
                text = b"\x03INSERT INTO told (n) VALUES (%d)" % number
                peer.sendall(struct.pack("<I", len(text)) + text)
                said = packet(peer)
                if said[:1] == b"\0":
                    self.told.append((number, time.monotonic()))
                    continue
                word = f"error {struct.unpack('<H', said[1:3])[0]}" if said[:1] == b"\xff" else "connection lost"
                if said[:1] == b"\xff":
                    self.errors[word] = self.errors.get(word, 0) + 1
                    time.sleep(0.005)
                    continue
            except (OSError, SystemExit, ValueError, IndexError, struct.error) as failed:
                word = "no connection" if peer is None else "connection lost"
                del failed
            self.errors[word] = self.errors.get(word, 0) + 1
            if peer is not None:
                peer.close()
            peer = None
            time.sleep(0.005)

    def has_told(self, since, count=20):
        return sum(at > since for _, at in self.told) >= count

    def window(self, since):
        """The longest time between two rows from a second before the fault on."""
        times = [at for _, at in self.told if at > since - 1]
        return max(after - before for before, after in zip(times, times[1:]))


def millrace(folder, cluster, target):
    port, door = free_port(), free_port()
    path = os.path.join(folder, "proxysql.cnf")
    rows = ", ".join(f'{{ address = "127.0.0.1", port = {node.port}, hostgroup = 0, weight = {NODES - at} }}' for at, node in enumerate(cluster.nodes))
    with open(path, "w") as file:
        file.write(f'datadir = "{folder}"\nadmin_variables = {{ admin_credentials = "admin:admin", mysql_ifaces = "127.0.0.1:{door}" }}\n'
                   f'mysql_variables = {{ threads = 2, interfaces = "127.0.0.1:{port}", monitor_username = "monitor", monitor_password = "{cluster.monitor_password}" }}\n'
                   f"mysql_servers = ( {rows} )\n{cluster.pair}\n"
                   f'mysql_users = ( {{ username = "{USER}", password = "{cluster.password}", default_hostgroup = 0 }} )\n')
    process = start([os.path.join(target, "release/millrace"), "-f", "-c", path, "-D", folder], folder, "millrace")
    wait_for(port, process, "Millrace")
    return port, process


def haproxy(folder, cluster, _target):
    """One server at a time, the first that may write; one that goes down has its sessions ended, as manuals for such checks say."""
    port, path, check = free_port(), os.path.join(folder, "haproxy.cfg"), os.path.join(folder, "check.sh")
    with open(check, "w") as file:
        file.write('#!/bin/sh\n[ "$(mariadb --no-defaults --connect-timeout=1 -h "$3" -P "$4" -umonitor --password="' + cluster.monitor_password + '" -N -e "' + cluster.check + '" 2>/dev/null)" = 1 ]\n')
    os.chmod(check, 0o755)
    servers = "\n".join(f"  server s{node.port} 127.0.0.1:{node.port} check inter 1s fall 1 rise 1 on-marked-down shutdown-sessions{' backup' if at else ''}" for at, node in enumerate(cluster.nodes))
    with open(path, "w") as file:
        file.write("global\n  nbthread 1\n  external-check\n  insecure-fork-wanted\n"
                   "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1h\n  timeout server 1h\n  timeout check 1s\n  retries 1\n  option redispatch\n"
                   f'listen mysql\n  bind 127.0.0.1:{port}\n  option external-check\n  external-check path "/usr/bin:/bin:/usr/sbin"\n  external-check command {check}\n{servers}\n')
    process = start([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", path], folder, "haproxy")
    wait_for(port, process, "HAProxy")
    return port, process


def mysqlrouter(folder, cluster, program):
    port, path = free_port(), os.path.join(folder, "router.conf")
    destinations = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
    with open(path, "w") as file:
        file.write(f"[DEFAULT]\nruntime_folder={folder}\ndata_folder={folder}\nlogging_folder={folder}\n[routing:one]\nbind_address=127.0.0.1\nbind_port={port}\n"
                   f"destinations={destinations}\nrouting_strategy=first-available\nprotocol=classic\nclient_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT\n")
    process = start([program, "-c", path, *AS_ROOT], folder, "router")
    wait_for(port, process, "mysqlrouter")
    return port, process


def measured(kind, data, way, fault, target):
    """(milliseconds without service, milliseconds until the new primary took writes, errors that the client saw, rows lost)."""
    with tempfile.TemporaryDirectory(prefix="millrace-window-") as folder:
        cluster, process = kind(folder, data), None
        home = os.path.join(folder, "proxy")
        os.makedirs(home)
        try:
            port, process = way(home, cluster, target)
            writer = Writer(port, cluster.login)
            writer.start()
            until = time.monotonic() + 60
            # It has found out who writes, and all is warm.
            while not writer.has_told(time.monotonic() - 1, 20) and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(2)
            before, since = dict(writer.errors), time.monotonic()
            if fault == FAULTS[0]:
                cluster.nodes[0].process.send_signal(signal.SIGKILL)
            elif fault == FAULTS[1]:
                cluster.nodes[0].process.send_signal(signal.SIGSTOP)
            new, promoted = cluster.promote(planned=fault == FAULTS[2])
            until = time.monotonic() + 90
            while not writer.has_told(promoted, 50) and time.monotonic() < until:
                time.sleep(0.05)
            served = writer.has_told(promoted, 50)
            writer.over = True
            writer.join(70)
            there = set(new.sql(f"SELECT n FROM {SCHEMA}.told").split())
            lost = sum(str(number) not in there for number, _ in writer.told)
            errors = {word: count - before.get(word, 0) for word, count in writer.errors.items() if count > before.get(word, 0)}
            window = writer.window(since) * 1000 if served else None
            return window, (promoted - since) * 1000, errors, lost, len(writer.told)
        finally:
            if process:
                stop(process)
            cluster.stop()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", required=True)
    options.add_argument("--cache", default="")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="topologies whose name has this")
    options.add_argument("--windows", action="store_true", help="what this script does")
    wish = options.parse_args()
    router = os.path.join(wish.cache, "mysql/bin/mysqlrouter")
    ways = [("Millrace", millrace, wish.target), ("HAProxy, external check each second", haproxy, None)]
    with tempfile.TemporaryDirectory(prefix="millrace-windows-") as folder:
        data = os.path.join(folder, "data")
        subprocess.run(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=8M",
                        f"--datadir={data}", f"--tmpdir={folder}", *AS_ROOT], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        print(f"{wish.rounds} rounds each: median (longest). {os.cpu_count()} × {names[0]}\n")
        print("| topology | fault | through | ms without service | of these until another takes writes | errors that the client saw | rows acknowledged | of these lost |")
        print("|:--|:--|:--|--:|--:|:--|--:|--:|", flush=True)
        Group.program = os.path.join(wish.cache, "mysql/bin/mysqld")
        kinds = [Primary] + ([Galera] if os.path.exists(GALERA) else []) + ([Group] if os.path.exists(Group.program) else [])
        for kind in [kind for kind in kinds if wish.only in kind.name]:
            for fault in FAULTS:
                also = [("mysqlrouter, static routes", mysqlrouter, router)] if os.path.exists(router) and fault == FAULTS[0] else []
                for name, way, extra in ways + also:
                    print(row(kind, fault, name, [measured(kind, data, way, fault, extra) for _ in range(wish.rounds)]), flush=True)


def row(kind, fault, name, rounds):
    windows = sorted(one[0] if one[0] is not None else float("inf") for one in rounds)
    promoted = sorted(one[1] for one in rounds)
    errors = {}
    for one in rounds:
        for word, count in one[2].items():
            errors[word] = errors.get(word, 0) + count
    told = ", ".join(f"{count} × {word}" for word, count in sorted(errors.items())) or "none"
    shown = lambda all_: f"{all_[len(all_) // 2]:,.0f} ({all_[-1]:,.0f})"
    return (f"| {kind.name} | {fault} | {name} | {shown(windows)} | {shown(promoted)} | {told} | {sum(one[4] for one in rounds):,} | "
            f"{sum(one[3] for one in rounds)} |")


if __name__ == "__main__":
    main()
