"""Runs scenarios through PyMySQL or mysql-connector-python and prints all that the client can see.

client.py pymysql|connector|connector-c

Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.
"""

import hashlib
import sys
import warnings


OPTIONAL_RESULTSET_METADATA = 1 << 25


def shown(value):
    """A value with its type; a long one by its length and hash."""
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value)
    if isinstance(value, (str, bytes)) and len(value) > 200:
        data = value.encode() if isinstance(value, str) else value
        return f"{type(value).__name__} len={len(value)} sha256={hashlib.sha256(data).hexdigest()[:16]}"
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    return f"{type(value).__name__} {value!r}"


def argument(text):
    kind, _, rest = text.strip().partition(":")
    return {
        "i": lambda: int(rest),
        "d": lambda: float(rest),
        "s": lambda: rest,
        "n": lambda: None,
        "b": lambda: bytes.fromhex(rest),
        "L": lambda: "x" * int(rest),
    }[kind]()


class PyMySQL:
    """PyMySQL: text protocol only."""

    def __init__(self):
        import pymysql

        self.module = pymysql
        self.cursors = {}
        self.errors = pymysql.err.Error

    def connect(self, host, port, user, password, database, tls, packed, optional, files):
        import ssl

        context = None
        if tls:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self.connection = self.module.connect(
            host=host, port=port, user=user, password=password, database=database or None, ssl=context,
            ssl_disabled=not tls, charset="utf8mb4", autocommit=True, read_timeout=60, local_infile=files,
            client_flag=self.module.constants.CLIENT.MULTI_STATEMENTS, max_allowed_packet=64 << 20,
        )
        print(f"  tls={bool(getattr(self.connection, '_secure', False))} status={self.connection.server_status}")

    def query(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            while True:
                result = cursor._result
                if cursor.description:
                    fields = result.fields
                    for column, field in zip(cursor.description, fields):
                        print(f"  column {column} flags={field.flags} charset={field.charsetnr} "
                              f"table={field.table_name}/{field.org_table} org={field.org_name} db={field.db}")
                    for row in cursor.fetchall():
                        print("  row " + " | ".join(shown(value) for value in row))
                print(f"  affected={cursor.rowcount} insert_id={cursor.lastrowid} warnings={result.warning_count} "
                      f"status={result.server_status} message={result.message!r}")
                if not cursor.nextset():
                    break

    script = query

    def batch(self, sql, rows):
        with self.connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), rows)
            print(f"  affected={cursor.rowcount} insert_id={cursor.lastrowid}")

    def cursor(self, name, size, sql, values):
        import pymysql.cursors

        cursor = self.cursors[name] = self.connection.cursor(pymysql.cursors.SSCursor)
        cursor.arraysize = size
        cursor.execute(sql.replace("?", "%s"), values or None)

    def fetch(self, name, count):
        for row in self.cursors[name].fetchmany(count):
            print("  row " + " | ".join(shown(value) for value in row))

    def leave(self, name):
        self.cursors.pop(name).close()

    def call(self, name, values):
        with self.connection.cursor() as cursor:
            cursor.callproc(name, values)
            while True:
                for row in cursor.fetchall() if cursor.description else ():
                    print("  row " + " | ".join(shown(value) for value in row))
                if not cursor.nextset():
                    break
            if values:
                cursor.execute("SELECT " + ", ".join(f"@_{name}_{at}" for at in range(len(values))))
                print("  out " + " | ".join(shown(value) for value in cursor.fetchone()))

    def use(self, database):
        self.connection.select_db(database)

    def ping(self):
        self.connection.ping(reconnect=False)

    def begin(self):
        self.connection.begin()

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()

    def autocommit(self, on):
        self.connection.autocommit(on)
        print(f"  autocommit={self.connection.get_autocommit()}")


