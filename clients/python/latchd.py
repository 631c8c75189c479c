"""Locks of latchd, for threads (`Latchd`) and for asyncio (`AsyncLatchd`).

    with Latchd("redis://localhost:5625").lock("job", wait=10) as lock:
        work(lock.token)  # until lock.lost

One thread, shared by everything in the process, runs all connections: renewals go on while the
program computes, sleeps or blocks its event loop. Each wait has a connection of its own; all holds
of a `Latchd` are renewed over one, and one more hears at once what latchd learns of those that
last. Every request has an ID and is repeated, through the next address if need be, until it is
answered. How long a hold may be relied on is counted from before
its last renewal was sent, on a clock that runs during suspend (where the system has one).

A hold is renewed until it is released, lost, or its process ends, and then lasts for the rest of its
lease, or for `grace`. The garbage collector releases none.
After a fork the child has none of its parent's holds.
"""
from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import enum
import inspect
import logging
import math
import os
import socket
import threading
import time
import uuid
import weakref
from typing import TYPE_CHECKING, Any, Callable, Coroutine, NamedTuple, Optional, TypedDict

import redis
from redis.asyncio import ConnectionPool
from redis.asyncio.client import PubSub

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Latchd", "Lock", "Latch", "AsyncLatchd", "AsyncLock", "AsyncLatch", "Leader", "LockOptions", "LatchdError",
           "LockTimeout", "LockLost", "Unreachable", "Backend", "NoReplicas", "Deadlock", "Limit", "NoPermission", "WrongType",
           "LatchGone"]
__version__ = "0.1.0"

LONGEST_ASK_S = 10.0  # a wait is made of LOCKs that are this long, so that a dead host is noticed
MOST_IDLE = 8         # connections that are kept for the next waits
PAUSES_S = (0.05, 1.0)  # between attempts, growing
LEAST_LEASE_MS = 100  # what latchd takes
HEARD_AFTER_S = 0.05  # a shorter hold is not listened for
HEARTBEAT_PART = 2 / 3  # after which a hold without a renewal is lost


_log = logging.getLogger("latchd")


def _now() -> float:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _text(said: str | bytes) -> str:
    return said if isinstance(said, str) else said.decode()


class LatchdError(Exception):
    """What latchd answered, or why it did not."""

    code = "ERR"


class LockTimeout(LatchdError, TimeoutError):
    """Somebody else has the lock, and the wait is over."""

    code = "TIMEOUT"


class LockLost(LatchdError):
    """The lock was lost before it was released: somebody else may have had it since."""

    code = "NOTHELD"


class Unreachable(LatchdError, ConnectionError):
    """No address of latchd answers."""

    code = "UNREACHABLE"


class Backend(LatchdError):
    """latchd's Redis cannot be reached, or refuses to grant."""

    code = "BACKEND"


class NoReplicas(Backend):
    """Too few replicas acknowledge."""

    code = "NOREPLICAS"


class Deadlock(LatchdError):
    """Owners would wait for each other."""

    code = "DEADLOCK"


class Limit(LatchdError):
    """A limit of latchd's configuration is reached."""

    code = "LIMIT"


class NoPermission(LatchdError):
    """The user may not do that, or did not log in."""

    code = "NOPERM"


class WrongType(LatchdError):
    """The name belongs to other data, or to a lock of the other class."""

    code = "WRONGTYPE"


class LatchGone(LatchdError):
    """There is no such latch: it was never set, or was deleted, evicted or lost."""

    code = "GONE"


class _GoAway(LatchdError):
    code = "GOAWAY"


_ERRORS = {kind.code: kind for kind in (LockLost, Backend, NoReplicas, Deadlock, Limit,
                                        NoPermission, WrongType, _GoAway)}
_ERRORS.update(NOAUTH=NoPermission, WRONGPASS=NoPermission, DENIED=NoPermission)


def _typed(error: Exception) -> LatchdError:
    if isinstance(error, LatchdError):
        return error
    if isinstance(error, (redis.AuthenticationError, redis.exceptions.NoPermissionError)):
        return NoPermission(str(error))  # their code is cut off
    if isinstance(error, redis.ResponseError):
        kind = _ERRORS.get(str(error).split(" ", 1)[0], LatchdError)
        if str(error).startswith(("ERR gone", "ERR no such latch", "gone:", "no such latch")):
            kind = LatchGone
        if "unknown command" in str(error)[:len("ERR unknown command")]:
            no_latchd = LatchdError(f"this is a Redis, not a latchd: {error}")
            no_latchd.code = "NOTLATCHD"
            return no_latchd
        return kind(str(error))
    return Unreachable(str(error) or type(error).__name__)


