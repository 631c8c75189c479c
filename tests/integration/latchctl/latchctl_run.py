#!/usr/bin/env python3
"""`latchctl run` as it is meant to be used: latchctl_run.py LATCHD LATCHCTL. Prints TAP.

What goes wrong is in latchctl_faults.py.
"""
import functools
import itertools
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

from latchctl_stand import CtlStand, expect, keeper_of, now, result, until
from stand import tap


def environment(stand):
    got = stand.run("run", "env", "--owner", "ann", "--", "env")
    values = dict(line.split("=", 1) for line in got.stdout.splitlines() if "=" in line)
    expect(got.returncode == 0 and got.stderr == "", got)
    expect(values["LATCHD_NAME"] == "env" and int(values["LATCHD_TOKEN"]) > 0, values)
    expect(len(values["LATCHD_ID"]) == 36 and values["LATCHD_OWNER"] == "ann", values)
    expect(stand.is_free("env"))


def statuses(stand):
    for command, code in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143),
                          ("kill -KILL $$", 137)]:
        got = stand.run("run", "status", "--", "sh", "-c", command)
        expect(got.returncode == code and got.stderr == "", (command, got))
    got = stand.run("run", "status", "sh", "-c", "kill -INT $$")
    expect(got.returncode == -signal.SIGINT, got)
    for command, code in [("/nowhere/command", 127), ("/etc/passwd", 126), ("/etc", 126)]:
        got = stand.run("run", "status", command)
        expect(got.returncode == code and command in got.stderr, got)
    expect(stand.is_free("status"))


def mistakes(stand):
    for words in [(), ("walk",), ("run",), ("run", "x"), ("run", "", "true"),
                  ("run", "x", "--wait", "soon", "true"), ("run", "x", "--lease", "1ms", "true"),
                  ("run", "x", "--fair", "--read", "true"), ("run", "x", "--any", "true"),
                  ("run", "x", "--permits", "0", "true"), ("run", "x", "--of", "3", "true"),
                  ("run", "x", "--permits", "1001", "--of", "2000", "true"),
                  ("run", "x", "--permits", "1", "--of", "2147483648", "true"),
                  ("run", "x", "--permits", "2", "--of", "1", "true"),
                  ("run", "x", "--permits", "1", "--write", "true"),
                  ("run", "x", "--priority", "10", "true"), ("run", "x", "--queue", "-1", "true"),
                  ("run", "x", "--priority", "1", "--fair", "true"),
                  ("run", "x", "--permits", "1", "--owner", "ann", "true"),
                  ("run", "x", "--at-least", "10ms", "true"),
                  ("run", "x", "--at-least", "5m", "--wait", "1", "true"),
                  ("run", "x", "--at-least", "5m", "--fair", "true"),
                  ("run", "x", "--at-least", "5m", "--permits", "1", "true"),
                  ("run", "x", "--at-least", "5m", "--owner", "ann", "true"),
                  ("run", "x", "--at-least", "25h", "true"), ("top", "--at-least", "5m"),
                  ("-p", "0", "run", "x", "true"), ("-u", "gopher://x", "run", "x", "true"),
                  ("run", "x", "-E", "256", "true"), ("run", "redisson_x", "true"),
                  ("run", "x", "-c", "true", "true"), ("run", "x", "--and", "", "true"),
                  ("run", "x", "--and", "y", "--fair", "true"), ("run", "x", "--and", "x", "true"),
                  ("run", "x", *(w for i in range(16) for w in ("--and", str(i))), "true"),
                  ("run", "x", "--and", "y", "--queue", "0", "true"), ("why", "x", "--and", "y"), ("top", "-c", "true"),
                  ("lock", "x"), ("lock", "x", "--lease", "5", "true"),
                  ("lock", "x", "--lease", "5", "--owner", "ann"),
                  ("unlock", "x"), ("unlock", "x", "--token", "soon"),
                  ("-u", "redis://localhost,,other", "run", "x", "true"),
                  ("-u", "redis://localhost,other:0", "run", "x", "true"),
                  ("-u", "redis://" + ",".join(9 * ["localhost"]), "run", "x", "true")]:
        got = stand.run(*words)
        expect(got.returncode == 125 and got.stderr.startswith("latchctl: "), (words, got))
    for words in [("--help",), ("run", "--help"), ("--version",)]:
        got = stand.run(*words)
        expect(got.returncode == 0 and "latchctl" in got.stdout, got)


