"""A lock library for Redis, redis-py's Lock, at latchd's port beside LOCK and Redisson."""
import contextlib

import kills
import library
import servers
from contend import contend
from contenders import Contender, Goal
from expect import check
from library import Helped, Killed, KilledStraight, Patient, Straight, ThroughLatchd
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


def programs_of_redisson_move_to_a_helper_one_at_a_time(world):
    """Each round has one of Redisson's less, and one more that has moved."""
    programs = 4
    for kind, fenced, words in (("plain", "fenced", ()), ("fair", "fair", ("FAIR",))):
        for moved in range(1, programs):
            stay = [kind, fenced, kind][:programs - moved]
            goal = Goal(f"moved-{kind}", world.count(100, 2_000), pause_us=4000, words=(words,))
            contend(world, goal, stay, [world.latchd, world.second, world.latchd][:moved],
                    share=None, ours=Helped)


def kills_let_no_two_in_and_keep_nobody_out_for_longer_than_a_lease(world):
    """A latchd is killed again and again, whose clients come back through the second one, and so
    are JVMs and processes of redis-py that hold the name."""
    classes = [kills.Returning] * 3 + [kills.ReturningLibrary] * 3 + [
        library.Killed, kills.KillsLatchd, kills.KillsJvms, kills.Looks]
    goal = Goal("kills", world.count(1500, 10_000), pause_us=4000)
    with contextlib.ExitStack() as stack:
        mortal = stack.enter_context(world.start_latchd("mortal"))
        pair = kills.Pair(mortal, world.second)
        jvms = kills.start_jvms(world, stack.enter_context, world.count(2, 6))
        here = []

        def make(_, backing, me, goal):
            kind = classes[int(me[1:])]
            daemon = world.second if kind is library.Killed else pair
            here.append(kind(daemon, backing, me, goal))
            here[-1].jvms = jvms
            return here[-1]

        contend(world, goal, ["plain"] * 2 + ["fenced"], [world.second] * len(classes), share=None,
                ours=make)
    looks, killer = here[-1], here[classes.index(kills.KillsLatchd)]
    returns = sum(c.latchd.returns for c in here if isinstance(c, kills.Returning))
    world.say(f"killed: latchd {killer.kills} times, and {len(jvms)} JVMs; {returns} times a LOCK "
              f"was sent again; a dead one had the name for {looks.longest_held_s:.2f} s at most")
    longest_s = max(c.longest_s for c in here)
    check(returns > 0, "nobody had to come back")
    check(longest_s < kills.LONGEST_WAIT_S, f"one waited for {longest_s:.1f} s")
    check(killer.kills > len(jvms), "latchd was hardly killed")


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
    CHECKS += [programs_of_redisson_move_to_a_helper_one_at_a_time,
               a_lock_library_takes_turns_with_both,
               a_lock_library_moves_to_latchd_one_process_at_a_time,
               kills_let_no_two_in_and_keep_nobody_out_for_longer_than_a_lease]
WAITING = []