class _Link:
    """A connection: requests leave at once, and replies come in order. Of the loop's thread."""

    def __init__(self, connection: Any, at: int, timeout: float) -> None:
        self._connection, self.at, self.timeout = connection, at, timeout
        self._reader: Optional[asyncio.Future[None]] = None
        self._replies: collections.deque[asyncio.Future[Any]] = collections.deque()
        self.broken: Optional[LatchdError] = None
        self.silent = False
        self.on_break: Optional[Callable[[], None]] = None

    async def open(self) -> None:
        """Raises unless the daemon itself answers, and not only its host."""
        opening = asyncio.ensure_future(self._connection.connect())
        done, _ = await asyncio.wait([opening], timeout=2 * self.timeout)
        if not done:
            opening.cancel()
            raise Unreachable("no connection in time")
        opening.result()
        self._reader = asyncio.ensure_future(self._read())
        await self.ask("PING", within=self.timeout)

    async def ask(self, *words: Any, within: float) -> Any:
        if self.broken is not None:
            raise self.broken
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Any] = loop.create_future()
        self._replies.append(reply)
        timer = loop.call_later(within, self._give_up)
        try:
            await self._connection.send_command(*words)
            return await reply
        except (redis.RedisError, OSError) as error:
            if not reply.done():  # it could not be sent
                self.close(str(error))
                reply.exception()
            raise _typed(error) from None
        finally:
            timer.cancel()

    async def ask_all(self, commands: list[list[Any]], within: float) -> list[Any]:
        """In one go. Of errors, a loss is raised rather than others."""
        answers = await asyncio.gather(*(self.ask(*words, within=within) for words in commands),
                                       return_exceptions=True)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors:
            raise next((error for error in errors if isinstance(error, LockLost)), errors[0])
        return answers

    async def _read(self) -> None:
        why = "closed"
        try:
            while True:
                value = error = None
                try:
                    value = await self._connection.read_response()
                except (redis.ResponseError, redis.AuthenticationError) as refusal:
                    error = refusal
                reply = self._replies.popleft()
                if reply.done():
                    pass  # who asked has gone
                elif error is not None:
                    reply.set_exception(error)
                else:
                    reply.set_result(value)
        except (redis.RedisError, OSError, EOFError, IndexError) as error:
            why = str(error) or "the connection broke"
        finally:
            self._break(why)
            try:
                await self._connection.disconnect()
            except (redis.RedisError, OSError):
                pass

    def _break(self, why: str) -> None:
        if self.broken is None:
            self.broken = Unreachable(why)
            for reply in self._replies:
                if not reply.done():
                    reply.set_exception(self.broken)
            if self.on_break is not None:
                self.on_break()

    def _give_up(self) -> None:
        self.silent = True
        self.close("no answer in time")

    def close(self, why: str = "closed") -> None:
        self._break(why)
        if self._reader is not None:
            self._reader.cancel()


class _Notices:
    """What latchd says unasked of some names, over a connection of its own."""

    def __init__(self, pool: Any, link: _Link, tell: Callable[[str, str], None],
                 ended: Callable[[], None]) -> None:
        self.link, self.broken = link, False
        self._pubsub, self._tell, self._ended = PubSub(pool), tell, ended
        self._heard: set[str] = set()
        self._reading: Optional[asyncio.Future[None]] = None

    async def follow(self, names: set[str]) -> None:
        """These, and no others. A user who may not listen to one of them hears nothing."""
        wanted = {f"{what}:{name}" for name in names for what in ("lost", "uncertain")}
        try:
            if wanted - self._heard:
                await self._pubsub.subscribe(*(wanted - self._heard))
            if wanted and self._heard - wanted:
                await self._pubsub.unsubscribe(*(self._heard - wanted))
        except (redis.RedisError, OSError):
            self.broken = True
            self._ended()
            return
        self._heard = wanted or self._heard
        if self._reading is None and wanted:
            self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        try:
            async for message in self._pubsub.listen():
                if message["type"] in ("message", "subscribe"):
                    said = message["data"] if message["type"] == "message" else ""
                    self._tell(_text(message["channel"]), _text(said))
        except redis.ResponseError:
            pass
        except (redis.RedisError, OSError):
            self.broken = True
            self._ended()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        try:
            await self._pubsub.reset()
        except (redis.RedisError, OSError):
            pass


class _State(enum.Enum):
    WAITING, HELD, LOST, RELEASED = range(4)


class _Hold:
    """One request for one lock, or several, and what it was granted. Written by the loop's thread
    alone."""

    def __init__(self, names: list[str], options: dict[str, list[Any]], kind: list[str], lease: Optional[float],
                 heartbeat: Optional[float], tell: Callable[[str], None]) -> None:
        self.names, self.options, self.kind, self.lease, self._tell = names, options, kind, lease, tell
        self.heartbeat = heartbeat
        self.name = " and ".join(names)
        self.request = str(uuid.uuid4())
        self.state, self.uncertain, self.given_up = _State.WAITING, False, False
        self.noticed = False  # latchd said something since the last renewal was sent
        self.tokens: dict[str, int] = {}
        self.taker: Optional[asyncio.Task[Any]] = None  # runs acquire()
        self.until = self.due = self.end = self.since = -math.inf

    def commands(self, word: str, *more: Any) -> list[list[Any]]:
        """One for each name."""
        return [[word, name, *self.kind, "ID", self.request, *more] for name in self.names]

    def renewal(self) -> list[list[Any]]:
        """A hold with a lease is only confirmed, for what is left of it."""
        self.noticed, more = False, list[Any]()
        if self.lease is not None:
            more = ["LEASE", max(LEAST_LEASE_MS, int((self.end - _now()) * 1000))]
        return self.commands("RENEW", *more)

    def renewed(self, sent: float, left_ms: int) -> None:
        left = left_ms / 1000
        self.until = sent + left if self.lease is None else min(sent + left, self.end)
        if self.heartbeat is not None and self.lease is None:  # over before latchd gives it on
            self.until = min(self.until, sent + self.heartbeat * HEARTBEAT_PART)
        self.due = -math.inf if self.noticed else sent + (self.until - sent) / 3
        self.uncertain = False

    def doubt(self) -> None:
        if self.state is _State.HELD and not self.uncertain:
            self.uncertain = True
            _log.warning("%s is uncertain: no renewal is confirmed", self.name)
            self._tell("uncertain")

    def lose(self) -> None:
        if self.state is _State.HELD:  # so it is told once, and never after the release
            self.state, self.until = _State.LOST, -math.inf
            _log.warning("%s is lost", self.name)
            self._tell("lost")


