#!/usr/bin/env python3
"""`latchctl run` when things break: latchctl_faults.py LATCHD LATCHCTL servers|processes.
Prints TAP.

What is asked of it each time: the command never beats beyond the end of its lease.
"""
import contextlib
import functools
import os
import signal
import sys

from latchctl_stand import CtlStand, expect, keeper_of, now, result, until
from stand import tap

LEASE = 2
RELEASE_TURNS = 10
RUN = ("--lease", str(LEASE))
BEAT_S = 0.1  # its last beat is that much before its end, at most


def pid_of_command(ctl):
    path = f"/proc/{keeper_of(ctl)}/task/{keeper_of(ctl)}/children"
    with open(path, encoding="ascii") as file:
        return int(file.read().split()[0])


def forced(stand):
    ctl = stand.start_beat("forced", beat=["child"])
    began = now()
    expect(stand.ask("FORCEUNLOCK", "forced", "ANY") == ":1\r\n")
    code, _, err = result(ctl)
    expect(code == 124 and "the lock is lost" in err, (code, err))
    expect(max(ctl.beat.ends(), ctl.child_beat.ends()) < began + 10)
    ctl = stand.start_beat("forced", "--lost-exit-code", "42")
    stand.ask("FORCEUNLOCK", "forced", "ANY")
    expect(result(ctl)[0] == 42)


def deleted(stand):
    ctl = stand.start_beat("deleted", *RUN)
    began = now()
    expect(stand.redis_cli("DEL", "deleted") == "1")
    code, _, err = result(ctl)
    expect(code == 124 and "lost" in err, (code, err))
    expect(ctl.beat.ends() < began + LEASE)


def deleted_at_the_end(stand):
    gate = stand.folder / "gate"
    ctl = stand.start("run", "ended", "sh", "-c",
                      f"echo in; while ! [ -e {gate} ]; do sleep 0.01; done")
    expect(ctl.stdout.readline() == "in\n")
    expect(stand.redis_cli("DEL", "ended") == "1")
    gate.touch()
    code, _, err = result(ctl)
    expect(code == 124 and "lost" in err, (code, err))


def deaf(stand):
    ctl = stand.start_beat("deaf", "--kill-after", "0.2", beat=["deaf", "child"])
    began = now()
    expect(stand.ask("FORCEUNLOCK", "deaf", "ANY") == ":1\r\n")
    expect(result(ctl)[0] == 124)
    last = max(ctl.beat.ends(), ctl.child_beat.ends())
    expect(began + 0.2 - BEAT_S < last < began + 10, last - began)


def daemon_gone(stand):
    """TERM in time for KILL to come before the lease ends."""
    runs = [stand.start_beat("daemon-gone", *RUN),
            stand.start_beat("daemon-gone-2", *RUN, beat=["deaf", "child"])]
    began = now()
    stand.kill_daemon()
    for ctl in runs:
        code, _, err = result(ctl)
        expect(code == 124 and "cannot be renewed" in err, (code, err))
        expect(ctl.beat.ends() < began + LEASE)
    expect(runs[1].child_beat.ends() < began + LEASE)
    stand.start_daemon()


def daemon_back(stand):
    ctl = stand.start_beat("daemon-back", *RUN)
    waiter = stand.start("run", "daemon-back", "echo", "mine")
    until(lambda: stand.waiters("daemon-back") == 1, "nobody waits")
    for _ in range(2):
        stand.kill_daemon()
        stand.start_daemon()
        stand.renewed("daemon-back", 4)
        ctl.beat.goes_on()
        expect(waiter.poll() is None)
    ctl.terminate()
    code, _, err = result(ctl)
    expect(code == 143 and err == "", (code, err))
    code, out, err = result(waiter)
    expect(code == 0 and out == "mine\n", (code, out, err))
    expect(stand.is_free("daemon-back"))


