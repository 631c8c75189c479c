#!/usr/bin/env python3
"""Limits: limits_tested.py ROOT. Each limit of the configuration, and of the protocol's header,
has a test at its edge, where what is asked for is done, and one beyond it.
"""
import pathlib
import re
import sys

INTEGRATION = "tests/integration/cmd/"
UNIT = "tests/unit/"
VALUES = INTEGRATION + "it_limits.c", "values_up_to_a_limit_are_taken_and_no_more"
ARGS = UNIT + "cmd/test_cmd_lock_args.c", "as_many_names_as_the_limit_says"
BAD = (INTEGRATION + "it_badinput.c",
       "each_bad_command_is_an_error_and_the_connection_goes_on")

# Limit -> the test at its edge, and the one beyond it.
LIMITS = {
    "maxclients": [("tests/limits/cases_floods.py",
                    "connections_beyond_the_limit_are_told_and_closed")] * 2,
    "max-waiters": [(INTEGRATION + "it_limits.c", "the_waiter_too_many_is_refused")] * 2,
    "max-holds": [(INTEGRATION + "it_limits.c", "the_hold_too_many_is_refused")] * 2,
    "max-name-length": [VALUES] * 2,
    "max-lease": [VALUES] * 2,
    "max-wait": [VALUES] * 2,
    "max-keep": [VALUES] * 2,
    "query-buffer-limit": [(UNIT + "net/test_net_limits.c",
                            "too_much_behind_a_suspended_request_closes"),
                           ("tests/limits/cases_floods.py", "what_never_ends_is_cut")],
    "output-buffer-limit": [(UNIT + "net/test_net_limits.c",
                             "a_client_that_does_not_read_is_dropped"),
                            ("tests/limits/cases_floods.py",
                             "replies_that_nobody_reads_end_the_connection")],
    "maxmemory-clients": [(UNIT + "net/test_net_memory.c", "who_does_not_read_most_goes_first"),
                          ("tests/limits/cases_floods.py",
                           "what_all_leave_unread_is_bounded")],
    "timeout": [(UNIT + "net/test_net_limits.c", "idle_conns_are_closed_and_busy_ones_are_not"),
                (INTEGRATION + "it_limits.c",
                 "silent_clients_leave_and_those_with_a_hold_stay")],
    "auth-timeout": [(UNIT + "net/test_net_limits.c", "who_does_not_log_in_is_shown_out"),
                     (INTEGRATION + "it_limits.c",
                      "strangers_leave_in_time_and_keep_nobody_out")],
    "LATCHD_NAME_MAX": [(INTEGRATION + "it_badinput.c",
                         "names_are_1_to_512_bytes_of_anything")] * 2,
    "LATCHD_OWNER_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_ID_MIN": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_ID_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_LEASE_MIN_MS": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_MLOCK_MAX": [ARGS] * 2,
    "LATCHD_TOKEN_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
}
KEY = re.compile(r'\{ "(max[a-z-]+|(?:query|output)-buffer-limit|(?:auth-)?timeout)",')
CONSTANT = re.compile(r"^#define (LATCHD_\w+_(?:MAX|MIN)(?:_MS)?) ", re.M)


def is_there(root, path, name):
    file = root / path
    form = rf"START_TEST\({name}[,)]" if path.endswith(".c") else rf"^def {name}\("
    return file.is_file() and re.search(form, file.read_text(), re.M) is not None


def main():
    root = pathlib.Path(sys.argv[1])
    limits = KEY.findall((root / "src/daemon/config/config_table.c").read_text())
    limits += CONSTANT.findall((root / "include/latchd/protocol.h").read_text())
    bad = [f"{limit}: which tests are at its edge and beyond it?"
           for limit in limits if limit not in LIMITS]
    bad += [f"{limit}: there is no such limit" for limit in LIMITS if limit not in limits]
    bad += [f"{limit}: {path} has no test {name}" for limit, tests in LIMITS.items()
            for path, name in tests if not is_there(root, path, name)]
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