class _Core:
    """What all locks of a client share. All but the constructor runs in the loop's thread."""

    def __init__(self, urls: tuple[str, ...], timeout: float, patience: float, more: dict[str, Any]):
        if not urls:
            raise ValueError("latchd's address is missing")
        self.timeout, self.patience = timeout, patience
        self._pools = [ConnectionPool.from_url(url, **{
            "socket_timeout": None, "socket_connect_timeout": timeout,
            **({} if url.startswith("unix:") else {"socket_keepalive": True}),
            **more}) for url in urls]
        self._at = 0
        self._idle: list[_Link] = []
        self._shared: Optional[_Link] = None
        self._connecting: Optional[asyncio.Future[_Link]] = None
        self._holds: dict[str, _Hold] = {}
        self._tasks: set[asyncio.Future[Any]] = set()
        self._keeper: Optional[asyncio.Future[None]] = None
        self._renewing: Optional[asyncio.Future[None]] = None
        self._wake_at, self._wake = math.inf, asyncio.Event()
        self._pause = PAUSES_S[0]
        self._hearer: Optional[asyncio.Future[None]] = None
        self._held, self._said = asyncio.Event(), dict[tuple[str, str], str]()

    # Connections

    async def _connect(self) -> _Link:
        """Through the first address that answers, beginning with the last one that did."""
        trouble: LatchdError = Unreachable()
        for _ in self._pools:
            pool: Any = self._pools[self._at]
            link = _Link(pool.make_connection(), self._at, self.timeout)
            try:
                await link.open()
                return link
            except (redis.RedisError, OSError, LatchdError) as error:
                trouble = _typed(error)
                if not isinstance(trouble, (Unreachable, _GoAway)):
                    link.close()
                    raise trouble from None
                self._leave(link)
        raise Unreachable(str(trouble))

    def _leave(self, link: _Link) -> None:
        """The next connection begins with another address, if there is one."""
        link.close()
        if self._at == link.at:
            self._at = (link.at + 1) % len(self._pools)

    async def _own_link(self) -> _Link:
        while self._idle:
            link = self._idle.pop()
            if link.broken is None:
                return link
        return await self._connect()

    def _give_back(self, link: _Link) -> None:
        if len(self._idle) < MOST_IDLE and link.broken is None:
            self._idle.append(link)
        else:
            link.close()

    async def _shared_link(self) -> _Link:
        """On which no LOCK waits. One attempt serves all that want it."""
        if self._shared is not None and self._shared.broken is None:
            return self._shared
        if self._connecting is None:
            self._connecting = self._spawn(self._connect_shared())
        return await asyncio.shield(self._connecting)

    async def _connect_shared(self) -> _Link:
        try:
            link = self._shared = await self._connect()
            link.on_break = self._renew_all_at_once
            self._held.set()
            return link
        finally:
            self._connecting = None

    def _renew_all_at_once(self) -> None:
        """They were attached to the connection that broke. Where latchd is only silent, connecting
        again would succeed, so another address comes first."""
        if self._shared is not None and self._shared.silent:
            self._leave(self._shared)
        for hold in self._holds.values():
            hold.due = -math.inf
        self._wake.set()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    # Taking

    async def acquire(self, hold: _Hold, wait: Optional[float]) -> bool:
        """False: the wait is over, and somebody else has the lock."""
        if hold.given_up:
            raise asyncio.CancelledError
        hold.taker = asyncio.current_task()
        deadline = math.inf if wait is None else _now() + wait
        reached, pause, link = _now(), PAUSES_S[0], None
        try:
            while True:
                used = link is not None or bool(self._idle)
                try:
                    link = link or await self._own_link()
                    asked = _now()
                    tokens = await self._ask(link, hold, deadline)
                    if tokens is not None:
                        await self._begin(hold, tokens)
                        self._give_back(link)
                        return True
                    reached, pause = _now(), PAUSES_S[0]
                    if reached >= deadline:
                        self._spawn(self._abandon(hold, link))
                        return False
                    continue
                except LockLost:  # this request is over: freed by force, or lost before it was ours
                    if link is not None and len(hold.names) > 1:  # of several the others are there
                        self._spawn(link.ask_all(hold.commands("UNLOCK"), self.timeout))
                    hold.request = str(uuid.uuid4())
                    if _now() < deadline:
                        continue
                    raise
                except (Unreachable, Backend, _GoAway) as error:
                    trouble = error
                if "OWNER" in hold.options and link is not None and link.silent and deadline - asked > LONGEST_ASK_S:
                    # Its LOCK may take longer than the answer is waited for: a new connection shows whether latchd
                    # is there.
                    reached, link = _now(), None
                    for idle in self._idle:
                        idle.close()
                    self._idle.clear()
                    continue
                if link is not None and not isinstance(trouble, Backend):
                    self._leave(link)
                    link = None
                # That a connection broke while it lay idle says nothing yet.
                now, used = _now(), used and not isinstance(trouble, Backend)
                if not used and (now >= deadline or now - reached > self.patience):
                    raise trouble
                await asyncio.sleep(max(0.0, min(pause, deadline - now)))
                pause = min(2 * pause, PAUSES_S[1])
        except BaseException:
            self._spawn(self._abandon(hold, link))
            raise

    async def _ask(self, link: _Link, hold: _Hold, deadline: float) -> Optional[list[int]]:
        left = max(0.0, deadline - _now())
        ask = min(left, LONGEST_ASK_S)
        words = [word for option, values in hold.options.items() for word in (option, *values)]
        # latchd looks for a deadlock where it knows how long an owner would wait in all.
        wait = left if "OWNER" in hold.options else ask
        if wait < math.inf:
            words += ["WAIT", math.ceil(wait * 1000)]
        if wait == 0 and "KEEP" not in hold.options:
            words += ["KEEP", 0]
        several = len(hold.names) > 1
        what = ["MLOCK", len(hold.names)] if several else ["LOCK"]
        answer = await link.ask(*what, *hold.names, *words, "ID", hold.request,
                                within=ask + self.timeout)
        return answer if several or answer is None else [answer]

    async def query(self, *words: Any, wait: Optional[float] = None) -> Any:
        """Asks until latchd has answered, or `wait` is over; LATCH AWAIT until the answer is not null."""
        awaits = words[:2] == ("LATCH", "AWAIT")
        deadline = math.inf if wait is None else _now() + wait
        reached, pause, link = _now(), PAUSES_S[0], None
        try:
            while True:
                used = link is not None or bool(self._idle)
                try:
                    link = link or await self._own_link()
                    ask = min(max(0.0, deadline - _now()), LONGEST_ASK_S) if awaits else 0.0
                    answer = await link.ask(*words, *(["WAIT", math.ceil(ask * 1000)] if awaits else []),
                                            within=ask + self.timeout)
                    reached, pause = _now(), PAUSES_S[0]
                    if awaits and answer is None and reached < deadline:
                        continue
                    self._give_back(link)
                    return answer
                except (Unreachable, Backend, _GoAway) as error:
                    trouble = error
                if link is not None and not isinstance(trouble, Backend):
                    self._leave(link)
                    link = None
                now, used = _now(), used and not isinstance(trouble, Backend)
                if not used and (now >= deadline or now - reached > self.patience):
                    raise trouble
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSES_S[1])
        except BaseException:
            if link is not None:
                link.close()  # which ends an AWAIT
            raise

    async def locked(self, names: tuple[str, ...]) -> bool:
        return any([await self._is_held(name) for name in names])

    async def _is_held(self, name: str) -> bool:
        said = await self.query("LOCKINFO", name, wait=0)
        fields = said.items() if isinstance(said, dict) else zip(said[::2], said[1::2])  # of RESP3, of RESP2
        state = next(_text(value) for key, value in fields if _text(key) == "state")
        if state == "withheld":
            raise Backend(f"latchd grants {name} to nobody for now, and a hold of it may come back")
        if state == "lent":  # and only the latchd that has it knows whether somebody holds it
            _, owner, _ = await self.query("LEADER", name, wait=0)
            return bool(owner)
        return state != "free"

    async def _begin(self, hold: _Hold, tokens: list[int]) -> None:
        """Attaches the hold to the connection that renews, and learns how long its lease is."""
        link = await self._shared_link()
        sent = _now()
        if hold.lease is not None:
            hold.end = sent + hold.lease
        left = min(await link.ask_all(hold.renewal(), self.timeout))
        if hold.given_up:
            raise asyncio.CancelledError
        hold.tokens, hold.state = dict(zip(hold.names, map(int, tokens))), _State.HELD
        hold.renewed(sent, left)
        hold.since = sent
        self._holds[hold.request] = hold
        self._schedule(hold)
        self._hearer = self._hearer or asyncio.ensure_future(self._hear())
        self._held.set()

    async def _abandon(self, hold: _Hold, link: Optional[_Link]) -> None:
        """Ends the wait; and the hold, if it was granted in the same moment."""
        words = "CANCEL", hold.names[0], "ID", hold.request
        if link is not None and link.broken is None:
            cancel = asyncio.ensure_future(link.ask(*words, within=self.timeout))
            await asyncio.sleep(0)  # so that UNLOCK stands behind it
            answers = await asyncio.gather(cancel, self._unlock(hold, link), return_exceptions=True)
            if not any(isinstance(answer, BaseException) for answer in answers):
                self._give_back(link)
                return
            link.close()
        await self._insist(hold)

    # Keeping

    def _schedule(self, hold: _Hold) -> None:
        if self._keeper is None:
            self._keeper = self._spawn(self._keep())
        elif min(hold.due, hold.until) < self._wake_at:
            self._wake.set()

    async def _keep(self) -> None:
        """Renews what is due, and says what is lost, as long as anything is held."""
        loop = asyncio.get_running_loop()
        try:
            while self._holds:
                self._take_notice()
                now = _now()
                for hold in [h for h in self._holds.values() if h.until <= now]:
                    self._lose(hold)
                due = [h for h in self._holds.values() if h.due <= now]
                if due and self._renewing is None:
                    self._renewing = self._spawn(self._renew(due))
                self._wake_at = min((h.until if self._renewing else min(h.due, h.until)
                                     for h in self._holds.values()), default=now)
                timer = loop.call_later(max(0.0, self._wake_at - now), self._wake.set)
                await self._wake.wait()
                timer.cancel()
                self._wake.clear()
        finally:
            self._keeper = None

    async def _hear(self) -> None:
        """Listens where holds are renewed. What is not heard shows at the next renewal."""
        notices: Optional[_Notices] = None
        try:
            while await self._held.wait():
                await asyncio.sleep(HEARD_AFTER_S)
                self._held.clear()
                link, old = self._shared, _now() - HEARD_AFTER_S
                names = {name for h in self._holds.values() if h.since <= old for name in h.names}
                if notices is not None and (notices.broken or notices.link is not link):
                    await notices.close()
                    notices = None
                if link is not None and link.broken is None and (names or notices):
                    notices = notices or _Notices(self._pools[link.at], link, self._note, self._hear_again)
                    await notices.follow(names)
                if any(h.since > old for h in self._holds.values()):
                    self._held.set()
        finally:
            if notices is not None:
                await notices.close()

    def _hear_again(self) -> None:
        asyncio.get_running_loop().call_later(PAUSES_S[1], self._held.set)

    def _note(self, channel: str, message: str) -> None:
        """The message ends with a token. An empty one: what is said from now on is heard, and what was
        said before it was not."""
        what, name = channel.split(":", 1)
        self._said[name, message.rsplit(" ", 1)[-1]] = what
        self._wake.set()

    def _take_notice(self) -> None:
        """The renewal tells whether it is so: a latchd that the hold has left knows no better."""
        said, self._said = self._said, {}
        for hold in self._holds.values() if said else ():
            heard = {said.get((name, str(token))) for name, token in hold.tokens.items()} - {None}
            if heard or any((name, "") in said for name in hold.names):
                hold.noticed, hold.due = True, -math.inf
            if "uncertain" in heard:
                hold.doubt()

    def _lose(self, hold: _Hold) -> None:
        self._holds.pop(hold.request, None)
        hold.lose()

    async def _renew(self, due: list[_Hold]) -> None:
        """All of these in one go. Those that were released meanwhile are left out of it."""
        try:
            link = await self._shared_link()
            due = [h for h in due if h.state is _State.HELD]
            left = min((h.until for h in due), default=math.inf) - _now()
            within = min(self.timeout, max(1.0, left / 3))
            await asyncio.gather(*(self._renew_one(link, hold, within) for hold in due))
        except (LatchdError, redis.RedisError, OSError):
            for hold in due:
                hold.doubt()
        finally:
            # After a failure the next attempt is made soon, and as often as it takes.
            uncertain = any(h.uncertain for h in due)
            self._pause = min(2 * self._pause, PAUSES_S[1]) if uncertain else PAUSES_S[0]
            asyncio.get_running_loop().call_later(self._pause if uncertain else 0, self._end_renewal)

    def _end_renewal(self) -> None:
        self._renewing = None
        self._wake.set()

    async def _renew_one(self, link: _Link, hold: _Hold, within: float) -> None:
        sent = _now()
        try:
            left = min(await link.ask_all(hold.renewal(), within))
        except LockLost:
            if hold.request in self._holds:
                self._lose(hold)
        except LatchdError:
            hold.doubt()
        else:
            if hold.state is _State.HELD:
                hold.renewed(sent, left)

    async def extend(self, hold: _Hold, lease: float) -> None:
        if hold.state is not _State.HELD:
            raise LockLost(f"{hold.name} is not held")
        link = await self._shared_link()
        sent = _now()
        commands = hold.commands("RENEW", "LEASE", math.ceil(lease * 1000))
        left = min(await link.ask_all(commands, self.timeout))
        hold.lease, hold.end = lease, sent + lease
        hold.renewed(sent, left)
        self._wake.set()

    # Giving back

    async def release(self, hold: _Hold) -> None:
        lost = hold.state is _State.LOST or hold.until <= _now()
        if lost:
            self._lose(hold)
        else:
            self._holds.pop(hold.request, None)
            hold.state = _State.RELEASED  # from now on no renewal counts, and no loss is told
        release = self._spawn(self._insist(hold))
        # Where latchd is out of reach it goes on in the background: the work is done.
        await asyncio.wait([release], timeout=self.timeout)
        if lost or (release.done() and release.result() is False):
            raise LockLost(f"{hold.name} was lost before it was released")

    async def _insist(self, hold: _Hold) -> Optional[bool]:
        """Unlocks, through restarts, for as long as the hold can be there. False: it was not."""
        began, pause = _now(), PAUSES_S[0]
        while _now() - began < max(self.patience, hold.lease or 0):
            try:
                return await self._unlock(hold, await self._shared_link())
            except Unreachable:
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSES_S[1])
            except LatchdError:
                return None
        return None

    async def _unlock(self, hold: _Hold, link: _Link) -> bool:
        try:
            await link.ask_all(hold.commands("UNLOCK"), self.timeout)
        except LockLost:
            return False
        except Backend:
            pass  # latchd has it in hand
        return True

    def drop(self, hold: _Hold) -> None:
        """Its program was interrupted, and never saw what was granted."""
        hold.given_up = True
        if hold.taker is not None:
            hold.taker.cancel()
        if self._holds.pop(hold.request, None) is not None:
            hold.state = _State.RELEASED
            self._spawn(self._insist(hold))

    # Following

    async def ask_leader(self, follower: _Follower) -> Leader:
        """The next one that is another than the last, however long that takes."""
        link, follower.link, pause = follower.link, None, PAUSES_S[0]
        words: list[Any] = ["LEADER", follower.name]
        within = self.timeout
        if follower.last is not None:
            words += ["AFTER", follower.last.token, "WAIT", math.ceil(LONGEST_ASK_S * 1000)]
            within += LONGEST_ASK_S
        try:
            while True:
                try:
                    link = link or await self._own_link()
                    leader = Leader.of(await link.ask(*words, within=within))
                    pause = PAUSES_S[0]
                    if leader != follower.last:
                        follower.link, follower.last = link, leader
                        return leader
                    continue
                except (Unreachable, Backend, _GoAway) as error:
                    trouble = error
                if link is not None and not isinstance(trouble, Backend):
                    self._leave(link)
                    link = None
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSES_S[1])
        finally:
            if follower.link is None and link is not None:
                link.close()

    async def leave(self, follower: _Follower) -> None:
        if follower.link is not None:
            self._give_back(follower.link)
            follower.link = None

    async def close(self) -> None:
        """Closes connections that nobody needs, once what is under way is done."""
        while self._tasks - {self._keeper}:
            await asyncio.wait(self._tasks - {self._keeper})
        for link in self._idle + ([self._shared] if self._shared and not self._holds else []):
            link.close()
        self._idle.clear()
        if self._hearer is not None and not self._holds:
            self._hearer.cancel()
            self._hearer = None