def released_late(stand):
    """The command ends while latchd is away; in some of the turns just when latchctl has asked for
    a renewal over a connection that is not open yet."""
    for turn in range(RELEASE_TURNS):
        name, gate = f"late-{turn}", stand.folder / f"late-{turn}"
        ctl = stand.start("run", name, "sh", "-c",
                          f"echo in; while ! [ -e {gate} ]; do sleep 0.01; done")
        expect(ctl.stdout.readline() == "in\n", "it did not begin")
        stand.kill_daemon()
        gate.touch()
        stand.start_daemon()
        ended = result(ctl)
        expect(ended == (0, "", ""), ended)
        expect(stand.is_free(name), stand.ask("LOCKINFO", name))


def daemon_stops(stand):
    """It stands still, connections and all."""
    ctl = stand.start_beat("daemon-stops", *RUN)
    began = now()
    stand.daemon.send_signal(signal.SIGSTOP)
    code, _, err = result(ctl)
    expect(code == 124, (code, err))
    expect(ctl.beat.ends() < began + LEASE)
    stand.daemon.send_signal(signal.SIGCONT)


def redis_gone(stand):
    ctl = stand.start_beat("redis-gone", *RUN, beat=["deaf"])
    began = now()
    stand.kill_redis()
    expect(result(ctl)[0] == 124)
    expect(ctl.beat.ends() < began + LEASE)
    stand.start_redis()


def redis_forgot(stand):
    """latchd puts the lock back, with its token."""
    ctl = stand.start_beat("redis-forgot", *RUN, beat=["deaf"])
    began = now()
    stand.kill_redis()
    stand.start_redis()
    until(lambda: now() > began + 2 * LEASE, "the lease that Redis forgot is not over")
    expect(ctl.poll() is None)
    expect(not stand.is_free("redis-forgot"))
    expect(stand.ask("FORCEUNLOCK", "redis-forgot", "ANY") == ":1\r\n")
    expect(result(ctl)[0] == 124)
    ctl.beat.ends()


def front_killed(stand):
    ctl = stand.start_beat("front", beat=["deaf", "child"])
    ctl.kill()
    expect(result(ctl)[0] == -signal.SIGKILL)
    ctl.beat.ends()
    ctl.child_beat.ends()
    until(lambda: stand.is_free("front"), "the lock is not released")


def keeper_killed(stand):
    ctl = stand.start_beat("keeper", beat=["deaf", "child"])
    os.kill(keeper_of(ctl), signal.SIGKILL)
    code, _, err = result(ctl)
    expect(code == 125 and "was killed" in err, (code, err))
    ctl.beat.ends()
    ctl.child_beat.ends()
    expect(stand.is_free("keeper"))


