"""The suites of Django and SQLAlchemy, once against a server and once through Millrace: each test must end the same way.

MariaDB and, where it is there, MySQL. Millrace sends reads to another hostgroup than writes, both on the same server, as most
configurations do. Tests that fail directly, too, are counted and not judged. Two hours on two processors; `--only sqlalchemy` is one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from bench import free_port, start, stop, wait_for  # noqa: E402

VERSIONS = {"django": "5.2.19", "sqlalchemy": "2.1.9"}
DRIVERS = ["pymysql==1.2.4", "mysql-connector-python==26.10.0", "cryptography", "pytest==9.2.0"]
USER = "suites"
AS_ROOT = ["--user=root"] if os.getuid() == 0 else []
# Of SQLAlchemy, those that talk to a server.
SQLALCHEMY = ["test/dialect/mysql", "test/dialect/test_suite.py", "test/sql", "test/engine", "test/orm/test_query.py", "test/orm/test_unitofwork.py",
              "test/orm/test_transaction.py"]
# Tests of Django that start other programs, or look at rights of files that root has anyway.
NO_DATABASE = ("admin_scripts", "file_uploads", "i18n", "test_runner", "logging_tests", "urlpatterns_reverse")
SETTINGS = """import os
import pymysql
pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()
DATABASES = {alias: {"ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "PORT": os.environ["PORT"], "USER": "suites", "PASSWORD": "suites",
                     "NAME": "django_" + alias, "TEST": {"CHARSET": "utf8mb4"}} for alias in ("default", "other")}