class Leader(NamedTuple):
    """Who holds a name alone: the fencing token, the owner as latchd names it, and the `data` of the
    lock. Nobody: 0 and empty."""

    token: int
    owner: str
    data: bytes

    @classmethod
    def of(cls, answer: list[Any]) -> Leader:
        owner, data = (text.encode() if isinstance(text, str) else text for text in answer[1:])
        return cls(int(answer[0]), owner.decode(errors="replace"), data)

    def __bool__(self) -> bool:
        """Whether somebody leads."""
        return bool(self.owner)


class _Follower:
    """What both kinds of followers are made of."""

    def __init__(self, client: _Client, name: str) -> None:
        self.name, self._client = name, client
        self.last: Optional[Leader] = None
        self.link: Optional[_Link] = None  # of the loop's thread
        self._asking: Any = None

    def _ask(self) -> Any:
        core = self._client._core_of_process()
        self._asking = asyncio.run_coroutine_threadsafe(core.ask_leader(self), _Runner.loop())
        return self._asking

    def _leave(self) -> Any:
        if self._asking is not None:
            self._asking.cancel()
        core = self._client._core_of_process()
        return asyncio.run_coroutine_threadsafe(core.leave(self), _Runner.loop())


class Follower(_Follower):
    """The leaders of a name, one after the other, without an end; of Latchd.follow(). close() from
    any thread ends it."""

    _closed = False

    def __iter__(self) -> Follower:
        return self

    def __next__(self) -> Leader:
        if self._closed:
            raise StopIteration
        asking = self._ask()
        try:
            return asking.result()
        except concurrent.futures.CancelledError:
            raise StopIteration from None
        except BaseException:
            asking.cancel()
            raise

    def close(self) -> None:
        self._closed = True
        self._leave()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *what: Any) -> None:
        self.close()


