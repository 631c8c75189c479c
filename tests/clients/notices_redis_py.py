"""Holds locks with redis-py and says when it is told of them.

notices_redis_py.py PORT push|channel|asked NAME...: prints `ready`, then `told NAME MS` with
the time of day, until its standard input ends.
"""
import os
import sys
import threading
import time

import redis

PORT, WAY, *NAMES = sys.argv[1:]


def tell(name):
    print("told", name, time.time() * 1000, flush=True)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def by_push():
    """What redis-py's own cache uses: the handler of one connection."""
    client = redis.Redis(port=int(PORT), protocol=3)
    connection = client.connection_pool.get_connection()
    connection._parser.set_invalidation_push_handler(  # pylint: disable=protected-access
        lambda push: [tell(text(name)) for name in push[1]])
    connection.send_command("CLIENT", "TRACKING", "ON")
    assert text(connection.read_response()) == "OK"
    for name in NAMES:
        connection.send_command("LOCK", name)
        assert connection.read_response() > 0
    print("ready", flush=True)
    while True:
        connection.read_response(push_request=True)


def by_channel():
    holder = redis.Redis(port=int(PORT))
    for name in NAMES:
        assert holder.execute_command("LOCK", name) > 0
    listener = holder.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(*(f"{what}:{name}" for what in ("lost", "uncertain")
                         for name in NAMES))
    confirmed = 0
    while confirmed < 2 * len(NAMES):
        confirmed += listener.parse_response()[0] in (b"subscribe", "subscribe")
    print("ready", flush=True)
    for message in listener.listen():
        tell(text(message["channel"]).split(":", 1)[1])


def by_asking():
    holder = redis.Redis(port=int(PORT), decode_responses=True)
    for name in NAMES:
        assert holder.execute_command("LOCK", name) > 0
    print("ready", flush=True)
    left = list(NAMES)
    while left:
        for name in list(left):
            try:
                info = holder.execute_command("LOCKINFO", name)
            except redis.ResponseError as error:
                assert str(error).startswith("BACKEND"), error  # Redis hangs: asked again
                continue
            if isinstance(info, list):
                info = dict(zip(info[::2], info[1::2]))
            if info["state"] != "held":
                tell(name)
                left.remove(name)
        time.sleep(0.005)
    while True:
        time.sleep(1)


threading.Thread(target={"push": by_push, "channel": by_channel, "asked": by_asking}[WAY],
                 daemon=True).start()
sys.stdin.read()
os._exit(0)
