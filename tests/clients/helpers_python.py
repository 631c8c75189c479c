#!/usr/bin/env python3
"""What only the helper for Python has to do: helpers_python.py LATCHD. Prints TAP.

With the redis module of the machine, so it needs no registry.
"""
import gc
import logging
import os
import pathlib
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support"), str(HERE.parents[1] / "clients/python")]

# pylint: disable=wrong-import-position
from children import until  # noqa: E402
from resp import Wire  # noqa: E402
from stand import Stand, tap  # noqa: E402

try:
    import latchd
except ImportError:
    print("1..0 # SKIP the redis module is not installed")
    sys.exit(0)

LEASE_S = 2
LONG_LEASE_S = 20  # far from what is to happen at once


class Interrupted(Exception):
    """By a signal."""


def interrupt(*_):
    raise Interrupted


def an_interrupted_wait_leaves_the_queue(stand, client):
    signal.signal(signal.SIGUSR1, interrupt)
    with Wire(stand.port) as other:
        other.ask("LOCK", "job")

        def shoot():
            until(lambda: other.ask("WAITERS", "job"), "it waits")
            os.kill(os.getpid(), signal.SIGUSR1)

        shooter = threading.Thread(target=shoot)
        shooter.start()
        lock = client.lock("job")
        try:
            lock.acquire()
            raise AssertionError("it was granted")
        except Interrupted:
            pass
        shooter.join()
        until(lambda: not other.ask("WAITERS", "job"), "nobody waits")
        other.ask("UNLOCK", "job")
    with lock:  # the object is as good as new
        assert lock.token


def an_interrupted_start_leaves_nothing(stand, client):
    lock = client.lock("job")
    start = latchd.asyncio.run_coroutine_threadsafe

    def start_and_be_interrupted(*work):
        start(*work)
        raise Interrupted

    latchd.asyncio.run_coroutine_threadsafe = start_and_be_interrupted
    try:
        lock.acquire()
        raise AssertionError("it was granted")
    except Interrupted:
        pass
    finally:
        latchd.asyncio.run_coroutine_threadsafe = start
    with Wire(stand.port) as other:
        assert other.ask("LOCK", "job", "WAIT", 20000), "nobody gives it back"
        other.ask("UNLOCK", "job")
    with lock:
        assert lock.token


def a_child_has_none_of_its_parents_holds(stand, client):
    with client.lock("job") as lock:
        child = os.fork()
        if child == 0:
            said = 1
            try:
                assert lock.lost
                try:
                    lock.release()
                except latchd.LockLost:
                    with client.lock("of the child", wait=10):
                        said = client.lock("job").acquire(wait=0) is not None
            finally:
                os._exit(said)
        assert os.waitpid(child, 0)[1] == 0, "the child thinks otherwise"
        assert not lock.lost
    with Wire(stand.port) as other:
        assert other.ask("LOCK", "job", "WAIT", 0)


def a_hold_ends_with_its_process_and_not_with_a_child_of_it(stand, client):
    pids, said = os.pipe()
    holder = os.fork()
    if holder == 0:
        client.lock("job", grace=0).acquire()
        child = os.fork()
        if child != 0:
            os.write(said, str(child).encode())
        while True:
            signal.pause()
    child = int(os.read(pids, 20))
    try:
        with Wire(stand.port) as other:
            assert other.ask("LOCK", "job", "WAIT", 0) is None, "the child ended it"
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
            assert other.ask("LOCK", "job", "WAIT", LONG_LEASE_S * 500), "the child keeps it"
            other.ask("UNLOCK", "job")
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(pids)
        os.close(said)


def a_forgotten_hold_is_kept(stand, client):
    client.lock("job").acquire()
    gc.collect()
    time.sleep(2 * LEASE_S)
    with Wire(stand.port) as other:
        assert other.ask("LOCK", "job", "WAIT", 0) is None, "it was released"
        assert other.ask("FORCEUNLOCK", "job", "ANY") == 1


def a_loss_wakes_who_waits_for_it(stand, client):
    lock = client.lock("job")
    lock.acquire()
    assert not lock.lost.wait(0.1)
    with Wire(stand.port) as other:
        other.ask("FORCEUNLOCK", "job", "ANY")
    assert lock.lost.wait(10 * LEASE_S)
    try:
        lock.release()
        raise AssertionError("the release did not say so")
    except latchd.LockLost:
        pass


def the_clock_says_it_although_the_thread_stands_still(stand, client):
    called = []
    lock = client.lock("job", on_lost=lambda: called.append(True))
    lock.acquire()
    stand.daemon.send_signal(signal.SIGSTOP)
    go_on = threading.Event()
    latchd._Runner.loop().call_soon_threadsafe(go_on.wait)  # as if a renewal had hung it
    try:
        assert lock.lost.wait(3 * LEASE_S), "it is not told"
        assert not called
    finally:
        go_on.set()
        stand.daemon.send_signal(signal.SIGCONT)
    until(lambda: called, "the callback")
    try:
        lock.release()
    except latchd.LockLost:
        pass


def nothing_is_said_of_what_was_refused(stand, client):
    """asyncio logs a task whose error nobody looked at, when it is collected."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("asyncio").addHandler(handler)
    with Wire(stand.port) as other:
        other.ask("ACL", "SETUSER", "ann", "on", ">secret", "~open", "&*", "+@all")
    with latchd.Latchd(f"redis://ann:secret@127.0.0.1:{stand.port}") as ann:
        for kind, names in ((latchd.NoPermission, ["closed"]), (latchd.LatchdError, ["latchd:mine"]),
                            (latchd.NoPermission, ["open", "closed"])):
            for _ in range(5):
                try:
                    ann.lock(*names).acquire(wait=0)
                    raise AssertionError("it was granted")
                except kind:
                    pass
    gc.collect()
    logging.getLogger("asyncio").removeHandler(handler)
    assert not said, said


def one_object_is_held_once(stand, client):
    with client.lock("job", wait=0) as lock:
        for wrong in (lock.acquire, lock.__enter__):
            try:
                wrong()
                raise AssertionError("it was taken twice")
            except RuntimeError:
                pass
        try:
            with client.lock("job", wait=0):
                raise AssertionError("it was taken twice")
        except latchd.LockTimeout:
            pass
    try:
        lock.release()
        raise AssertionError("it was released twice")
    except latchd.LockLost:
        pass


def it_comes_over_a_unix_socket(stand, client):
    with latchd.Latchd(f"unix://{stand.socket}") as near, near.lock("job") as lock:
        assert lock.token
        assert client.lock("job").acquire(wait=0) is None


CASES = [an_interrupted_wait_leaves_the_queue, an_interrupted_start_leaves_nothing,
         a_child_has_none_of_its_parents_holds, a_hold_ends_with_its_process_and_not_with_a_child_of_it,
         a_forgotten_hold_is_kept,
         a_loss_wakes_who_waits_for_it,
         the_clock_says_it_although_the_thread_stands_still, nothing_is_said_of_what_was_refused,
         one_object_is_held_once,
         it_comes_over_a_unix_socket]


def main():
    def check(case):
        lease_s = LONG_LEASE_S if case is a_hold_ends_with_its_process_and_not_with_a_child_of_it else LEASE_S
        with Stand(sys.argv[1], "--watchdog-timeout", f"{lease_s}s", level="error",
                   unix=True) as stand:
            with latchd.Latchd(f"redis://127.0.0.1:{stand.port}") as client:
                case(stand, client)

    failed = tap([(case.__name__.replace("_", " "), lambda case=case: check(case))
                  for case in CASES])
    sys.exit(1 if failed else 0)


main()