class AsyncFollower(_Follower):
    """The leaders of a name, one after the other, without an end; of AsyncLatchd.follow()."""

    def __aiter__(self) -> AsyncFollower:
        return self

    async def __anext__(self) -> Leader:
        return await asyncio.wrap_future(self._ask())

    async def aclose(self) -> None:
        await asyncio.wrap_future(self._leave())


class _Loop(asyncio.SelectorEventLoop):
    """Knows its connections' sockets, whatever event loops the program itself uses."""

    def __init__(self) -> None:
        super().__init__()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def sock_connect(self, sock: Any, address: Any) -> None:
        self._sockets.add(sock)
        await super().sock_connect(sock, address)

    def close_sockets_of_child(self) -> None:
        """No shutdown: that would end the connections of the parent, whose they are."""
        for sock in list(self._sockets):
            sock.close()


class _Runner:
    """The thread of this process."""

    _lock = threading.Lock()
    _loop: Optional[asyncio.AbstractEventLoop] = None
    _pid = 0

    @classmethod
    def loop(cls) -> asyncio.AbstractEventLoop:
        with cls._lock:
            if cls._loop is None or cls._pid != os.getpid():
                # Only where there is no fork a loop of another kind is the default.
                cls._loop = _Loop() if hasattr(os, "fork") else asyncio.new_event_loop()
                cls._pid = os.getpid()
                threading.Thread(target=cls._loop.run_forever, name="latchd", daemon=True).start()
            return cls._loop

    @classmethod
    def after_in_child(cls) -> None:
        """A connection is open as long as anybody has its socket: a child that kept it would keep the
        holds of a parent that died."""
        cls._lock = threading.Lock()
        if isinstance(cls._loop, _Loop):
            cls._loop.close_sockets_of_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Runner.after_in_child)