def unreachable(stand):
    path = stand.folder / "nobody"
    for words in [("--no-wait",), ("--wait", "0.3")]:
        got = stand.run("-s", str(path), "run", "x", *words, "true")
        expect(got.returncode == 125 and "No such file" in got.stderr, got)
    got = stand.run("-h", "127.0.0.1", "-p", "1", "run", "x", "--no-wait", "true")
    expect(got.returncode == 125 and "refused" in got.stderr, got)


def conflict(stand):
    holder = stand.start_beat("conflict")
    expect(stand.run("run", "conflict", "--no-wait", "true").returncode == 1)
    expect(stand.run("run", "conflict", "-w", "0.2", "true").returncode == 1)
    expect(stand.run("run", "conflict", "-n", "-E", "9", "true").returncode == 9)
    until(lambda: stand.waiters("conflict") == 0, "a place is kept")
    holder.terminate()
    expect(result(holder)[0] == 143)
    expect(stand.run("run", "conflict", "--no-wait", "true").returncode == 0)


def at_least(stand):
    """The command is over, and whoever comes next does not run for so long."""
    expect(stand.run("run", "nightly", "--at-least", "5m", "--lease", "2", "--", "true")
           .returncode == 0)
    for code, words in [(1, ()), (7, ("-E", "7"))]:
        got = stand.run("run", "nightly", "--at-least", "5m", *words, "--", "echo", "ran")
        expect(got.returncode == code and got.stdout == "" and got.stderr == "", got)
    expect(stand.run("run", "nightly", "-n", "true").returncode == 1)
    expect(stand.waiters("nightly") == 0, "a place is kept")
    expect(stand.run("force", "nightly", "--any").returncode == 0)
    expect(stand.run("run", "nightly", "--at-least", "100ms", "false").returncode == 1)
    expect(stand.run("run", "nightly", "--wait", "10", "true").returncode == 0)
    expect(stand.is_free("nightly"))


def at_least_twice(stand):
    """Both come at once: one runs."""
    running = [stand.start("run", "twice", "--at-least", "5m", "--", "echo", "ran")
               for _ in range(6)]
    got = sorted(result(ctl) for ctl in running)
    expect(got == [(0, "ran\n", "")] + [(1, "", "")] * 5, got)
    expect(stand.run("force", "twice", "--any").returncode == 0)


def exclusion(stand):
    inside = stand.folder / "inside"
    script = f"mkdir {inside} || exit 99; sleep 0.02; rmdir {inside}"
    for options in [(), ("--fair",), ("--write",)]:
        name = "exclude" + "".join(options)
        runs = [stand.start("run", name, *options, "sh", "-c", script) for _ in range(8)]
        for run in runs:
            code, _, err = result(run)
            expect(code == 0 and err == "", (options, code, err))


def readers(stand):
    one = stand.start_beat("readers", "--read")
    two = stand.start_beat("readers", "--read")
    expect(stand.run("run", "readers", "--write", "-n", "true").returncode == 1)
    for reader in (one, two):
        reader.terminate()
        expect(result(reader)[0] == 143)
    expect(stand.run("run", "readers", "--write", "-n", "true").returncode == 0)


def permits(stand):
    got = stand.run("run", "permits", "--permits", "1", "true")
    expect(got.returncode == 125 and "no such semaphore" in got.stderr, got)
    two = stand.start_beat("permits", "--permits", "2", "--of", "3")
    one = stand.start_beat("permits", "--permits", "1", "--lease", "3")
    expect(stand.run("run", "permits", "--permits", "1", "-n", "true").returncode == 1)
    got = stand.run("run", "permits", "--permits", "4", "-n", "true")
    expect(got.returncode == 125 and "fewer permits" in got.stderr, got)
    time.sleep(4)  # for longer than its lease
    one.beat.goes_on()
    waiter = stand.start("run", "permits", "--permits", "1", "true")
    until(lambda: stand.waiters("permits") == 1, "nobody waits")
    two.terminate()
    expect(result(two) == (143, "", ""))
    expect(result(waiter) == (0, "", ""))
    one.terminate()
    expect(result(one) == (143, "", ""))
    expect(stand.redis_cli("GET", "permits") == "3")


