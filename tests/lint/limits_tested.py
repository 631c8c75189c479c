#!/usr/bin/env python3
"""Limits: limits_tested.py ROOT. Each limit of the configuration, of the protocol's header, and of
what lock libraries send has a test at its edge, where what is asked for is done, and one beyond it.
A text that refuses something because of the configuration names the key.
"""
import pathlib
import re
import sys

import test_names

INTEGRATION = "tests/integration/cmd/"
UNIT = "tests/unit/"
VALUES = INTEGRATION + "it_limits.c", "values_up_to_a_limit_are_taken_and_no_more"
ARGS = UNIT + "cmd/test_cmd_lock_args.c", "as_many_names_as_the_limit_says"
BAD = (INTEGRATION + "it_badinput.c",
       "each_bad_command_is_an_error_and_the_connection_goes_on")
SCRIPT = UNIT + "lockscript/test_lock_script_limits.c"
BOUND = UNIT + "lockscript/test_lock_script.c", "keys_and_values_are_bounded"
CACHE = UNIT + "lockscript/test_lock_script_cache.c"

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
    "LATCHD_WAIT_MAX_MS": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_LEASE_MIN_MS": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_DATA_MAX": [(INTEGRATION + "it_limits.c", "data_has_a_limit_and_may_be_any_bytes")] * 2,
    "LATCHD_LATCH_MAX": [("tests/scenarios/wire/latch.scn",
                          "what_is_out_of_bounds_is_an_error_and_costs_nothing_else")] * 2,
    "LATCHD_COUNTED_MAX": [("tests/scenarios/script/scripts_latch.scn",
                            "a_latch_remembers_so_many_ids_and_no_more")] * 2,
    "LATCHD_MLOCK_MAX": [ARGS] * 2,
    "LOCK_CALL_KEYS_MAX": [BOUND] * 2,
    "LOCK_CALL_VALUE_MAX": [BOUND] * 2,
    "LOCK_CONDITIONS_MAX": [(SCRIPT, "so_many_texts_choose_what_a_script_is_and_no_more")] * 2,
    "LOCK_SCRIPT_TEXT_MAX": [(SCRIPT, "a_text_of_so_many_bytes_is_read_and_no_longer_one")] * 2,
    "LOCK_SCRIPTS_MAX": [(CACHE, "the_script_that_was_not_used_for_longest_makes_room")] * 2,
    "LOCK_SCRIPT_FAILURES_MAX": [(CACHE, "failures_are_bounded_and_displace_no_script")] * 2,
    "LOCK_SCRIPT_USERS_MAX": [(CACHE, "so_many_users_have_a_rate_of_their_own")] * 2,
    "LUA_NODES_MAX": [(SCRIPT, "so_many_nodes_are_read_and_no_more")] * 2,
    "LUA_LOCALS_MAX": [(SCRIPT, "so_many_local_variables_are_read_and_no_more")] * 2,
    "LUA_DEPTH_MAX": [(SCRIPT, "so_many_levels_are_read_and_no_more")] * 2,
    "LOCK_REPLY_ITEMS_MAX": [(SCRIPT, "a_list_has_so_many_values_and_no_more")] * 2,
    "LUA_INDEX_MAX": [(SCRIPT, "an_index_is_at_most_so_large")] * 2,
    "LUA_CALL_ARGS_MAX": [(SCRIPT, "a_function_has_at_most_so_many_arguments")] * 2,
    "LUA_DIGITS_MAX": [(SCRIPT, "a_number_has_at_most_so_many_digits")] * 2,
    "SCRIPT_KEYS_MAX": [(SCRIPT, "so_many_keys_are_named_one_by_one_and_no_more")] * 2,
    "SCRIPT_CHOICES_MAX": [(SCRIPT, "a_run_makes_so_many_choices_and_no_more")] * 2,
    "SCRIPT_RUNS_MAX": [(SCRIPT, "a_script_has_so_many_runs_and_no_more")] * 2,
    "SCRIPT_STEPS_MAX": [(SCRIPT, "all_runs_do_so_much_and_no_more")] * 2,
    "SCRIPT_CHECKS_MAX": [(SCRIPT, "a_script_is_compared_in_so_many_states_and_no_more")] * 2,
    "POLLERS_MAX": [(UNIT + "cmd/test_cmd_pollers.c",
                     "the_one_that_came_longest_ago_is_forgotten_first")] * 2,
    "LATCHD_VALUE_MAX": [(UNIT + "cmd/test_cmd_library.c",
                          "each_command_asks_the_engine_and_replies_as_redis_does"),
                         (UNIT + "cmd/test_cmd_library.c",
                          "what_is_no_lock_never_reaches_the_engine")],
    "WATCH_KEYS_MAX": [(UNIT + "cmd/test_cmd_watch.c",
                        "as_many_keys_are_watched_as_the_limit_says")] * 2,
    "LATCHD_HEARTBEAT_MIN_MS": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                                (UNIT + "cmd/test_cmd_lock_args.c",
                                 "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_HEARTBEAT_MAX_MS": [(UNIT + "cmd/test_cmd_lock_args.c",
                                 "a_heartbeat_is_a_lease_or_a_minute_at_most")] * 2,
    "LATCHD_QUEUE_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                         (UNIT + "cmd/test_cmd_lock_args.c",
                          "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_PRIORITY_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                            (UNIT + "cmd/test_cmd_lock_args.c",
                             "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_COUNT_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                         (UNIT + "cmd/test_cmd_lock_args.c",
                          "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_TOP_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                       (UNIT + "cmd/test_cmd_lock_args.c",
                        "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_PATTERN_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                           (UNIT + "cmd/test_cmd_lock_args.c",
                            "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_TRACE_MIN": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                         (UNIT + "cmd/test_cmd_lock_args.c",
                          "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_TRACE_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"),
                         (UNIT + "cmd/test_cmd_lock_args.c",
                          "a_bad_combination_is_refused_with_its_reason")],
    "LATCHD_PERMITS_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_LIMIT_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
    "LATCHD_TOKEN_MAX": [(UNIT + "cmd/test_cmd_lock_args.c", "what_is_listed_is_taken"), BAD],
}
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
KEY = re.compile(r'^KEY\(\w+, "(max[a-z-]+|(?:query|output)-buffer-limit|(?:auth-)?timeout)",', re.M)
CONSTANT = re.compile(r"^#define (LATCHD_\w+_(?:MAX|MIN)(?:_MS)?) ", re.M)
MEMBER = re.compile(r"\b([A-Z]\w*_MAX) =")
LIBRARY = "src/lockscript/*.h", "src/cmd/library_*.h"


def is_there(root, path, name):
    file = root / path
    return file.is_file() and name in test_names.names_in(file)


def told(root):
    """The texts of errors and log lines."""
    files = [file for file in (root / "src").rglob("*.[ch]") if "config" not in file.name]
    return "\n".join(text for file in files for text in TEXT.findall(file.read_text()))


def main():
    root = pathlib.Path(sys.argv[1])
    texts = told(root)
    limits = KEY.findall((root / "src/daemon/config.def").read_text())
    bad = [f"{key}: no error of latchd names this key" for key in limits
           if not re.search(rf"(?<![\w-]){key}(?![\w-])", texts)]
    limits += CONSTANT.findall((root / "include/latchd/protocol.h").read_text())
    for headers in LIBRARY:
        for header in sorted(root.glob(headers)):
            limits += MEMBER.findall(header.read_text())
    bad += [f"{limit}: which tests are at its edge and beyond it?"
           for limit in limits if limit not in LIMITS]
    bad += [f"{limit}: there is no such limit" for limit in LIMITS if limit not in limits]
    bad += [f"{limit}: {path} has no test {name}" for limit, tests in LIMITS.items()
            for path, name in tests if not is_there(root, path, name)]
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