class _Client:
    """What both kinds of clients are made of."""

    def __init__(self, *urls: str, timeout: float = 5.0, patience: float = 30.0, **connection: Any):
        """urls: addresses of latchds that share a Redis; the first that answers is used.

        timeout: seconds without an answer after which a connection is given up. patience: seconds
        after which a wait fails with Unreachable or Backend, however long it was to be.
        connection: what redis-py's connections take, such as password, or ssl_ca_certs.
        """
        self._args = urls, timeout, patience, connection
        self._pid = 0
        self._core_of_process()

    def _core_of_process(self) -> _Core:
        """A fork has no part in its parent's connections."""
        if self._pid != os.getpid():
            self._core, self._pid = _Core(*self._args), os.getpid()
            weakref.finalize(self, _close, self._core, self._pid)
        return self._core


def _close(core: _Core, pid: int) -> Any:
    if pid == os.getpid():
        return asyncio.run_coroutine_threadsafe(core.close(), _Runner.loop())


class _Lost:
    """Whether a hold is lost. What it says depends on no thread but the caller's own."""

    def __init__(self) -> None:
        self._hold: Optional[_Hold] = None
        self._pid = os.getpid()

    def is_set(self) -> bool:
        hold = self._hold
        if hold is None or hold.state is _State.RELEASED:
            return False
        return hold.until <= _now() or self._pid != os.getpid()

    __bool__ = is_set

    def _left(self, end: float) -> float:
        """Seconds until it is time to look again."""
        until = self._hold.until if self._hold is not None else math.inf
        return max(0.001, min(until, end) - _now())


class Lost(_Lost):
    """Like an Event: is_set(), wait(), or its truth."""

    def __init__(self) -> None:
        super().__init__()
        self._event = threading.Event()

    def wait(self, timeout: Optional[float] = None) -> bool:
        end = math.inf if timeout is None else _now() + timeout
        while not self.is_set() and _now() < end:
            self._event.wait(min(threading.TIMEOUT_MAX, self._left(end)))
            self._event.clear()
        return self.is_set()


class AsyncLost(_Lost):
    """Like an asyncio.Event: is_set(), await wait(), or its truth."""

    def __init__(self) -> None:
        super().__init__()
        self._event = asyncio.Event()

    async def wait(self) -> bool:
        loop = asyncio.get_running_loop()
        while not self.is_set():
            timer = loop.call_later(min(86400, self._left(math.inf)), self._event.set)
            await self._event.wait()
            timer.cancel()
            self._event.clear()
        return True


class LockOptions(TypedDict, total=False):
    """Options of LOCK, as latchd-protocol(7) has them, in lower case; times in seconds."""

    fair: bool
    read: bool
    write: bool
    permits: int
    of: int
    owner: str
    data: str | bytes
    priority: int
    queue: int
    lease: float | None
    grace: float | None
    keep: float | None
    heartbeat: float | None
    at_least: float | None
    local: bool
    other: dict[str, Any]  # options that a later latchd has, by their names