def both_killed(stand):
    ctl = stand.start_beat("both", *RUN, beat=["deaf"])
    keeper = keeper_of(ctl)
    os.kill(ctl.pid, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    ctl.kill()
    began = now()
    expect(ctl.beat.ends() < began + LEASE)
    until(lambda: stand.is_free("both"), "the lock outlives its lease")


def front_stopped(stand):
    ctl = stand.start_beat("stopped", *RUN)
    os.kill(ctl.pid, signal.SIGSTOP)
    stand.renewed("stopped", 4)
    ctl.beat.goes_on()
    expect(not stand.is_free("stopped"))
    os.kill(ctl.pid, signal.SIGCONT)
    ctl.terminate()
    expect(result(ctl)[0] == 143)


def keeper_stopped(stand):
    ctl = stand.start_beat("stopped-keeper", *RUN, beat=["deaf", "child"])
    began = now()
    os.kill(keeper_of(ctl), signal.SIGSTOP)
    expect(result(ctl)[0] == 124)
    last = max(ctl.beat.ends(), ctl.child_beat.ends())
    expect(last < began + LEASE, last - began)


def all_stopped(stand):
    """As when the machine sleeps: whoever wakes up looks at the clock first."""
    ctl = stand.start_beat("asleep", *RUN, beat=["deaf"])
    all_of_it = [ctl.pid, keeper_of(ctl), pid_of_command(ctl)]
    for pid in all_of_it:
        os.kill(pid, signal.SIGSTOP)
    expect(stand.run("run", "asleep", "true").returncode == 0)
    woken = now()
    for pid in all_of_it:
        with contextlib.suppress(ProcessLookupError):  # the one before may have ended it
            os.kill(pid, signal.SIGCONT)
    expect(result(ctl)[0] == 124)
    expect(ctl.beat.ends() < woken + 5)


def holder_vanishes(stand):
    """Whoever waits gets in when the lease of the one who vanished is over."""
    ctl = stand.start_beat("vanished", *RUN)
    waiter = stand.start("run", "vanished", "true")
    until(lambda: stand.waiters("vanished") == 1, "nobody waits")
    ctl.kill()
    expect(result(waiter)[0] == 0)
    result(ctl)


def permits_of_the_dead(stand):
    """They come back to a waiter when their lease is over, also after a kill of latchd."""
    ctl = stand.start_beat("dead", *RUN, "--permits", "2", "--of", "2")
    keeper = keeper_of(ctl)
    os.kill(ctl.pid, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    ctl.kill()
    result(ctl)
    stand.kill_daemon()
    stand.start_daemon()
    expect(stand.run("run", "dead", "--permits", "1", "-n", "true").returncode == 1)
    expect(stand.run("run", "dead", "--permits", "2", "true").returncode == 0)
    expect(stand.redis_cli("GET", "dead") == "2")
    expect(stand.redis_cli("EXISTS", "{dead}:timeout") == "0")


def runs(pid):
    """Who was killed is there until somebody looks after it, but does nothing any more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def subprocess_of_subprocess(stand):
    """What the command started goes with it, however deep."""
    ctl = stand.start("run", "deep", "sh", "-c",
                      "(setsid sh -c 'sleep 300 & echo $! & wait' &) ; sleep 300")
    pid = int(ctl.stdout.readline())
    expect(stand.ask("FORCEUNLOCK", "deep", "ANY") == ":1\r\n")
    expect(result(ctl)[0] == 124)
    until(lambda: not runs(pid), "what the command started runs on")


SERVERS = [
    ("a_lock_deleted_in_redis_stops_the_command_within_the_lease", deleted),
    ("a_lock_that_was_lost_unnoticed_is_noticed_at_the_end", deleted_at_the_end),
    ("without_latchd_the_command_ends_before_the_lease", daemon_gone),
    ("a_latchd_that_comes_back_finds_the_lock_still_held", daemon_back),
    ("a_lock_is_released_at_a_latchd_that_came_back", released_late),
    ("a_latchd_that_stands_still_is_given_up_in_time", daemon_stops),
    ("without_redis_the_command_ends_before_the_lease", redis_gone),
    ("a_redis_that_forgot_gets_the_lock_back", redis_forgot),
]
PROCESSES = [
    ("a_lock_freed_by_force_stops_the_command", forced),
    ("a_command_that_is_deaf_to_term_is_killed", deaf),
    ("what_the_command_started_is_stopped_with_it", subprocess_of_subprocess),
    ("kill_9_of_latchctl_ends_the_command_and_frees_the_lock", front_killed),
    ("kill_9_of_the_keeper_ends_the_command_and_frees_the_lock", keeper_killed),
    ("kill_9_of_both_ends_the_command", both_killed),
    ("a_stopped_latchctl_keeps_the_lock", front_stopped),
    ("a_stopped_keeper_does_not_keep_the_command", keeper_stopped),
    ("who_slept_beyond_the_lease_does_not_go_on", all_stopped),
    ("a_waiter_gets_in_when_the_holder_was_killed", holder_vanishes),
    ("the_permits_of_the_dead_come_back", permits_of_the_dead),
]


def main():
    cases = {"servers": SERVERS, "processes": PROCESSES}[sys.argv[3]]
    with CtlStand(sys.argv[1], sys.argv[2]) as stand:
        failed = tap([(name, functools.partial(case, stand)) for name, case in cases])
    sys.exit(1 if failed else 0)


main()
