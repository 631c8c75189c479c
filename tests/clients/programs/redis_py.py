"""latchd from redis-py 4 and later, blocking calls; redis_py_asyncio.py has the others.

redis_py.py HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
"""
import concurrent.futures
import sys
import time

import redis

HOST, PORT, PROTOCOL, USER, PASSWORD, CA, NAME, *SCENARIOS = sys.argv[1:]


def connect(**more):
    given = {"host": HOST, "port": int(PORT), "decode_responses": True, **more}
    if PROTOCOL != "-":
        given["protocol"] = int(PROTOCOL)
    if USER != "-":
        given["username"] = USER
    if PASSWORD != "-":
        given["password"] = PASSWORD
    if CA != "-":
        given.update(ssl=True, ssl_ca_certs=CA)
    return redis.Redis(**given)


latchd = connect()


def ask(*words):
    return latchd.execute_command(*words)


def refused(*words):
    """The error reply to what must not be done."""
    try:
        answer = ask(*words)
    except redis.ResponseError as error:
        return str(error)
    raise AssertionError(f"{words} answered {answer}")


def version():
    print("version", redis.__version__)


def hello():
    assert latchd.ping()
    token = ask("LOCK", NAME, "WAIT", 0)
    assert token > 2**31
    assert ask("UNLOCK", NAME, "TOKEN", token) == 0


def busy():
    token = ask("LOCK", NAME)
    assert ask("LOCK", NAME, "WAIT", 0) is None
    assert ask("LOCK", NAME, "WAIT", 50) is None
    assert ask("RENEW", NAME, "TOKEN", token) > 0
    assert ask("UNLOCK", NAME, "TOKEN", token) == 0
    assert ask("LOCK", NAME, "FAIR", "WAIT", 0) > token
    assert ask("UNLOCK", NAME) == 0


def reenter():
    token = ask("LOCK", NAME, "OWNER", "ann")
    assert ask("LOCK", NAME, "OWNER", "ann") == token
    assert ask("UNLOCK", NAME, "OWNER", "ann") == 1
    assert ask("UNLOCK", NAME, "OWNER", "ann") == 0


def lose():
    token = ask("LOCK", NAME)
    assert ask("FORCEUNLOCK", NAME, "TOKEN", token) == 1
    assert refused("UNLOCK", NAME, "TOKEN", token).startswith("NOTHELD")
    assert refused("RENEW", NAME, "TOKEN", token).startswith("NOTHELD")
    assert "unknown option" in refused("LOCK", NAME, "SOON")


def share():
    tokens = [ask("LOCK", NAME, "READ") for _ in range(2)]
    assert ask("LOCK", NAME, "WRITE", "WAIT", 0) is None
    assert [ask("UNLOCK", NAME, "TOKEN", token) for token in tokens] == [0, 0]
    token = ask("LOCK", NAME, "WRITE", "WAIT", 0)
    assert ask("UNLOCK", NAME, "TOKEN", token) == 0


def pipeline(transaction=False):
    batch = latchd.pipeline(transaction=transaction)
    for which in ("1", "2", "1"):
        batch.execute_command("LOCK", NAME + which, "WAIT", 0)
    one, two, none = batch.execute()
    assert one and two and none is None
    batch.execute_command("UNLOCK", NAME + "1", "TOKEN", one)
    batch.execute_command("UNLOCK", NAME + "2", "TOKEN", two)
    assert batch.execute() == [0, 0]


def multi():
    pipeline(transaction=True)


def admin():
    info = latchd.info()
    assert info["redis_mode"] == "standalone" and info["role"] == "master"
    assert latchd.client_id() > 0 and latchd.client_list() and latchd.time()
    assert latchd.client_setname("joe") and latchd.client_getname() in ("joe", None)
    assert latchd.config_get("*timeout*") and latchd.config_set("recheck", 5000)
    assert latchd.command_count() > 30 and "lock" in latchd.command()
    assert latchd.command_getkeys("LOCK", "a") == ["a"]
    assert latchd.get("x") is None and latchd.exists("x") == 0
    assert latchd.dbsize() >= 0 and not ask("WAIT", 0, 0)
    assert ask("LOCKINFO", NAME)


def options():
    for more in ({"decode_responses": False}, {"client_name": "me"}, {"db": 0},
                 {"health_check_interval": 1}):
        assert connect(**more).ping()


def threads():
    """Threads that share a pool of connections exclude each other."""
    inside, most = [], []

    def work(number):
        for turn in range(10):
            request = f"{NAME}-{number}-{turn}-of-a-thread"
            while not ask("LOCK", NAME, "WAIT", 4000, "ID", request):
                pass
            inside.append(number)
            most.append(len(inside))
            inside.pop()
            assert ask("UNLOCK", NAME, "ID", request) == 0

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(most) == 80 and max(most) == 1


def hear(subscriber, channel):
    """The next message on that channel."""
    while True:
        message = subscriber.get_message(timeout=5)
        assert message, f"nothing on {channel}"
        if message["type"].endswith("message") and message["channel"] == channel:
            return message["data"]


def events():
    subscriber = latchd.pubsub()
    subscriber.subscribe("lost:" + NAME)
    subscriber.psubscribe(f"g*:{NAME}")
    while subscriber.get_message(timeout=5)["type"] != "psubscribe":
        pass
    token = ask("LOCK", NAME, "OWNER", "joe")
    assert hear(subscriber, "granted:" + NAME) == f"joe {token}"
    assert ask("FORCEUNLOCK", NAME, "OWNER", "joe") == 1
    assert hear(subscriber, "lost:" + NAME) == f"joe {token}"
    subscriber.close()


def wait(request, patience):
    """Asks until there is a token. Whatever happens to one asking, the ID keeps the
    place; UNLOCK by ID may be sent twice as well."""
    token, asked = None, 0
    while token is None:
        try:
            asked += 1
            token = ask("LOCK", NAME, "WAIT", patience, "ID", request)
        except (redis.ConnectionError, redis.TimeoutError):
            time.sleep(0.05)
    print("token", token, asked, flush=True)
    while True:
        try:
            print("left", ask("UNLOCK", NAME, "ID", request))
            return
        except (redis.ConnectionError, redis.TimeoutError):
            time.sleep(0.05)


def main():
    if SCENARIOS[0] == "wait":
        wait(*SCENARIOS[1:])
        return
    for scenario in SCENARIOS:
        globals()[scenario]()
        print("ok", scenario, flush=True)


main()
