"""A ClickHouse of today, which comes as a library, behind as much of HTTP as a proxy asks for: one query at a time."""
import http.server
import sys
import threading
import urllib.parse

from chdb import session

engine = session.Session()
turn = threading.Lock()
NO_SETTINGS = {"query_id", "default_format", "database", "query"}


def answer(sql, said):
    try:
        for name, value in said.items():
            if name not in NO_SETTINGS:
                engine.query(f"SET {name} = '{value}'")
        return 200, engine.query(sql, said["default_format"]).bytes()
    except Exception as why:
        return 500, str(why).encode()


class Asked(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        said = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        sql = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with turn:
            status, body = answer(sql, said)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Asked).serve_forever()
