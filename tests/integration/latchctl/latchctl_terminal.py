#!/usr/bin/env python3
"""latchctl at a terminal, under a shell with job control: latchctl_terminal.py LATCHD
LATCHCTL. Prints TAP.
"""
import functools
import sys

from latchctl_stand import CtlStand, Shell, expect, until
from stand import tap


# A shell's traps would not do: dash may miss a signal while it starts a command.
# Nor print(): the signal may come while it is in there, and it cannot be entered twice.
CATCHER = "import os,signal,time\\n" \
          "signal.signal(signal.SIGINT, lambda *a: os.write(1, b\"caught\\\\n\"))\\n" \
          "os.write(1, b\"in\" b\"-it\\\\n\")\\n" \
          "while True: time.sleep(300)"


def interrupt(stand):
    with Shell(stand) as shell:
        shell.type("$L run tty -- sed -u s/^/got-/\r")
        shell.type("word\r")
        shell.expect("got-word\r\n")
        shell.type("\x03")
        shell.expect("ready> ")
        expect(stand.is_free("tty"))
        shell.type("echo code=$?.\r")
        shell.expect("code=130.\r\n")


def interrupt_caught(stand):
    """Once, not twice; and latchctl waits for what the command makes of it."""
    with Shell(stand) as shell:
        shell.type(f"$L run tty -- {sys.executable} -c $'{CATCHER}'; echo code=$?.\r")
        shell.expect("in-it\r\n")
        shell.type("\x03")
        shell.expect("caught\r\n")
        expect(not stand.is_free("tty"))
        shell.type("\x1c")
        expect("caught" not in shell.expect("code=131."))


def suspend(stand):
    """Longer than the lease: the lock is kept meanwhile, and the command goes on."""
    with Shell(stand) as shell:
        shell.type("$L run tty --lease 3 -- sh -c 'echo in-it; read a; echo got $a'\r")
        shell.expect("in-it\r\n")
        shell.type("\x1a")
        shell.expect("Stopped")
        shell.expect("ready> ")
        stand.renewed("tty", 4)
        expect(not stand.is_free("tty"))
        shell.type("fg\r")
        shell.expect("in-it")
        shell.type("line\r")
        shell.expect("got line\r\n")
        shell.expect("ready> ")
        expect(stand.is_free("tty"))


def foreground(stand):
    """The command may read from the terminal, alone and in a pipeline."""
    with Shell(stand) as shell:
        shell.type("$L run tty -- sh -c 'read a; echo got $a' | cat\r")
        until(lambda: not stand.is_free("tty"), "it does not run")
        shell.type("word\r")
        shell.expect("got word\r\n")
        shell.expect("ready> ")


def hang_up(stand):
    with Shell(stand) as shell:
        shell.type("$L run tty -- sh -c 'echo in-it; sleep 300'\r")
        shell.expect("in-it\r\n")
    until(lambda: stand.is_free("tty"), "the command outlives its terminal")


def loop(stand):
    """Ctrl-C ends the script around it, as it does without latchctl."""
    with Shell(stand) as shell:
        shell.type("bash -c 'for i in 1 2 3; do $L run tty -- sed -u s/^/got-/; echo next; done'\r")
        shell.type("word\r")
        shell.expect("got-word\r\n")
        shell.type("\x03")
        expect("next" not in shell.expect("ready> "))


CASES = [
    ("ctrl_c_ends_the_command", interrupt),
    ("ctrl_c_reaches_the_command_once", interrupt_caught),
    ("ctrl_z_stops_the_command_and_keeps_the_lock", suspend),
    ("the_command_reads_from_the_terminal", foreground),
    ("a_terminal_that_is_gone_ends_the_command", hang_up),
    ("ctrl_c_ends_the_loop_around_it", loop),
]


def main():
    with CtlStand(sys.argv[1], sys.argv[2]) as stand:
        failed = tap([(name, functools.partial(case, stand)) for name, case in CASES])
    sys.exit(1 if failed else 0)


main()
