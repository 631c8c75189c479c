#!/usr/bin/env python3
"""Real clients of many languages against the real daemon.

run.py LATCHD BUILD_DIR EXAMPLES [PART OF A CLIENT'S NAME...]: prints TAP.
run.py --table: the table of docs/clients.md.
"""
import concurrent.futures
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
import clients  # noqa: E402
import examples  # noqa: E402
import kits  # noqa: E402
import waits  # noqa: E402
from stand import Certs, Skip, Stand  # noqa: E402
from wire import Wire  # noqa: E402

PASSWORD = "open sesame"
SCENARIOS_S = 120
AT_ONCE = 3


class Report:
    """TAP, written line by line; the plan comes last."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = self.failed = 0

    def _line(self, good, text, why=""):
        with self.lock:
            self.count += 1
            for line in why.strip().splitlines()[-40:]:
                print("#", line)
            print("ok" if good else "not ok", self.count, "-", text, flush=True)
            self.failed += not good

    def ok(self, name):
        self._line(True, name)

    def bad(self, name, why):
        self._line(False, name, why)

    def skip(self, name, why):
        self._line(True, f"{name} # SKIP {why}")

    def check(self, name, why):
        """Fine if there is nothing to be said against it."""
        self._line(not why, name, why or "")

    def end(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0


class World:
    """The daemons, and what they can do."""

    def __init__(self, latchd, stack):
        self.certs, self.no_tls = self.certificates(latchd, stack)
        self.open = stack.enter_context(Stand(latchd, certs=self.certs))
        self.secret = stack.enter_context(Stand(latchd, "--requirepass", PASSWORD))
        self.examples = stack.enter_context(Stand(latchd))
        self.queues = stack.enter_context(Stand(latchd))

        with Wire(self.address(self.secret)) as wire:
            wire.ask("AUTH", PASSWORD)
            made = wire.ask("ACL", "SETUSER", "joe", "on", ">" + PASSWORD, "~*", "&*", "+@all")
        self.user = "joe" if made == "OK" else "default"  # a daemon without users

    @staticmethod
    def certificates(latchd, stack):
        """What TLS needs, or why there is none."""
        printed = subprocess.run([latchd, "--print-config"], stdout=subprocess.PIPE,
                                 text=True, check=True).stdout
        if "tls-port" not in printed:
            return None, "latchd was built without TLS"
        try:
            folder = tempfile.TemporaryDirectory(prefix="latchd-certs-")
            return Certs(stack.enter_context(folder)), None
        except Skip as why:
            return None, str(why)

    @staticmethod
    def address(stand):
        return ("127.0.0.1", stand.port)


def try_client(world, report, client, command):
    """All but the waiting."""
    def launch(what, stand, scenarios, protocol="-", login=("-", "-"), ca="-"):
        name = re.sub(r"[^\w]+", "-", f"{client.title} {what}")
        port = stand.port if ca == "-" else stand.tls_port
        words = [*command, "127.0.0.1", port, protocol, *login, ca, name, *scenarios]
        try:
            done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False, text=True, timeout=SCENARIOS_S)
            return done.stdout, done.returncode == 0
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode() + "too late", False

    def run(what, stand, scenarios, **more):
        said, good = launch(what, stand, scenarios, **more)
        passed = re.findall(r"^ok (\w+)", said, re.MULTILINE)
        why = said or "it said nothing"
        for scenario in scenarios:
            if scenario in passed:
                report.ok(f"{client.title}, {what}: {scenario}")
            else:
                report.bad(f"{client.title}, {what}: {scenario}", why)
                why = "not reached"
        if not good and passed == list(scenarios):
            report.bad(f"{client.title}, {what}: it ends well", said)
        return said

    said = launch("version", world.open, ["version"])[0]
    found = re.search("^version (.*)", said, re.MULTILINE)
    if client.kit in clients.PINNED:
        report.check(f"{client.title}: it is that version",
                     None if found and found[1].startswith(client.version) else said)
    for protocol in client.protocols:
        run("defaults" if protocol == "-" else f"RESP{protocol}", world.open,
            client.scenarios, protocol=protocol)
    run("password", world.secret, ["hello"], login=("-", PASSWORD))
    run("user and password", world.secret, ["hello"], login=(world.user, PASSWORD))
    if client.tls and world.no_tls:
        report.skip(f"{client.title}, TLS", world.no_tls)
    elif client.tls:
        run("TLS", world.open, ["hello", "busy", "events"], ca=world.certs.path("ca.pem"))
    said, good = launch("a wrong password", world.secret, ["hello"],
                        login=(world.user, "wrong"))
    report.check(f"{client.title}: a wrong password is refused", said if good else "")


def stand_in_queues(world, report, ready):
    """ready: pairs of client and its command."""
    address = world.address(world.queues)
    able = [(c, command) for c, command in ready if c.patience is not None]
    resend = [(c, command) for c, command in able
              if c.sends_again_s]
    queues = {
        "12 s, in the form that suits it": waits.Queue(
            address, "suits", [waits.Waiter(*c, c[0].patience) for c in able]),
        "12 s without looking up, through a lost connection": waits.Queue(
            address, "blunt", [waits.Waiter(*c, waits.ENDLESS) for c in able], cut=True),
        "12 s in one call, which it sends again": waits.Queue(
            address, "again", [waits.Waiter(*c, waits.ENDLESS) for c in resend]),
        "30 s in one call, which it sends again": waits.Queue(
            address, "thirty", [waits.Waiter(*c, waits.ENDLESS) for c in resend
                                if c[0].sends_again_s > waits.LONG_S],
            held_s=waits.LONG_S),
    }
    for queue in queues.values():
        queue.thread.start()
    for what, queue in queues.items():
        queue.thread.join()
        one_call = queue.name in ("again", "thirty")
        for waiter in queue.waiters:
            why = queue.problem(waiter)
            calls = 1 + int(waiter.waited_s / waiter.client.sends_again_s) if one_call else 0
            if not why and one_call and waiter.asked > calls:
                why = f"it took {waiter.asked} calls in {waiter.waited_s:.0f} s"
            report.check(f"{waiter.client.title}: waits {what}", why)
        report.check(f"queue of those who wait {what}: one place each, in order",
                     "\n".join(queue.general[:5]))
    granted = sum(len(q.waiters) + 1 for q in queues.values())
    report.check("everybody was granted once, and nothing is left",
                 "\n".join(waits.leftovers(world.queues, address, granted)))


def main():
    if sys.argv[1:] == ["--table"]:
        print(clients.table(), end="")
        return 0
    latchd, build, page, *names = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    chosen = [c for c in clients.CLIENTS
              if not names or any(n in c.title for n in names)]
    report = Report()
    ready, folders = [], {}
    with contextlib.ExitStack() as stack:
        world = World(latchd, stack)
        makers = stack.enter_context(concurrent.futures.ThreadPoolExecutor(16))
        users = stack.enter_context(concurrent.futures.ThreadPoolExecutor(AT_ONCE))
        made = {kit: makers.submit(kits.make, kit, build) for kit in
                dict.fromkeys(c.kit for c in chosen)}
        tried = []

        def begin(client, kit):
            try:
                command = client.command(kit.result())
            except kits.Missing as why:
                report.skip(client.title, str(why))
                return
            except Exception as error:  # pylint: disable=broad-except
                report.bad(f"{client.title}: its program is built", str(error))
                return
            ready.append((client, command))
            folders[client.kit] = kit.result()
            tried.append(users.submit(try_client, world, report, client, command))

        for client in chosen:
            made[client.kit].add_done_callback(
                lambda kit, client=client: begin(client, kit))
        concurrent.futures.wait(made.values())
        makers.shutdown()
        tried.append(users.submit(examples.check_all, pathlib.Path(page), world.examples,
                                  folders, report))
        stand_in_queues(world, report, sorted(
            ready, key=lambda pair: clients.CLIENTS.index(pair[0])))
        for future in tried:
            future.result()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
