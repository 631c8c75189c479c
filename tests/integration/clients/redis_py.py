"""redis-py: connects with each of its options, and runs the lock commands."""
import os

import redis

SOCKET = os.environ["LATCHD_SOCKET"]
PASSWORD = os.environ["LATCHD_PASSWORD"]


def locks(r):
    token = r.execute_command("LOCK", "job", "WAIT", 0)
    assert isinstance(token, int), token
    assert r.execute_command("LOCK", "job", "WAIT", 0) is None
    assert r.execute_command("LOCKINFO", "job")
    assert r.execute_command("UNLOCK", "job", "TOKEN", token) == 0
    try:
        r.execute_command("UNLOCK", "nobodys", "TOKEN", token)
        raise AssertionError("no error")
    except redis.ResponseError as error:
        assert str(error).startswith("NOTHELD"), error


def basics(r):
    assert r.ping() and r.echo("x") in ("x", b"x")
    assert r.info()["redis_mode"] == "standalone"
    assert r.client_id() > 0 and r.client_list() and r.time()
    assert r.client_setname("joe") and r.client_getname() in ("joe", b"joe")
    assert r.config_get("*timeout*") and r.config_set("recheck", 5000)
    assert r.command_count() > 30 and "lock" in r.command()
    assert r.command_getkeys("LOCK", "a") in (["a"], [b"a"])
    assert r.get("x") is None and r.exists("x") == 0
    assert r.dbsize() >= 0 and not r.execute_command("WAIT", 0, 0)


def next_message(p, kind):
    while True:
        message = p.get_message(timeout=5)
        if message is not None and message["type"] == kind:
            return message


def events(r):
    p = r.pubsub()
    p.psubscribe("granted:*")
    next_message(p, "psubscribe")
    token = r.execute_command("LOCK", "told", "OWNER", "joe")
    message = next_message(p, "pmessage")
    assert message["channel"] in ("granted:told", b"granted:told"), message
    assert message["data"] in (f"joe {token}", f"joe {token}".encode()), message
    p.close()
    assert r.execute_command("UNLOCK", "told", "OWNER", "joe") == 0


def wrong_password():
    for wrong in ({}, {"password": "wrong"}):
        try:
            redis.Redis(unix_socket_path=SOCKET, **wrong).ping()
            raise AssertionError("no error")
        except (redis.AuthenticationError, redis.ResponseError):
            pass


def main():
    options = [{}, {"decode_responses": True, "client_name": "me"},
               {"health_check_interval": 1}, {"db": 0}]
    if int(redis.__version__.split(".", maxsplit=1)[0]) >= 5:
        options += [{"protocol": 2}, {"protocol": 3}]
    if PASSWORD:
        options = ([dict(o, password=PASSWORD) for o in options] +
                   [{"username": "default", "password": PASSWORD}])
        wrong_password()
    for option in options:
        r = redis.Redis(unix_socket_path=SOCKET, **option)
        locks(r)
        basics(r)
        events(r)
        r.close()


main()