def permits_lost(stand):
    ctl = stand.start_beat("revoked", "--permits", "2", "--of", "2")
    stand.ask("FORCEUNLOCK", "revoked", "ANY")
    expect(result(ctl)[0] == 124)
    ctl.beat.ends()
    expect(stand.redis_cli("GET", "revoked") == "2")


def at_most_three(stand):
    inside = stand.folder / "inside"
    inside.mkdir(exist_ok=True)
    script = f"touch {inside}/$$; ls {inside} | wc -l; sleep 0.05; rm {inside}/$$"
    runs = [stand.start("run", "three", "--permits", "1", "--of", "3", "sh", "-c", script)
            for _ in range(9)]
    for run in runs:
        code, out, err = result(run)
        expect(code == 0 and err == "" and 1 <= int(out) <= 3, (code, out, err))


def owners(stand):
    holder = stand.start_beat("owned", "--owner", "ann")
    expect(stand.run("run", "owned", "-n", "true").returncode == 1)
    expect(stand.run("run", "owned", "-n", "--owner", "ann", "true").returncode == 0)
    expect(stand.run("run", "owned", "-n", "true").returncode == 1)
    holder.terminate()
    result(holder)
    expect(stand.is_free("owned"))


def trace(stand):
    """An empty value is none: $TRACEPARENT where nobody traces."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    stand.ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
    for words, sent in [(("run", "job", "--trace", parent, "--", "true"), True),
                        (("run", "job", "--and", "job2", "--trace", parent, "--", "true"), True),
                        (("lock", "traced", "--lease", "1", "--trace", parent), True),
                        (("run", "job", "--trace", "", "--", "true"), False),
                        (("run", "job", "--trace", parent, "--trace=", "--", "true"), False)]:
        stand.ask("SLOWLOG", "RESET")
        got = stand.run(*words)
        expect(got.returncode == 0 and got.stderr == "", (words, got))
        log = stand.ask("SLOWLOG", "GET", "-1")
        expect("LOCK\r\n" in log and (f"TRACE\r\n$55\r\n{parent}\r\n" in log) == sent, (words, log))
    stand.ask("CONFIG", "SET", "slowlog-log-slower-than", "10000")
    for words in [("run", "job", "--trace", parent[1:], "true"), ("run", "job", "--trace", 129 * "x", "true"),
                  ("unlock", "job", "--token", "1", "--trace", ""), ("why", "job", "--trace", parent)]:
        got = stand.run(*words)
        expect(got.returncode == 125 and "--trace" in got.stderr, (words, got))
    expect("--trace PARENT" in stand.run("run", "--help").stdout)


def pipes(stand):
    got = stand.run("run", "pipes", "cat", text="through\n")
    expect(got.stdout == "through\n", got)
    # what the command leaves in the background is not waited for
    got = stand.run("run", "pipes", "sh", "-c", "sleep 30 >&- 2>&- <&- & echo $!")
    expect(got.returncode == 0, got)
    os.kill(int(got.stdout), signal.SIGKILL)


def signals(stand):
    script = "for s in HUP USR1 USR2 INT QUIT; do trap \"echo $s\" $s; done; " \
             "trap 'echo TERM; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    ctl = stand.start("run", "signals", "--", "sh", "-c", script)
    expect(ctl.stdout.readline() == "ready\n")
    for name in ("HUP", "USR1", "USR2", "INT", "QUIT", "TERM"):
        ctl.send_signal(getattr(signal, "SIG" + name))
        expect(ctl.stdout.readline() == name + "\n", name)
    expect(result(ctl)[0] == 3)


def quitting_waiter(stand):
    holder = stand.start_beat("quit")
    for sent in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        waiter = stand.start("run", "quit", "--fair", "true")
        until(lambda: stand.waiters("quit") == 1, "nobody waits")
        waiter.send_signal(sent)
        expect(result(waiter)[0] == -sent, sent)
        expect(stand.waiters("quit") == 0, "the place is kept")
    holder.terminate()
    result(holder)


def renewal(stand):
    ctl = stand.start_beat("renewal", "--lease", "3")
    stand.renewed("renewal", 2)
    ctl.beat.goes_on()
    expect(not stand.is_free("renewal"))
    ctl.terminate()
    expect(result(ctl) == (143, "", ""))
    expect(stand.is_free("renewal"))


def addresses(stand):
    port = str(stand.port)
    url = stand.environment.pop("LATCHD_URL")
    for words in [("-p", port), ("-h", "localhost", "-p", port), ("-u", url),
                  ("--host=127.0.0.1", "--port=" + port), ("-u", url + "/0")]:
        got = stand.run(*words, "run", "address", "-n", "true")
        expect(got.returncode == 0, (words, got))
        got = stand.run("run", *words, "address", "-n", "true")
        expect(got.returncode == 0, (words, got))
    stand.environment["LATCHD_URL"] = url


def waiting_in_order(stand):
    holder = stand.start_beat("order")
    waiters = []
    for number in range(5):
        waiters.append(stand.start("run", "order", "--fair", "sh", "-c",
                                   f"echo {number} >> {stand.folder}/order"))
        until(lambda: stand.waiters("order") == number + 1, "nobody waits")
    expect(pathlib.Path(f"/proc/{keeper_of(holder)}").exists())
    holder.terminate()
    for ctl in [holder, *waiters]:
        result(ctl)
    expect((stand.folder / "order").read_text() == "0\n1\n2\n3\n4\n")


def waiting_by_priority(stand):
    holder = stand.start_beat("urgent")
    waiters = []
    for number, priority in enumerate(["0", "9", "5"]):
        waiters.append(stand.start("run", "urgent", "--priority", priority, "--queue", "3", "sh",
                                   "-c", f"echo {number} >> {stand.folder}/urgent"))
        until(lambda: stand.waiters("urgent") == number + 1, "nobody waits")
    why = stand.run("why", "urgent").stdout
    expect("1. " in why and why.index("priority 9") < why.index("priority 5"), why)
    got = stand.run("run", "urgent", "--queue", "3", "-E", "9", "true")
    expect(got.returncode == 9 and "QUEUE" in got.stderr, got)
    holder.terminate()
    for ctl in [holder, *waiters]:
        result(ctl)
    expect((stand.folder / "urgent").read_text() == "1\n2\n0\n")
    expect(stand.run("run", "urgent", "--queue", "0", "true").returncode == 0)


def shell_text(stand):
    """As flock(1) and su(1) take it."""
    for words in [("run", "text", "-c", "echo $((1 + 2)); exit 7"),
                  ("run", "--command", "echo $((1 + 2)); exit 7", "text")]:
        got = stand.run(*words)
        expect((got.returncode, got.stdout) == (7, "3\n"), got)


def what_is_no_command(stand):
    """A second name is taken for the command: the message says so."""
    got = stand.run("run", "a", "b-is-no-command", "--", "true")
    expect(got.returncode == 127 and "--and NAME" in got.stderr, got)


def several_names(stand):
    """All or none; renewed and freed together, and lost as soon as one is."""
    got = stand.run("run", "n1", "--and", "n 2", "--and", "n3", "-c", "echo $LATCHD_TOKEN")
    expect(got.returncode == 0 and len([int(t) for t in got.stdout.split()]) == 3, got)
    names = ("n1", "n 2", "n3")
    expect(all(stand.is_free(name) for name in names))
    more = ("--and", "n 2", "--and", "n3", "--lease", "2")
    holder = stand.start_beat("n1", *more)
    for name in names:
        expect(stand.run("run", name, "-n", "true").returncode == 1)
    expect(stand.run("run", "free", "--and", "n3", "-n", "true").returncode == 1)
    expect(stand.is_free("free"))
    waiter = stand.start("run", "free", "--and", "n3", "true")
    until(lambda: stand.waiters("n3") == 1, "nobody waits")
    stand.kill_daemon()
    began = now()
    stand.start_daemon()
    until(lambda: holder.beat.last() > began + 3, "the command does not outlive the lease")
    expect(not any(stand.is_free(name) for name in names))
    stand.ask("FORCEUNLOCK", "n 2", "ANY")
    code, _, said = result(holder)
    expect(code == 124 and "the lock is lost" in said, (code, said))
    expect(result(waiter)[0] == 0)
    expect(all(stand.is_free(name) for name in (*names, "free")))
    holder = stand.start_beat("n1", *more)
    waiter = stand.start("run", "n3", "--and", "free", "true")
    until(lambda: stand.waiters("n3") == 1, "nobody waits")
    waiter.terminate()
    result(waiter)
    until(lambda: stand.waiters("n3") == 0, "it still waits")
    holder.terminate()
    expect(result(holder)[0] == 143)
    expect(all(stand.is_free(name) for name in (*names, "free")))


def waits_are_told(stand):
    holder = stand.start_beat("told")
    quiet = stand.start("run", "told", "true")
    waiter = stand.start("run", "told", "--verbose", "true")
    said = waiter.stderr.readline()
    expect(said == "latchctl: waiting for told; latchctl why tells who has it\n", said)
    got = stand.run("run", "told", "-n", "--verbose", "true")
    expect(got.returncode == 1 and "told is taken" in got.stderr, got)
    got = stand.run("run", "told", "-n", "true")
    expect((got.returncode, got.stderr) == (1, ""), got)
    holder.terminate()
    expect(result(waiter)[0] == 0)
    expect(result(quiet) == (0, "", ""))
    result(holder)


def a_part_of_a_script(stand):
    script = ('token=$("$0" lock part --lease 1m) && "$0" run part -n true; echo $?; '
              '"$0" unlock part --token "$token"; echo $?; '
              '"$0" unlock part --token "$token"; echo $?')
    got = subprocess.run(["sh", "-c", script, stand.latchctl], env=stand.environment, text=True,
                         capture_output=True, timeout=60, check=False)
    expect((got.stdout, got.stderr) == ("1\n0\n0\n", ""), got)
    expect(stand.is_free("part"))
    for kind in ("--read", "--write", "--fair"):
        token = stand.run("lock", "part" + kind, kind, "--lease", "1m").stdout.strip()
        expect(stand.run("unlock", "part" + kind, "--token", token).returncode == 0, kind)
        expect(stand.is_free("part" + kind), kind)
    holder = stand.start_beat("part")
    got = stand.run("lock", "part", "--lease", "1m", "--wait", "0.1")
    expect((got.returncode, got.stdout) == (1, ""), got)
    holder.terminate()
    result(holder)
    token = stand.run("lock", "part", "--lease", "1").stdout.strip()
    until(lambda: stand.is_free("part"), "the lease does not end")
    expect(stand.run("run", "part", "true").returncode == 0)
    got = stand.run("unlock", "part", "--token", token)
    expect(got.returncode == 124 and "not held any more" in got.stderr, got)


def several_addresses(stand):
    """The first ones do not answer."""
    url = f"redis://127.0.0.1:1,127.0.0.1:2,127.0.0.1:{stand.port}"
    for words in [("ls",), ("run", "far", "--verbose", "true"), ("leader", "far"),
                  ("lock", "far", "--lease", "5")]:
        got = stand.run("-u", url, *words)
        expect(got.returncode == (1 if words[0] == "leader" else 0), got)
    got = stand.run("-u", "redis://127.0.0.1:1,127.0.0.1:2", "ls")
    expect(got.returncode == 125 and "127.0.0.1:1, 127.0.0.1:2" in got.stderr, got)


def answer_in_turn(client, replies):
    """Plays a latchd to one client: `replies` has those to each command, in order; else +OK."""
    with client, client.makefile("rb") as asked:
        while line := asked.readline():
            words = [asked.read(int(asked.readline()[1:]) + 2)[:-2].decode() for _ in range(int(line[1:]))]
            client.sendall(next(replies[words[0]], b"+OK\r\n") if words[0] in replies else b"+OK\r\n")


def a_token_that_was_lost(stand):
    """The grant is not confirmed, and the lock is another's when it is asked for again."""
    replies = {"LOCK": itertools.chain([b":7\r\n"], itertools.repeat(b"$-1\r\n")), "RENEW": iter([b"-BACKEND it is gone\r\n"])}

    def play(listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            answer_in_turn(client, replies)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=play, args=(listener,), daemon=True).start()
        got = stand.run("-u", f"redis://127.0.0.1:{listener.getsockname()[1]}", "lock", "part", "--lease", "5",
                        "--wait", "1")
        listener.shutdown(socket.SHUT_RDWR)
    expect((got.returncode, got.stdout) == (1, "") and next(replies["RENEW"], None) is None, got)