class _Lock:
    """What both kinds of locks are made of."""

    lost: Any

    def __init__(self, client: _Client, names: tuple[str, ...], wait: Optional[float],
                 options: LockOptions, on_lost: Optional[Callable[[], Any]],
                 on_uncertain: Optional[Callable[[], Any]]):
        if not names:
            raise ValueError("a lock has a name")
        if options.get("at_least") is not None and wait is None:
            wait = 0  # a job of its time does not wait for the next one
        self.name, self._names, self._client, self._wait = " and ".join(names), names, client, wait
        self._calls = {"lost": on_lost, "uncertain": on_uncertain}
        self._lease, self._heartbeat = options.get("lease"), options.get("heartbeat")
        self._kind = [kind for kind in ("READ", "WRITE") if options.get(kind.lower())]
        self._options: dict[str, list[Any]] = {}
        every: dict[str, Any] = {**options, **options.get("other", {}), "other": None}
        for option, value in every.items():
            if value is None or value is False:
                continue
            if option in ("lease", "grace", "keep", "heartbeat", "at_least"):
                value = math.ceil(value * 1000)
            self._options["ATLEAST" if option == "at_least" else option.upper()] = [] if value is True else [value]
        self._hold: Optional[_Hold] = None
        self._busy = threading.Lock()

    @property
    def token(self) -> int:
        """The fencing token of the hold, of the first of several names; 0: there has been none."""
        return self.tokens.get(self._names[0], 0)

    @property
    def tokens(self) -> dict[str, int]:
        """Of each name."""
        return self._hold.tokens if self._hold is not None else {}

    @property
    def held(self) -> bool:
        """By this object, by the clock of this moment. For whether anybody holds it there is locked()."""
        return self._hold is not None and self._hold.state is _State.HELD and not self.lost

    @property
    def uncertain(self) -> bool:
        """The last renewal failed, and the lease is not over yet."""
        return self._hold is not None and self._hold.uncertain and not self.lost

    def _begin(self) -> _Hold:
        """A Lock is held once at a time; for another hold, even of the same name, make another."""
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(f"{self.name} is held, or waited for, by this object already")
        self._hold, self.lost = None, type(self.lost)()
        return _Hold(list(self._names), self._options, self._kind, self._lease, self._heartbeat,
                     self._told)

    def _told(self, what: str) -> None:
        raise NotImplementedError

    def _acquiring(self, hold: _Hold, wait: Optional[float]) -> Any:
        core = self._client._core_of_process()
        return asyncio.run_coroutine_threadsafe(core.acquire(hold, wait), _Runner.loop())

    def _drop(self, hold: _Hold) -> None:
        """After an interruption, which may come before `_acquiring` returns its future, or in the
        same moment as the answer."""
        _Runner.loop().call_soon_threadsafe(self._client._core_of_process().drop, hold)
        self._busy.release()

    def _asking_locked(self) -> Any:
        return asyncio.run_coroutine_threadsafe(self._client._core_of_process().locked(self._names), _Runner.loop())

    def _settle(self, hold: _Hold, granted: bool) -> Optional[int]:
        if not granted:
            self._busy.release()
            return None
        self._hold = self.lost._hold = hold
        return self.token

    def _releasing(self, core: _Core) -> Any:
        hold = self._hold
        if hold is None or hold.state is _State.RELEASED or not self._busy.locked():
            raise LockLost(f"{self.name} is not held by this object")
        if self.lost._pid != os.getpid():
            raise LockLost(f"{self.name} is held by the process that this one was forked from")
        self._busy.release()
        return asyncio.run_coroutine_threadsafe(core.release(hold), _Runner.loop())


_DEFAULT: Any = object()


class Lock(_Lock):
    """One name, or several, to be held by one at a time; of Latchd.lock()."""

    lost: Lost

    def __init__(self, *args: Any) -> None:
        self.lost = Lost()
        super().__init__(*args)

    def _told(self, what: str) -> None:
        if what == "lost":
            self.lost._event.set()
        call = self._calls[what]
        if call is not None:  # whatever it does, renewals do not wait for it
            threading.Thread(target=call, name=f"latchd {what}", daemon=True).start()

    def acquire(self, wait: Optional[float] = _DEFAULT) -> Optional[int]:
        """The token, or None if somebody else has the lock after `wait` seconds (None: no end)."""
        hold = self._begin()
        try:
            granted = self._acquiring(hold, self._wait if wait is _DEFAULT else wait).result()
        except BaseException:
            self._drop(hold)
            raise
        return self._settle(hold, granted)

    def extend(self, lease: float) -> None:
        """From now on the hold lasts for so many seconds, and no longer."""
        self._run(lambda core, hold: core.extend(hold, lease))

    def _run(self, work: Callable[[_Core, _Hold], Coroutine[Any, Any, Any]]) -> Any:
        if self._hold is None:
            raise LockLost(f"{self.name} is not held by this object")
        core = self._client._core_of_process()
        return asyncio.run_coroutine_threadsafe(work(core, self._hold), _Runner.loop()).result()

    def locked(self) -> bool:
        """Whether anybody holds it now, or one of its names. Raises Backend if that cannot be known."""
        return bool(self._asking_locked().result())

    def release(self) -> None:
        """Raises LockLost if the lock was lost before."""
        self._releasing(self._client._core_of_process()).result()

    def __enter__(self) -> Lock:
        if self.acquire() is None:
            raise LockTimeout(f"somebody else has {self.name}")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.release()
        except LockLost:
            if kind is None:  # what the work itself raised is of more interest
                raise


class AsyncLock(_Lock):
    """One name, or several, to be held by one at a time; of AsyncLatchd.lock()."""

    lost: AsyncLost

    def __init__(self, *args: Any) -> None:
        self.lost = AsyncLost()
        super().__init__(*args)
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def _told(self, what: str) -> None:
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(self._tell, what, self.lost)
            except RuntimeError:
                pass  # the loop is closed, and with it whoever would be told

    def _tell(self, what: str, lost: AsyncLost) -> None:
        if what == "lost":
            lost._event.set()
        call = self._calls[what]
        result = call() if call is not None else None
        if inspect.isawaitable(result):
            self._calling = asyncio.ensure_future(result)

    async def acquire(self, wait: Optional[float] = _DEFAULT) -> Optional[int]:
        """The token, or None if somebody else has the lock after `wait` seconds (None: no end)."""
        hold = self._begin()
        self._loop = asyncio.get_running_loop()
        future = self._acquiring(hold, self._wait if wait is _DEFAULT else wait)
        try:
            granted = await asyncio.wrap_future(future)
        except BaseException:
            self._drop(hold)
            raise
        return self._settle(hold, granted)

    async def extend(self, lease: float) -> None:
        """From now on the hold lasts for so many seconds, and no longer."""
        if self._hold is None:
            raise LockLost(f"{self.name} is not held by this object")
        core = self._client._core_of_process()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(
            core.extend(self._hold, lease), _Runner.loop()))

    async def locked(self) -> bool:
        """Whether anybody holds it now, or one of its names. Raises Backend if that cannot be known."""
        return bool(await asyncio.wrap_future(self._asking_locked()))

    async def release(self) -> None:
        """Raises LockLost if the lock was lost before."""
        releasing = self._releasing(self._client._core_of_process())
        await asyncio.shield(asyncio.wrap_future(releasing))

    async def __aenter__(self) -> AsyncLock:
        if await self.acquire() is None:
            raise LockTimeout(f"somebody else has {self.name}")
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self.release()
        except LockLost:
            if kind is None:  # what the work itself raised is of more interest
                raise


