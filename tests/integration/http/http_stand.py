"""A latchd that listens for HTTP as well, and what is asked of it."""
import http.client
import json
import pathlib
import re
import socket
import sys
import tempfile
import time
import urllib.parse

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Stand
from resp import Wire

PATIENCE_S = 60

# Names that would do harm if anybody took them for more than bytes, and how they are
# shown; None: as they are.
HOSTILE = {
    b"<script>document.title = 'taken'</script>": None,
    b"</td></table><img src=x onerror=document.title='taken'>": None,
    b"\"quotes\" & 'apostrophes' &lt;": None,
    b"\xff\xfe no utf-8 \xc3": "\\xff\\xfe no utf-8 \\xc3",
    b"line\nbreak\x00nul": "line\\x0abreak\\x00nul",
    b"back\\slash": "back\\\\slash",
    "\u202eerutuf".encode(): "\\u{202e}erutuf",
    "größe/日本".encode(): None,
}


def shown(name):
    return HOSTILE[name] or name.decode()


def wait_for(what, why):
    """The first true thing that `what` gives."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end, why
        time.sleep(0.02)


def words(*args):
    """A request in Redis's protocol."""
    args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
    return b"".join([b"*%d\r\n" % len(args), *(b"$%d\r\n%s\r\n" % (len(a), a) for a in args)])


class HttpStand(Stand):
    """`http_port` is where it listens; `ask()` and `get()` are one request each."""

    def __init__(self, binary, *more):
        super().__init__(binary, "--http-port", "auto", *more, level="notice")

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        super().__enter__()
        self.http_port = int(wait_for(self.find_port, "it does not say where it listens"))
        wait_for(lambda: self.ask("GET", "/healthz")[0] == 200, "it does not become ready")
        return self

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self.log.close()

    def logged(self):
        self.log.seek(0)
        return self.log.read().decode()

    def find_port(self):
        assert self.daemon.poll() is None, self.logged()
        found = re.search(r"http: listening on \S+:(\d+)/", self.logged())
        return found and found[1]

    def ask(self, method, path, **headers):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, PATIENCE_S)
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, reply.headers, body

    def get(self, path):
        code, _, body = self.ask("GET", path)
        assert code == 200, (path, code, body)
        return body.decode()

    def status(self):
        return json.loads(self.get("/status.json"))

    def name(self, name):
        """What is told of one name, which is bytes."""
        path = "/name.json?name=" + urllib.parse.quote(name)
        found = []

        def answered():
            found[:] = self.ask("GET", path)
            return found[0] != 503  # that many looks in that little time
        wait_for(answered, "too many look, for ever")
        assert found[0] == 200, found
        return json.loads(found[2])

    def ask_redis(self, *words_):
        with Wire(str(self.redis_socket)) as redis:
            return redis.ask(*words_)

    def client(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def http_socket(self):
        return socket.create_connection(("127.0.0.1", self.http_port), PATIENCE_S)

    def tell(self, client, *args):
        """A command whose reply is one line."""
        client.sendall(words(*args))
        reply = b""
        while not reply.endswith(b"\r\n"):
            more = client.recv(4096)
            assert more, reply
            reply += more
        return reply
