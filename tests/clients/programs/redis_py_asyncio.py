"""latchd from redis-py's asyncio client.

redis_py_asyncio.py HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
"""
import asyncio
import sys

import redis
import redis.asyncio

HOST, PORT, PROTOCOL, USER, PASSWORD, CA, NAME, *SCENARIOS = sys.argv[1:]


def connect():
    options = {"host": HOST, "port": int(PORT), "decode_responses": True}
    if PROTOCOL != "-":
        options["protocol"] = int(PROTOCOL)
    if USER != "-":
        options["username"] = USER
    if PASSWORD != "-":
        options["password"] = PASSWORD
    if CA != "-":
        options.update(ssl=True, ssl_ca_certs=CA)
    return redis.asyncio.Redis(**options)


latchd = connect()


async def ask(*words):
    return await latchd.execute_command(*words)


async def refused(*words):
    """The error reply to what must not be done."""
    try:
        answer = await ask(*words)
    except redis.ResponseError as error:
        return str(error)
    raise AssertionError(f"{words} answered {answer}")


async def version():
    print("version", redis.__version__)


async def hello():
    assert await latchd.ping()
    token = await ask("LOCK", NAME, "WAIT", 0)
    assert token > 2**31
    assert await ask("UNLOCK", NAME, "TOKEN", token) == 0


async def busy():
    token = await ask("LOCK", NAME)
    assert await ask("LOCK", NAME, "WAIT", 0) is None
    assert await ask("LOCK", NAME, "WAIT", 50) is None
    assert await ask("RENEW", NAME, "TOKEN", token) > 0
    # A pool gives a waiting call a connection of its own: others go on.
    waiting = asyncio.create_task(ask("LOCK", NAME, "FAIR", "WAIT", 5000))
    while not await ask("WAITERS", NAME):
        pass
    assert await ask("UNLOCK", NAME, "TOKEN", token) == 0
    assert await waiting > token
    assert await ask("UNLOCK", NAME, "TOKEN", await waiting) == 0


async def reenter():
    token = await ask("LOCK", NAME, "OWNER", "ann")
    assert await ask("LOCK", NAME, "OWNER", "ann") == token
    assert await ask("UNLOCK", NAME, "OWNER", "ann") == 1
    assert await ask("UNLOCK", NAME, "OWNER", "ann") == 0


async def lose():
    token = await ask("LOCK", NAME)
    assert await ask("FORCEUNLOCK", NAME, "TOKEN", token) == 1
    assert (await refused("UNLOCK", NAME, "TOKEN", token)).startswith("NOTHELD")
    assert (await refused("RENEW", NAME, "TOKEN", token)).startswith("NOTHELD")
    assert "unknown option" in await refused("LOCK", NAME, "SOON")


async def share():
    tokens = await asyncio.gather(ask("LOCK", NAME, "READ"), ask("LOCK", NAME, "READ"))
    assert await ask("LOCK", NAME, "WRITE", "WAIT", 0) is None
    for token in tokens:
        assert await ask("UNLOCK", NAME, "TOKEN", token) == 0
    token = await ask("LOCK", NAME, "WRITE", "WAIT", 0)
    assert await ask("UNLOCK", NAME, "TOKEN", token) == 0


async def pipeline(transaction=False):
    batch = latchd.pipeline(transaction=transaction)
    for which in ("1", "2", "1"):
        batch.execute_command("LOCK", NAME + which, "WAIT", 0)
    one, two, none = await batch.execute()
    assert one and two and none is None
    batch.execute_command("UNLOCK", NAME + "1", "TOKEN", one)
    batch.execute_command("UNLOCK", NAME + "2", "TOKEN", two)
    assert await batch.execute() == [0, 0]


async def multi():
    await pipeline(transaction=True)


async def hear(subscriber, channel):
    """The next message on that channel."""
    async for message in subscriber.listen():
        if message["type"].endswith("message") and message["channel"] == channel:
            return message["data"]


async def events():
    subscriber = latchd.pubsub()
    await subscriber.subscribe("lost:" + NAME)
    await subscriber.psubscribe(f"g*:{NAME}")
    while (await subscriber.get_message(timeout=5))["type"] != "psubscribe":
        pass
    token = await ask("LOCK", NAME, "OWNER", "joe")
    assert await hear(subscriber, "granted:" + NAME) == f"joe {token}"
    assert await ask("FORCEUNLOCK", NAME, "OWNER", "joe") == 1
    assert await hear(subscriber, "lost:" + NAME) == f"joe {token}"
    await subscriber.close()


async def wait(request, patience):
    """Asks until there is a token; the ID keeps the place from one asking to the next."""
    token, asked = None, 0
    while token is None:
        try:
            asked += 1
            token = await ask("LOCK", NAME, "WAIT", patience, "ID", request)
        except (redis.ConnectionError, redis.TimeoutError):
            await asyncio.sleep(0.05)
    print("token", token, asked, flush=True)
    while True:
        try:
            print("left", await ask("UNLOCK", NAME, "ID", request))
            return
        except (redis.ConnectionError, redis.TimeoutError):
            await asyncio.sleep(0.05)


async def main():
    if SCENARIOS[0] == "wait":
        await wait(*SCENARIOS[1:])
    else:
        for scenario in SCENARIOS:
            await globals()[scenario]()
            print("ok", scenario, flush=True)
    await latchd.close()


asyncio.run(main())