class _Latch:
    """A latch: it is set to a number, counted down, and opens at 0."""

    def __init__(self, client: _Client, name: str):
        self.name = name
        self._client = client

    def _ask(self, *words: Any, wait: Optional[float] = None) -> Any:
        core = self._client._core_of_process()
        return asyncio.run_coroutine_threadsafe(core.query("LATCH", *words, wait=wait), _Runner.loop())

    def _setting(self, count: int, id: Optional[str]) -> Any:
        return self._ask("SET", self.name, count, "ID", id or str(uuid.uuid4()))

    def _counting(self, id: Optional[str]) -> Any:
        return self._ask("COUNT", self.name, "ID", id or str(uuid.uuid4()))


class Latch(_Latch):
    """Of Latchd.latch()."""

    def set(self, count: int, id: Optional[str] = None) -> bool:
        """False: one is set already. With `id` it can be repeated, and has the same answer."""
        return bool(self._setting(count, id).result())

    def count(self, id: Optional[str] = None) -> int:
        """What is left. An `id`, of 16 to 64 characters, counts once, however often it is repeated;
        without one, each call counts."""
        return int(self._counting(id).result())

    def wait(self, timeout: Optional[float] = None) -> bool:
        """True: it is open. False: `timeout` seconds (None: no end) are over. Raises LatchGone if it
        was deleted or lost."""
        waiting = self._ask("AWAIT", self.name, wait=timeout)
        try:
            return bool(waiting.result())
        except BaseException:
            waiting.cancel()
            raise

    def delete(self) -> bool:
        """False: there was none."""
        return bool(self._ask("DELETE", self.name).result())


class AsyncLatch(_Latch):
    """Of AsyncLatchd.latch()."""

    async def set(self, count: int, id: Optional[str] = None) -> bool:
        """False: one is set already. With `id` it can be repeated, and has the same answer."""
        return bool(await asyncio.wrap_future(self._setting(count, id)))

    async def count(self, id: Optional[str] = None) -> int:
        """What is left. An `id`, of 16 to 64 characters, counts once, however often it is repeated;
        without one, each call counts."""
        return int(await asyncio.wrap_future(self._counting(id)))

    async def wait(self, timeout: Optional[float] = None) -> bool:
        """True: it is open. False: `timeout` seconds (None: no end) are over. Raises LatchGone if it
        was deleted or lost."""
        return bool(await asyncio.wrap_future(self._ask("AWAIT", self.name, wait=timeout)))

    async def delete(self) -> bool:
        """False: there was none."""
        return bool(await asyncio.wrap_future(self._ask("DELETE", self.name)))


class Latchd(_Client):
    """latchd, for threads: one object serves all of a process."""

    def lock(self, *names: str, wait: Optional[float] = None,
             on_lost: Optional[Callable[[], Any]] = None,
             on_uncertain: Optional[Callable[[], Any]] = None, **options: Unpack[LockOptions]) -> Lock:
        """A lock that is not held yet; use it in a `with`, or call acquire() and release().

        names: several are taken all or none; a loss of one is a loss of the lock. wait: seconds;
        None: no end. on_lost, on_uncertain: called without arguments, in a thread
        of their own. options: those of LOCK, as latchd-protocol(7) has them, in lower case:
        fair=True, read=True, write=True, owner="ann", data="10.0.0.7", priority=9, queue=5, and, in
        seconds, lease, grace, keep, heartbeat and at_least; other={"name": value} for later ones. With at_least
        nobody else gets the lock for so long, though its holder is done, or gone: it is not waited for.
        """
        return Lock(self, names, wait, options, on_lost, on_uncertain)

    def follow(self, name: str) -> Follower:
        """Iterates over who leads: who holds the name alone, now, and each time that it changes. A
        leader who is followed by another one at once may be skipped."""
        return Follower(self, name)

    def latch(self, name: str) -> Latch:
        """A latch, which others count down."""
        return Latch(self, name)

    def close(self) -> None:
        """Closes the connections that no hold needs."""
        _close(self._core_of_process(), os.getpid()).result()

    def __enter__(self) -> Latchd:
        return self

    def __exit__(self, *what: Any) -> None:
        self.close()


class AsyncLatchd(_Client):
    """latchd, for asyncio: one object serves all tasks, of all loops."""

    def lock(self, *names: str, wait: Optional[float] = None,
             on_lost: Optional[Callable[[], Any]] = None,
             on_uncertain: Optional[Callable[[], Any]] = None, **options: Unpack[LockOptions]) -> AsyncLock:
        """As Latchd.lock(), for `async with`; on_lost and on_uncertain are called in the task's
        loop, and may be coroutine functions."""
        return AsyncLock(self, names, wait, options, on_lost, on_uncertain)

    def follow(self, name: str) -> AsyncFollower:
        """As Latchd.follow(), for `async for`."""
        return AsyncFollower(self, name)

    def latch(self, name: str) -> AsyncLatch:
        """As Latchd.latch()."""
        return AsyncLatch(self, name)

    async def close(self) -> None:
        """Closes the connections that no hold needs."""
        await asyncio.wrap_future(_close(self._core_of_process(), os.getpid()))

    async def __aenter__(self) -> AsyncLatchd:
        return self

    async def __aexit__(self, *what: Any) -> None:
        await self.close()