class Connector:
    """mysql-connector-python, in Python or with its C extension."""

    def __init__(self, pure):
        import mysql.connector

        self.module = mysql.connector
        self.errors = mysql.connector.Error
        self.pure = pure
        if not pure and not mysql.connector.HAVE_CEXT:
            raise SystemExit("no C extension")

    def connect(self, host, port, user, password, database, tls, packed, optional, files):
        extra = {"ssl_verify_cert": False} if tls else {"ssl_disabled": True}
        self.connection = self.module.connect(
            host=host, port=port, user=user, password=password, database=database or None, use_pure=self.pure,
            charset="utf8mb4", collation="utf8mb4_unicode_ci", autocommit=True, connection_timeout=60, allow_local_infile=files,
            # In Python it cannot put a packet together from several frames, and breaks off before servers, too.
            compress=packed and not self.pure,
            # In Python it does not read the byte of which this is the wish.
            client_flags=[OPTIONAL_RESULTSET_METADATA] if optional and not self.pure else None, **extra,
        )
        self.prepared = {}
        self.cursors = {}

    def results(self, cursor):
        while True:
            if cursor.description:
                for column in cursor.description:
                    print(f"  column {column}")
                for row in cursor.fetchall():
                    print("  row " + " | ".join(shown(value) for value in row))
            print(f"  affected={cursor.rowcount} insert_id={cursor.lastrowid} warnings={cursor.warning_count}")
            if not cursor.nextset():
                break

    def query(self, sql, attributes=()):
        cursor = self.connection.cursor()
        try:
            for name, value in attributes:
                cursor.add_attribute(name, value)
            cursor.execute(sql)
            self.results(cursor)
        finally:
            self.finish(cursor)

    script = query

    def call(self, name, values):
        cursor = self.connection.cursor()
        try:
            given = cursor.callproc(name, values)
            for result in cursor.stored_results():
                self.results(result)
            print("  out " + " | ".join(shown(value) for value in given))
        finally:
            self.finish(cursor)

    def batch(self, sql, rows):
        # In Python by a prepared statement, with the C extension by a text with all rows.
        cursor = self.connection.cursor(prepared=self.pure)
        try:
            cursor.executemany(sql if self.pure else sql.replace("?", "%s"), rows)
            print(f"  affected={cursor.rowcount} insert_id={cursor.lastrowid}")
        finally:
            self.finish(cursor)

    def cursor(self, name, size, sql, values):
        cursor = self.cursors[name] = self.connection.cursor(buffered=False)
        cursor.arraysize = size
        cursor.execute(sql.replace("?", "%s"), values)

    def fetch(self, name, count):
        for row in self.cursors[name].fetchmany(count):
            print("  row " + " | ".join(shown(value) for value in row))

    def leave(self, name):
        self.finish(self.cursors.pop(name))

    def attributed(self, attribute, sql):
        self.query(sql, [attribute.split("=", 1)])

    def finish(self, cursor):
        try:
            cursor.close()
        except self.errors:
            pass
        if self.connection.unread_result:
            self.connection.consume_results()

    def prepare(self, name, sql):
        cursor = self.connection.cursor(prepared=True)
        self.prepared[name] = (cursor, sql.replace("%", "%%"))

    def execute(self, name, values):
        cursor, sql = self.prepared[name]
        cursor.execute(sql, values)
        if cursor.description:
            for column in cursor.description:
                print(f"  column {column}")
            for row in cursor.fetchall():
                print("  row " + " | ".join(shown(value) for value in row))
        print(f"  affected={cursor.rowcount} insert_id={cursor.lastrowid}")

    def close(self, name):
        self.prepared.pop(name)[0].close()

    def use(self, database):
        self.connection.database = database

    def ping(self):
        self.connection.ping(reconnect=False)

    def begin(self):
        self.connection.start_transaction()

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()

    def autocommit(self, on):
        self.connection.autocommit = on
        print(f"  autocommit={self.connection.autocommit}")

    def reset(self):
        self.connection.cmd_reset_connection()

    def change(self, user, password, database):
        self.connection.cmd_change_user(user, password, database)


def step(client, where, verb, rest):
    host, port, user, password = where
    parts = [part.strip() for part in rest.split("::")] if rest else []
    if verb == "connect":
        options = dict(part.split("=", 1) for part in rest.split())
        client.connect(host, port, options.get("user", user), options.get("password", password),
                       options.get("database", ""), options.get("tls") == "on", "compress" in options,
                       options.get("metadata") == "optional", options.get("infile") != "off")
    elif verb in ("query", "script", "use"):
        getattr(client, verb)(rest)
    elif verb == "attributed":
        client.attributed(parts[0], parts[1])
    elif verb == "prepare":
        name, sql = rest.split(" :: ", 1)
        client.prepare(name, sql)
    elif verb == "execute":
        client.execute(parts[0], tuple(argument(part) for part in parts[1:]))
    elif verb == "call":
        # A parameter is "in VALUE", "out" or "inout VALUE".
        values = (part.partition(" ")[2] for part in parts[1:])
        client.call(parts[0], tuple(argument(value) if value else None for value in values))
    elif verb == "batch":
        client.batch(parts[0], [tuple(argument(value) for value in row.split(" | ")) for row in parts[1:]])
    elif verb == "cursor":
        name, size = parts[0].split()
        client.cursor(name, int(size), parts[1], tuple(argument(part) for part in parts[2:]))
    elif verb == "fetch":
        name, count = rest.split()
        client.fetch(name, int(count))
    elif verb == "leave":
        client.leave(rest)
    elif verb == "close":
        client.close(rest)
    elif verb == "autocommit":
        client.autocommit(rest == "on")
    elif verb == "change":
        client.change(*parts)
    else:
        getattr(client, verb)()


def play(client, where, path):
    print(f"## {path.rsplit('/', 1)[-1]}")
    lines = [line.rstrip("\n") for line in open(path, encoding="utf-8")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines[0].startswith("connect"):
        lines.insert(0, "connect database=conf tls=off")
    for line in lines:
        print(f"> {line}")
        verb, _, rest = line.partition(" ")
        try:
            step(client, where, verb, rest)
            print("  ok")
        except client.errors as error:
            state = getattr(error, "sqlstate", None)
            print(f"  error {type(error).__name__} {error.args[0] if error.args else ''} {state} {error.args[-1] if error.args else error}")
        except AttributeError as error:
            if str(error).split("'")[-2] not in NO_SUCH_CALL:
                print(f"  error AttributeError {error}")
            else:
                print("  this client has no such call")
        except Exception as error:  # a library's own mistake is part of what it sees
            print(f"  error {type(error).__name__} {error}")
    try:
        client.connection.close()
    except Exception as error:  # the last words of a broken connection
        print(f"  error at close {type(error).__name__}")


NO_SUCH_CALL = ("prepare", "execute", "close", "reset", "change", "connection")


def main():
    kind = {"pymysql": PyMySQL, "connector": lambda: Connector(True), "connector-c": lambda: Connector(False)}[sys.argv[1]]
    sys.stdout.reconfigure(encoding="utf-8")
    sys.unraisablehook = lambda _: None  # with addresses of objects in its words
    # Not only for the first scenario: what a library has to say of a connection, and nothing else.
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    for order in sys.stdin:
        host, port, user, password, path = order.rstrip("\n").split(" ", 4)
        play(kind(), (host, int(port), user, password), path)
        for stream in (sys.stdout, sys.stderr):
            print("## end", file=stream, flush=True)


main()