def next_address(stand):
    """The latchd through which the lock was taken dies: the other one renews it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        # pylint: disable-next=consider-using-with
        other = subprocess.Popen(
            ["sh", "-c", f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&{fd}', stand.binary,
             "--redis", f"unix://{stand.redis_socket}"], pass_fds=[fd], stderr=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port},127.0.0.1:{stand.port}"
    holder = stand.start_beat("next", "-u", url, "--lease", "2")
    other.kill()
    other.wait()
    killed = now()
    until(lambda: holder.beat.last() > killed + 3, "the command does not outlive the lease")
    expect(not stand.is_free("next"))
    holder.terminate()
    expect(result(holder)[0] == 143)
    expect(stand.is_free("next"))


def odd_parents(stand):
    """Who starts it may have closed its files, and ignore the death of children."""
    for closed in ("<&-", "<&- >&-", "<&- >&- 2>&-"):
        script = f'"$0" run odd sh -c "exit 7" {closed}'
        got = subprocess.run(["sh", "-c", script, stand.latchctl], env=stand.environment,
                             check=False)
        expect(got.returncode == 7, (closed, got))
    got = subprocess.run([stand.latchctl, "run", "odd", "sh", "-c", "exit 7"], check=False,
                         env=stand.environment,
                         preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    expect(got.returncode == 7, got)


CASES = [
    ("the_command_finds_the_lock_in_its_environment", environment),
    ("the_commands_status_is_passed_on", statuses),
    ("mistakes_are_told_and_end_with_125", mistakes),
    ("a_latchd_that_is_not_there_is_no_conflict", unreachable),
    ("who_does_not_get_it_ends_with_1_or_as_told", conflict),
    ("a_job_runs_at_most_once_in_a_time", at_least),
    ("of_many_that_come_at_once_one_runs_in_that_time", at_least_twice),
    ("of_many_one_runs_at_a_time", exclusion),
    ("readers_run_together_and_keep_writers_out", readers),
    ("permits_are_shared_out_renewed_and_given_back", permits),
    ("a_command_whose_permits_are_lost_is_stopped", permits_lost),
    ("no_more_run_than_the_semaphore_has_permits", at_most_three),
    ("the_same_owner_gets_in_again", owners),
    ("the_lock_belongs_to_the_trace_that_is_given", trace),
    ("the_command_has_the_pipes_to_itself", pipes),
    ("odd_parents_are_no_trouble", odd_parents),
    ("a_text_is_run_by_the_shell", shell_text),
    ("a_second_name_is_no_command", what_is_no_command),
    ("several_names_are_taken_renewed_and_freed_together", several_names),
    ("a_wait_is_told_and_that_it_was_in_vain", waits_are_told),
    ("a_part_of_a_script_has_the_lock", a_part_of_a_script),
    ("of_several_addresses_the_one_that_answers_is_taken", several_addresses),
    ("a_token_that_was_lost_is_not_printed", a_token_that_was_lost),
    ("the_next_address_keeps_the_lock_when_the_first_one_dies", next_address),
    ("signals_reach_the_command", signals),
    ("a_waiter_that_is_told_to_end_leaves_the_queue", quitting_waiter),
    ("the_lock_is_renewed_while_the_command_runs", renewal),
    ("latchd_is_found_by_options_and_urls", addresses),
    ("fair_ones_take_their_turn", waiting_in_order),
    ("urgent_ones_are_first_and_a_full_queue_is_a_conflict", waiting_by_priority),
]


def main():
    with CtlStand(sys.argv[1], sys.argv[2]) as stand:
        failed = tap([(name, functools.partial(case, stand)) for name, case in CASES])
    sys.exit(1 if failed else 0)


main()
