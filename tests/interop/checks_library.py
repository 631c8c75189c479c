"""A lock library for Redis, redis-py's Lock, at latchd's port beside LOCK and Redisson."""
import library
import servers
from contend import contend
from contenders import Contender, Goal
from expect import check
from library import Killed, KilledStraight, Patient, Straight, ThroughLatchd
from peers import Latchd, Redisson

AT_ONCE_NS = 5_000_000_000  # it asks again, for ever, for a command that it takes for unknown
SAID = "latchd keeps locks, not data"
SAYS_SO = (4, 0)  # Redisson


def mixed(*classes):
    """A contender of each class."""
    return lambda daemon, backing, me, goal: classes[int(me[1:])](daemon, backing, me, goal)


def a_lock_library_takes_turns_with_both(world):
    """Some of its processes are killed while they hold."""
    classes = [ThroughLatchd] * 4 + [Contender] * 2 + [Killed] * 2
    contend(world, Goal("library", world.count(800, 10_000), pause_us=4000),
            ["plain"] * 2 + ["fenced"], [world.latchd, world.second] * 4, share=None,
            ours=mixed(*classes))


def a_lock_library_moves_to_latchd_one_process_at_a_time(world):
    """Redisson takes no part: it gives up at a string."""
    classes = [ThroughLatchd, Straight] * 2 + [Patient] * 2 + [Killed, KilledStraight]
    contend(world, Goal("moving", world.count(400, 10_000), pause_us=4000), [],
            [world.latchd, world.second] * 4, share=None, ours=mixed(*classes))


def redisson_at_the_port_of_latchd_gets_an_error_at_once(world):
    """Old versions throw an exception of their own over any error in reply to a lock's script."""
    port = servers.PORTS.take()
    with Latchd(world.stage.program, world.redis, world.stage.folder, "port", port=port):
        lost = Redisson(world.stage.jvm, "lost", ("single", port), 30_000, 300_000)
        reply = lost.finish(lost.start("thread", "lock", "plain", "job", 0))
        lost.ask("thread", "close")
    world.say(f"after {(reply.ended - reply.began) / 1e6:.0f} ms: {reply.value}")
    check(not reply.ok, "Redisson has a lock")
    check(reply.ended - reply.began < AT_ONCE_NS, "it tried for long")
    check(SAID in reply.value or world.version < SAYS_SO, reply.value)


CHECKS = [redisson_at_the_port_of_latchd_gets_an_error_at_once]
if library.redis is not None:
    CHECKS += [a_lock_library_takes_turns_with_both,
               a_lock_library_moves_to_latchd_one_process_at_a_time]
WAITING = []