SECRET_KEY = "of no use"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
USE_TZ = False
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
"""


def tools(cache):
    """Python with the drivers, and the suites' sources."""
    home = os.path.join(cache, "suites")
    os.makedirs(home, exist_ok=True)
    python = os.path.join(home, "venv/bin/python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", os.path.join(home, "venv")], check=True)
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *DRIVERS, *(f"{name}=={version}" for name, version in VERSIONS.items())], check=True)
    for name, version in VERSIONS.items():
        folder = os.path.join(home, f"{name}-{version}")
        if not os.path.exists(folder):
            subprocess.run([*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", home, f"{name}=={version}"], check=True)
            with tarfile.open(folder + ".tar.gz") as packed:
                packed.extractall(home, filter="data")
    needs = os.path.join(home, f"django-{VERSIONS['django']}/tests/requirements/py3.txt")
    subprocess.run([*pip, "install", "-r", needs], check=True)
    with open(os.path.join(home, "suites_settings.py"), "w") as file:
        file.write(SETTINGS)
    return home, python


class Server:
    def __init__(self, folder, vendor, program):
        data, self.socket, self.port = os.path.join(folder, vendor), os.path.join(folder, vendor + ".s"), free_port()
        if vendor == "mariadb":
            install = ["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", f"--datadir={data}", *AS_ROOT]
            own = ["--sync-binlog=0"]
        else:
            install = [program, "--no-defaults", "--initialize-insecure", f"--datadir={data}", *AS_ROOT]
            own = ["--mysqlx=OFF", "--secure-file-priv=NULL", "--skip-log-bin"]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.process = start([program, "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
                              "--innodb-flush-log-at-trx-commit=0", "--max-connections=500", *own, *AS_ROOT], folder, vendor)
        wait_for(self.port, self.process, vendor, greeting=False)
        self.sql(f"CREATE USER {USER}@'%' IDENTIFIED BY '{USER}'; GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION")

    def sql(self, text):
        subprocess.run(["mariadb", "--no-defaults", "-uroot", f"--socket={self.socket}", "-e", text], check=True)


def millrace(folder, vendor, server, target):
    port, door, path = free_port(), free_port(), os.path.join(folder, vendor + ".cnf")
    home = os.path.join(folder, vendor + "-proxy")
    os.makedirs(home)
    with open(path, "w") as file:
        file.write(f'datadir = "{home}"\nadmin_variables = {{ admin_credentials = "admin:admin", mysql_ifaces = "127.0.0.1:{door}" }}\n'
                   f'mysql_variables = {{ threads = 2, interfaces = "127.0.0.1:{port}", monitor_enabled = false }}\n'
                   f'mysql_servers = ( {{ address = "127.0.0.1", port = {server.port}, hostgroup = 0 }}, {{ address = "127.0.0.1", port = {server.port}, hostgroup = 1 }} )\n'
                   f'mysql_users = ( {{ username = "{USER}", password = "{USER}", default_hostgroup = 0 }} )\n'
                   'mysql_query_rules = ( { rule_id = 1, active = 1, match_digest = "^SELECT.*FOR UPDATE", destination_hostgroup = 0, apply = 1 }, '
                   '{ rule_id = 2, active = 1, match_digest = "^SELECT", destination_hostgroup = 1, apply = 1 } )\n')
    process = start([os.path.join(target, "debug/millrace"), "-f", "-c", path, "-D", home], folder, vendor + "-proxy")
    wait_for(port, process, "Millrace")
    return port, process


def django(home, python, port, _vendor, _server):
    """How each test ended, by its name."""
    tests = os.path.join(home, f"django-{VERSIONS['django']}/tests")
    ran = subprocess.run([python, "runtests.py", "--settings=suites_settings", "--parallel=1", "--noinput", "-v", "2"], cwd=tests, text=True, errors="replace",
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PORT": str(port), "PYTHONPATH": home + ":.."})
    ends, name = {}, None
    for line in ran.stdout.splitlines():
        begins = re.match(r"^(\w+ \([\w.]+\))", line)
        name = begins.group(1) if begins else name
        end = re.search(r"\.\.\. (ok|FAIL|ERROR|skipped|expected failure)", line)
        if end and name:
            if not any(f"({app}." in name for app in NO_DATABASE):
                ends[name] = end.group(1)
            name = None
    return ends


def sqlalchemy(home, python, port, driver, server):
    for schema in ("suites", "test_schema"):
        server.sql(f"DROP DATABASE IF EXISTS {schema}; CREATE DATABASE {schema} CHARACTER SET utf8mb4")
    tests = os.path.join(home, f"sqlalchemy-{VERSIONS['sqlalchemy']}")
    url = f"{driver}://{USER}:{USER}@127.0.0.1:{port}/suites?charset=utf8mb4"
    ran = subprocess.run([python, "-m", "pytest", "-v", "-p", "no:logging", "--dburi", url, *SQLALCHEMY], cwd=tests, text=True, errors="replace",
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": "lib"})
    return dict(re.findall(r"^(test/\S+) (PASSED|FAILED|ERROR|SKIPPED|XFAIL)", ran.stdout, re.M))


def compared(words, suite, arguments, ways):
    direct, through = (suite(*arguments[:2], port, *arguments[2:]) for port in ways)
    other = sorted(name for name in direct.keys() | through.keys() if direct.get(name) != through.get(name))
    good = sum(end in ("ok", "PASSED") for end in direct.values())
    print(f"{words}: {len(direct)} tests, {good} pass directly, {len(other)} end otherwise through Millrace", flush=True)
    for name in other:
        print(f"  {name}: {direct.get(name, 'not run')} directly, {through.get(name, 'not run')} through Millrace")
    # A suite that did not run has shown nothing.
    return not other and good > 1000


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", required=True)
    options.add_argument("--cache", required=True)
    options.add_argument("--only", default="", help="django or sqlalchemy")
    wish = options.parse_args()
    home, python = tools(wish.cache)
    servers = {"mariadb": shutil.which("mariadbd") or "/usr/sbin/mariadbd", "mysql": os.path.join(wish.cache, "mysql/bin/mysqld")}
    alike = True
    for vendor, program in servers.items():
        if not os.path.exists(program):
            print(f"MISSING: {vendor}, so the suites do not meet it")
            continue
        with tempfile.TemporaryDirectory(prefix="millrace-suites-") as folder:
            server = Server(folder, vendor, program)
            port, proxy = millrace(folder, vendor, server, wish.target)
            ways = (server.port, port)
            for driver in ("pymysql", "mysqlconnector") if "sqlalchemy".startswith(wish.only) else ():
                words, arguments = f"SQLAlchemy, {driver}, {vendor}", (home, python, f"{vendor}+{driver}", server)
                alike = compared(words, sqlalchemy, arguments, ways) and alike
            if "django".startswith(wish.only):
                alike = compared(f"Django, {vendor}", django, (home, python, vendor, server), ways) and alike
            stop(proxy)
            stop(server.process)
    sys.exit(0 if alike else 1)


if __name__ == "__main__":
    main()
