#!/usr/bin/env python3
"""The checks of a torture, on histories written by hand: each kind of violation is found
where it is planted, and nothing where none is. Overlaps, tokens and deadlines have more
cases in failover/checker.py.

Times are in ms here. Prints TAP.
"""
import contextlib
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from checks import Checker  # noqa: E402
from history import MS, Ask, Closed, Told  # noqa: E402
from leftovers import SLACK_MS, leftovers  # noqa: E402
from record import Fault, Left, Record, Settings, Write  # noqa: E402
from resp import Error  # noqa: E402
from stage import FAIR_WAIT_MS  # noqa: E402
from stand import tap  # noqa: E402

END = 100_000
LEASE, TIMEOUT = 3000, 1000
GONE = Error("NOTHELD it is not held")
BACKEND = Error("BACKEND Redis cannot be reached")


class Story(Record):
    """A record that is written by hand."""

    def __init__(self, topology="single"):
        super().__init__(Settings(topology, 1, LEASE, TIMEOUT, LEASE))
        self.ended = END * MS

    def ask(self, verb, who, sent, answered, value, daemon="a", name="n", **more):
        self.asks.append(Ask(who, daemon, verb, name, sent * MS,
                             answered=None if answered is None else answered * MS,
                             value=value, **more))
        return self

    def lock(self, who, sent, answered, token, **more):
        return self.ask("LOCK", who, sent, answered, token, **more)

    def unlock(self, who, sent, value=0, **more):
        return self.ask("UNLOCK", who, sent, sent + 1, value, **more)

    def renew(self, who, sent, value=1000, **more):
        return self.ask("RENEW", who, sent, sent + 1, value, **more)

    def tell(self, who, at, daemon="a", name="n"):
        self.told.append(Told(who, daemon, name, at * MS))
        return self

    def close(self, who, at, daemon="a"):
        self.closed.append(Closed(who, daemon, at * MS))
        return self

    def fault(self, kind, start, end, target="a"):
        self.faults.append(Fault(kind, target, start * MS, end * MS))
        return self

    def write(self, who, at, token, seen, found, fence=0, **more):
        more = {"vouched": True, "before": "z@b", **more}
        self.writes.append(Write(who, "a", "n", token, at * MS, seen, found, fence, **more))
        return self

    def leave(self, waited, limit):
        self.left.append(Left("n", "it is held", waited, limit))
        return self


def found(story):
    """Kinds of the violations."""
    return sorted({kind for kind, _ in Checker(story).run().violations})


def allowed(story):
    return sorted(Checker(story).run().allowed)


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got}, not {wanted}")


def two_in_turn():
    return Story().lock("c", 0, 5, 1).unlock("c", 50).lock("d", 6, 51, 2).unlock("d", 60)


def a_good_history_is_good():
    story = two_in_turn().write("c", 40, 1, 0, 0).write("d", 59, 2, 1, 1, 1)
    story.lock("e", 60, 65, 3, request="r").renew("e", 80).unlock("e", 90).leave(10, 100)
    same((found(story), allowed(story)), ([], []))


def led(data="d"):
    return (Story().lock("c", 0, 5, 7_000_000, data="d").unlock("c", 50)
            .ask("LEADER", "f", 6, 8, [7_000_000, "o", data], after=0, wait_ms=1000))


def what_followers_may_not_be_told_is_found():
    def after(story, sent, answered, value, last):
        return story.ask("LEADER", "f", sent, answered, value, after=last, wait_ms=20)
    same(found(led()), [])
    same(found(led("e")), ["leader"])
    same(found(led("")), ["leader"])
    same((found(led("").fault("evict", 1, 2)), allowed(led("").fault("evict", 1, 2))),
         ([], ["leader: evict"]))
    same(found(after(led(), 60, 61, [7_000_000, "o", "d"], 0)), ["leader"])  # given back
    for start, wrong in (40, []), (55, ["leader"]):  # the UNLOCK had no acknowledgement, or had one
        story = after(led(), 60, 61, [7_000_000, "o", "d"], 0)
        same(found(story.fault("partition with the acknowledging master", start, 58)), wrong)
    same(found(after(led(), 9, 10, [7_000_000, "o", "d"], 7_000_000)), [])
    same(found(led().ask("LEADER", "f", 9, 10, [7_000_000, "o", "d"], after=7_000_000,
                         wait_ms=1000)), ["leader"])  # at once, and no other
    same(found(after(led(), 9, 10, [7_000_000, "o", "d"], 8_000_000)), ["leader"])  # older
    same(found(after(led(), 9, 10, [0, "", ""], 7_000_000)), ["leader"])  # somebody leads
    same(found(after(led(), 49, 51, [0, "", ""], 7_000_000)), [])


def two_holders_are_found():
    story = Story().lock("c", 0, 5, 1).lock("d", 6, 40, 2).unlock("c", 50).unlock("d", 60)
    same(found(story), ["two holders"])


def two_holders_after_data_was_lost_are_allowed_for_a_lease():
    def story(start):
        return (Story().lock("c", 0, 5, 1).lock("d", 6, 10_000, 2).unlock("c", 10_050)
                .unlock("d", 10_060).fault("flushall", start, start + 1))
    same((found(story(9000)), allowed(story(9000))), ([], ["two holders: flushall"]))
    same(found(story(4000)), ["two holders"])
    same(found(story(10_001)), ["two holders"])


def a_daemon_that_stood_still_vouches_for_what_is_left_of_a_lease():
    def story(second, daemon="a"):
        return (Story().lock("c", 0, 5, 1).fault("stop latchd", 1000, 9000, daemon)
                .lock("d", 6, second, 2, daemon="b").tell("c", 9100).unlock("d", 9200))
    same((found(story(4000)), allowed(story(4000))),
         ([], ["two holders: a daemon stood still for longer than a lease"]))
    same(found(story(1900)), ["two holders"])
    same(found(story(4000, "z")), ["two holders"])


def who_was_cut_off_with_the_master_is_allowed_and_not_with_acknowledgements():
    def story(kind):
        return (Story().lock("c", 0, 5, 1).fault(kind, 1000, 9000)
                .lock("d", 6, 4000, 2, daemon="b").tell("c", 9100).unlock("d", 9200))
    same(found(story("partition with the master")), [])
    same(found(story("partition with the acknowledging master")), ["two holders"])


def tokens_that_go_back_or_come_twice_are_found():
    story = Story().lock("c", 0, 5, 10).unlock("c", 6).lock("d", 7, 8, 9).unlock("d", 9)
    same(found(story), ["token"])
    story = Story().lock("c", 0, 5, 10).unlock("c", 6).lock("d", 7, 8, 10).unlock("d", 9)
    same(found(story), ["token"])


def tokens_may_go_back_only_if_data_is_lost_and_the_clock_set_back():
    def story():
        return Story().lock("c", 0, 5, 10).unlock("c", 6).lock("d", 20_000, 20_001, 9)
    same(found(story().fault("flushall", 7, 8)), ["token"])
    same(found(story().fault("clock", 7, 8)), ["token"])
    same(found(story().fault("clock", 7, 8).fault("flushall", 9, 10)), [])
    same(found(story().fault("clock", 7, 8).fault("flushall", 20_002, 20_003)), ["token"])
    later = story().fault("flushall", 9, 10)
    later.settings.clock_was_set = True
    same(found(later), [])


def a_lost_update_is_found():
    same(found(two_in_turn().write("d", 59, 2, 0, 1, 1)), ["lost update"])


def a_reader_that_sees_a_change_is_found():
    same(found(two_in_turn().write("d", 59, 2, 0, 1, 9, kind="read")), ["lost update"])


def a_write_behind_a_newer_one_is_found():
    same(found(two_in_turn().write("c", 59, 1, 1, 1, 2)), ["fenced write"])


def a_late_write_is_no_fault_of_latchd():
    story = two_in_turn().write("c", 59, 1, 0, 1, 2, vouched=False)
    same(found(story), [])
    same(Checker(story).run().counts["late writes fenced off"], 1)


def a_write_just_before_the_word_of_doubt_is_none_and_long_before_is_one():
    for told, bad in ((1100, []), (1300, ["fenced write"])):
        story = Story().lock("c", 0, 5, 1).write("c", 1000, 1, 0, 0, 2).tell("c", told)
        same(found(story), bad)
    story = Story().lock("c", 0, 5, 1).write("c", 1000, 1, 0, 0, 2).close("c", 1100)
    same(found(story), [])


def an_update_that_is_lost_with_the_data_is_allowed():
    story = two_in_turn().write("d", 59, 2, 0, 1, 1).fault("flushall", 40, 41)
    same((found(story), allowed(story)), ([], ["lost update: flushall"]))


def fair_ones_go_in_order():
    def story(second):
        return (Story().lock("c", 0, 5000, 1, kind="fair").unlock("c", 5001)
                .lock("d", second, 4000, 2, kind="fair", name="n").unlock("d", 4001))
    same(found(story(300)), ["token"])  # they join at almost the same time
    same(found(story(500)), ["fair order", "token"])
    other = Story().lock("c", 0, 5000, 2).unlock("c", 5001)
    other.lock("d", 500, 4000, 1, daemon="b").unlock("d", 4001, daemon="b")
    same(found(other), [])  # nobody promised it


def at_one_daemon_the_lower_rank_is_first():
    def story(second, *, rank=(0, 0), **more):
        return (Story().lock("c", 0, 5000, 2, priority=rank[0]).unlock("c", 5001)
                .lock("d", second, 4000, 1, priority=rank[1], **more).unlock("d", 4001))
    same(found(story(300)), [])  # they come at almost the same time
    same(found(story(500)), ["order"])
    same(found(story(500, kind="read")), [])
    same(found(story(500, daemon="b")), [])
    same(found(story(500, rank=(0, 1))), [])
    same(found(story(500, rank=(1, 0))), ["order"])
    same(found(story(0, rank=(1, 0))), ["order"])
    for came, bad in ((3500, ["order"]), (3700, [])):  # Redis is asked for the first one by then
        urgent = (Story().lock("d", 500, 4000, 1).unlock("d", 4001)
                  .lock("c", came, 5000, 2, priority=1).unlock("c", 5001))
        same(found(urgent), bad)
    story = story(500).fault("kill redis", 100, 200)
    same((found(story), allowed(story)), ([], ["order: a fault came between"]))


def a_place_counts_from_the_first_lock_of_its_request():
    def story(gap, **more):
        return (Story().lock("c", 0, 1000, None, request="r", wait_ms=1000)
                .lock("c", 1000 + gap, 6000, 2, request="r", wait_ms=9000).unlock("c", 6001)
                .lock("d", 500, 5000, 1, **more).unlock("d", 5001))
    same(found(story(1000)), ["order"])
    same(found(story(1700)), [])  # KEEP may have been over
    same(found(story(1000, request="s", wait_ms=9000)), ["order"])
    late = (Story().lock("d", 0, 100, None, request="s", wait_ms=100)
            .lock("d", 1000, 5000, 1, request="s").unlock("d", 5001)
            .lock("c", 500, 6000, 2).unlock("c", 6001))
    same(found(late), [])  # it may have kept its place
    for who, bad in (("c", ["order"]), ("urgent-c", [])):  # QUEUE: it may have tried once
        bounded = (Story().lock(who, 0, 4600, Error("LIMIT"), request="r", priority=8)
                   .lock(who, 4700, 6000, 2, request="r", priority=8).unlock(who, 6001)
                   .lock("d", 500, 4500, 1).unlock("d", 4501))
        same(found(bounded), bad)
    for before, bad in ((0, []), (700, ["order"])):  # an MLOCK keeps its places, too
        many = (Story()
                .ask("MLOCK", "many-d", before, 1000, Error("BACKEND"), name="2", request="s")
                .lock("many-d", 1500, 5000, 1, request="s").unlock("many-d", 5001)
                .lock("c", 100, 6000, 2).unlock("c", 6001))
        same(found(many), bad)


def a_fault_may_upset_the_order():
    story = (Story().lock("c", 0, 5000, 2, kind="fair").unlock("c", 5001)
             .lock("d", 500, 4000, 1, kind="fair").unlock("d", 4001))
    same(found(story), ["fair order"])
    story.fault("kill redis", 100, 200)
    same((found(story), allowed(story)), ([], ["fair order: a fault came between"]))


def a_slow_machine_may_upset_the_order():
    story = (Story().lock("c", 0, 5000, 2, kind="fair").unlock("c", 5001)
             .lock("d", 500, 4000, 1, kind="fair").unlock("d", 4001))
    story.stalls = [(100 * MS, 60 * MS)]
    same(found(story), [])
    story.stalls, story.pauses = [], [(500 * MS, 600 * MS)]
    same(found(story), [])


def an_answer_is_late_by_as_much_as_the_machine_stood_still():
    story = Story().lock("c", 0, 2410, None, wait_ms=0)
    same(found(story), ["deadline"])
    story.pauses = [(1500 * MS, 2200 * MS)]
    same(found(story), ["deadline"])
    story.pauses = [(1500 * MS, 2310 * MS)]
    same((found(story), allowed(story)), ([], ["deadline: the machine stood still"]))


def a_request_granted_twice_is_found():
    story = Story().lock("c", 0, 5, 1, request="r").close("c", 6)
    story.lock("c", 7, 8, 2, request="r", daemon="b").unlock("c", 9)
    same(found(story), ["request"])
    story.fault("flushall", 5, 6)
    same(found(story), [])


def inside(*many, limit=3):
    """One after the other comes in with so many permits, and stays."""
    story = Story()
    for i, permits in enumerate(many):
        story.lock(f"c{i}", 10 * i, 10 * i + 1, i + 1, kind="permits", permits=permits,
                   limit=limit)
    return story


def too_many_permits_are_found():
    same(found(inside(1, 2)), [])
    same(found(inside(1, 1, 1)), [])
    same(found(inside(1, 1, 1, 1)), ["too many permits"])
    same(found(inside(2, 2)), ["too many permits"])
    same(found(inside(2, 2, limit=4)), [])
    left = inside(2).unlock("c0", 8).lock("d", 9, 10, 2, kind="permits", permits=3, limit=3)
    same(found(left), [])
    lost = inside(2, 2).fault("flushall", 10, 11)
    same((found(lost), allowed(lost)), ([], ["too many permits: flushall"]))


def a_latch(answer, counted=3, sent=30, answered=40):
    """So many of 3 parts were counted by 25 ms, and then somebody awaits it."""
    story = Story()
    for i in range(counted):
        story.ask("LATCH COUNT", f"c{i}", 5 * i, 5 * i + 5, 2 - i, kind="latch", limit=3,
                  request=f"gate part-{i}")
    return story.ask("LATCH AWAIT", "w", sent, answered, answer, kind="latch", limit=3,
                     request="gate", wait_ms=10)


def a_latch_that_opens_too_early_or_not_at_all_is_found():
    same(found(a_latch(1)), [])
    same(found(a_latch(1, counted=2)), ["latch"])
    same(found(a_latch(None, counted=2)), [])
    same(found(a_latch(None)), ["latch"])
    same(found(a_latch(None, sent=12)), [])
    same(found(a_latch(Error("ERR gone: it was deleted"))), ["latch"])
    lost = a_latch(Error("ERR gone: it was deleted")).fault("flushall", 1, 2)
    same((found(lost), allowed(lost)), ([], ["latch: flushall"]))


def who_comes_before_the_time_is_found():
    def story(second, **more):
        return (Story().lock("c", 0, 5, 1, request="r", atleast_ms=1000).unlock("c", 10)
                .lock("d", 20, second, 2, **more).unlock("d", second + 1))
    same(found(story(990)), ["early"])
    same(found(story(1001)), [])
    lost = story(990).fault("flushall", 500, 501)
    same((found(lost), allowed(lost)), ([], ["early: flushall"]))


def the_same_again_does_not_come_before_the_time():
    story = Story().lock("c", 0, None, None, request="r", atleast_ms=1000)
    story.lock("c", 500, 505, 1, request="r", atleast_ms=1000).unlock("c", 510)
    same(found(story.lock("d", 520, 1001, 2).unlock("d", 1010)), [])


def a_lock_beside_permits_is_found():
    same(found(inside(1).lock("d", 20, 21, 9)), ["two holders"])


def an_entry_too_many_is_found():
    same(found(Story().lock("c", 0, 5, 1, request="r").unlock("c", 9, 1)), ["entries"])


def what_was_overwritten_while_it_was_allowed_is_allowed_later():
    def story(start):
        return (Story().lock("c", 0, 5, 1).lock("d", 6, 15, 2).fault("flushall", start, start)
                .write("c", 20, 1, 0, 0).write("d", 60_000, 2, 0, 1, 1, before="c@a"))
    same(found(story(10)), [])
    same(found(story(30)), ["lost update", "two holders"])


def an_owner_may_find_what_redis_and_a_daemon_forgot_to_be_over():
    def story(second="c"):
        return (Story("sentinel").lock("c", 0, 5, 10).unlock("c", 6)
                .fault("kill master", 7, 8).lock(second, 9, 1000, 9).unlock(second, 1009, 1))
    same(found(story()), ["entries", "token"])
    same(found(story().fault("kill latchd", 6, 8)), [])
    same(found(story().fault("kill latchd", 20_000, 20_001)), ["entries", "token"])
    same(found(story("d").fault("kill latchd", 6, 8)), ["token"])
    same(found(story().fault("evict", 6, 8)), [])
    same(found(story().fault("partition with the master", 5, 8)), [])
    same(found(story().fault("partition with the master", 2000, 3000)), ["entries", "token"])


def a_place_at_another_daemon_may_be_granted_again_for_keep():
    def story(again=3000, unlocked_at="a", lost=2000, **more):
        return (Story().lock("c", 0, 1000, None, request="r", daemon="b")
                .lock("c", 1001, 1002, 10, request="r").unlock(
                    "c", 1010, request="r", daemon=unlocked_at)
                .fault("flushall", lost, lost + 1).lock("c", again, again + 1, 20)
                .unlock("c", again + 2, 1, **more))
    same((found(story()), allowed(story())),
         ([], ["entries: a place at another daemon, flushall"]))
    same(found(story(unlocked_at="b")), ["entries"])  # which knows that it is over
    same(found(story(lost=500)), ["entries"])  # the end came later
    same(found(story(lost=3100)), ["entries"])  # KEEP was over
    same(found(story(again=5500)), ["entries"])  # both were
    same(found(story(again=5500).fault("stop latchd", 900, 2500, "b")), [])
    same(found(story().fault("kill latchd", 1500, 1600, "b")), ["entries"])


def others_may_see_it_too_and_only_that_hold():
    def story(token):
        return (Story("sentinel").lock("c", 0, 5, 9).unlock("c", 6).lock("d", 7, 8, 10)
                .unlock("d", 9).fault("kill master", 10, 11).fault("restart latchd", 9, 10)
                .lock("c", 20, 1000, token).unlock("c", 1009, 1))
    same(found(story(9)), [])
    same(found(story(8)), ["token"])


def who_waits_too_long_is_found_unless_its_daemon_stood_still():
    story = Story().lock("c", 0, 4000, None, wait_ms=100)
    same(found(story), ["deadline"])
    same(found(story.fault("stop latchd", 50, 3000, "b")), ["deadline"])
    same(found(story.fault("stop latchd", 50, 3000)), [])


def a_calm_name_that_nobody_has_is_granted():
    def story(granted, wait=4000):
        return (Story().lock("c", 0, 5, 1, name="calm-0").unlock("c", 100, name="calm-0")
                .lock("d", 50, granted, 2, name="calm-0", wait_ms=wait)
                .unlock("d", 5000, name="calm-0"))
    same(found(story(890)), [])
    same(found(story(1000)), ["slept"])
    same(found(story(None).lock("c", 2000, 2001, 2, name="calm-0")
               .unlock("c", 9000, name="calm-0")), ["deadline", "order", "slept"])
    same(found(story(1000).fault("cut", 200, 300)), [])


def nothing_is_granted_for_a_while_after_a_failover():
    def story(kind, asked):
        return (Story().lock("c", 0, 5, 1, name="calm-0").unlock("c", 100, name="calm-0")
                .fault(kind, 200, 300).lock("d", asked, asked + 1000, 2, name="calm-0")
                .unlock("d", asked + 1001, name="calm-0"))
    same(found(story("kill master", 5000)), [])
    same(found(story("kill master", 5400)), ["slept"])
    same(found(story("kill redis", 5000)), ["slept"])
    lost = Error("BACKEND Redis may have lost locks: no new grants for a while")
    same(found(story("kill redis", 5000).lock("e", 300, 400, lost)), [])
    same(found(story("kill redis", 5400).lock("e", 300, 400, lost)), ["slept"])


def an_entry_that_is_left_too_early_is_found():
    for left, bad in ((1, []), (0, ["entries"]), (2, ["entries"]), (GONE, ["lost"])):
        story = Story().lock("c", 0, 5, 1).lock("c", 6, 7, 1).ask("LEAVE", "c", 8, 9, left)
        same(found(story), bad)


def what_is_left_behind_is_found():
    same(found(Story().leave(99, 100)), [])
    same(found(Story().leave(100, 100)), ["left behind"])
    same(found(Story().leave(0, 0)), ["left behind"])


def what_is_lost_is_found():
    same(found(Story().lock("c", 0, 5, 1).renew("c", 100, GONE)), ["lost"])
    same(found(Story().lock("c", 0, 5, 1).unlock("c", 100, GONE)), ["lost"])


def a_move_to_a_daemon_that_is_cut_off_may_end_with_the_lease():
    def moves(at, renewed=BACKEND, to="b", cut=(100, 3400)):
        story = Story().lock("c", 0, 5, 1).renew("c", 110, renewed, daemon=to)
        return story.lock("d", at - 10, at, 2, daemon="c").fault("half a frame", *cut)

    why = "two holders: moved to a daemon that was cut off"
    same((found(moves(3100)), allowed(moves(3100))), ([], [why]))
    same(found(moves(1500)), ["two holders"])  # the lease is not over
    same(found(moves(3100, renewed=2900)), ["two holders"])
    same(found(moves(3100, to="a")), ["two holders"])  # which knows that it keeps it
    same(found(moves(9000, cut=(100, 300))), ["two holders"])


def a_lease_may_run_out_in_an_outage_that_is_long_enough():
    def story(end):
        return (Story().lock("c", 0, 5, 1).fault("kill redis", 1000, end)
                .renew("c", 5000, GONE))
    same((found(story(4000)), allowed(story(4000))),
         ([], ["lost: the lease ran out in an outage"]))
    assert found(story(4000).renew("c", 90_000)) == []
    short = Story().lock("c", 0, 5, 1).fault("cut", 4000, 4100).renew("c", 5000, GONE)
    same(found(short), ["lost"])


def what_was_given_back_or_had_its_own_end_is_not_lost():
    story = Story().lock("c", 0, 5, 1).ask("UNLOCK", "c", 10, None, None)
    same(found(story.unlock("c", 20, GONE)), [])
    story = Story().lock("c", 0, 5, 1, lease_ms=500).unlock("c", 600, GONE)
    same(found(story), [])
    same(found(Story().lock("c", 0, 5, 1, lease_ms=500).unlock("c", 400, GONE)), ["lost"])


def lent(topology="single"):
    """A hold that is from memory, and was granted just then."""
    return Story(topology).lock("c", 0, 100, 5, kind="local")


def what_another_daemon_knows_nothing_of_is_young():
    def story(at, topology="single", **more):
        return lent(topology).renew("c", at, GONE, **more)
    same((found(story(110, daemon="b")), allowed(story(110, daemon="b"))),
         ([], ["lost: a young hold, through another daemon"]))
    same(found(story(110)), ["lost"])
    same(found(story(300, daemon="b")), ["lost"])
    same(found(story(110, "quorum", daemon="b")), ["lost"])
    same(found(Story().lock("c", 0, 100, 5).renew("c", 110, GONE, daemon="b")), ["lost"])
    same(found(lent().renew("c", 105).renew("c", 110, GONE, daemon="b")), ["lost"])
    same(found(lent().fault("cut", 110, 300).renew("c", 2200, GONE, daemon="b")), [])
    same(found(lent().fault("stop latchd", 110, 300).renew("c", 350, GONE, daemon="b")), [])
    same(found(lent().fault("stop latchd", 110, 300, "z").renew("c", 350, GONE, daemon="b")),
         ["lost"])


def a_crash_ends_young_holds_only():
    def story(at, kind="kill latchd", target="a"):
        return lent().fault(kind, at, at + 500, target).renew("c", at + 600, GONE)
    same((found(story(110)), allowed(story(110))),
         ([], ["lost: a crash over a young hold"]))
    same(found(story(110, "restart latchd")), ["lost"])
    same(found(story(110, target="b")), ["lost"])
    same(found(story(400)), ["lost"])


def a_lent_name_may_be_granted_below_who_took_it_away():
    def story(kind, at):
        return (Story().lock("d", 0, 100, 9, daemon="b").unlock("d", 101, daemon="b")
                .lock("c", at, at + 1, 5, kind="local").unlock("c", at + 5)
                .fault(kind, 90, 95))
    same((found(story("flushall", 110)), allowed(story("flushall", 110))),
         ([], ["token: a lent name was taken away from outside"]))
    same(found(story("flushall", 400)), ["token"])
    same(found(story("cut", 110)), ["token"])


def an_unlock_that_is_sent_again_has_the_same_answer():
    def story(value):
        return lent().unlock("c", 110).ask("AGAIN", "c", 112, 113, value)
    same(found(story(0)), [])
    same(found(story(GONE)), ["sent again"])
    same(found(story(GONE).fault("kill latchd", 111, 112)), [])


def a_record_survives_its_file():
    story = two_in_turn().tell("c", 7).close("d", 8).fault("cut", 1, 2).leave(1, 2)
    story.renew("c", 100, GONE).write("d", 59, 2, 0, 1, 1)
    story.stalls, story.marks = [(1, 2)], {"kill": 3}
    story.pauses = [(4, 5)]
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        story.save(file.name)
        again = Record.load(file.name)
    for field in ("settings", "told", "closed", "faults", "left", "writes", "stalls",
                  "pauses", "marks", "ended"):
        same(getattr(again, field), getattr(story, field))
    same([str(a) for a in again.asks], [str(a) for a in story.asks])
    same(found(again), found(story))


class Replaced:
    """A place with a master that was just replaced, and has still what was in use then.
    stays: its successor has that, too. key: one that neither may have."""

    watchdog_ms = (100 - FAIR_WAIT_MS - SLACK_MS) / 2  # so that keys in use have 100 ms to go

    def __init__(self, *keys, stays=False):
        self.keys, self.stays, self.is_settled = keys, stays, False
        self.daemons = {"a": None}

    def wires(self):
        yield self

    @contextlib.contextmanager
    def wire(self):
        yield self

    def settled(self):
        self.is_settled = True

    def ask(self, verb, *_words):
        if verb == "PTTL":
            return -1
        gone = self.is_settled and not self.stays
        return "0", [k for k in self.keys if not (gone and k.startswith("redisson_"))]


def what_a_replaced_master_has_in_use_is_no_leftover():
    place = Replaced("redisson_lock_queue:{fair}", "redisson_lock_timeout:{fair}")
    same(leftovers(place, place, [], {}), [])


def what_stays_in_use_is_left_behind():
    place = Replaced("redisson_lock_queue:{fair}", stays=True)
    left, = leftovers(place, place, [], {})
    same((left.name, left.waited_ms >= left.limit_ms), ("redisson_lock_queue:{fair}", True))


def any_other_key_has_an_end_all_the_time():
    place = Replaced("latchd:fence:{n}", "redisson_lock_queue:{fair}")
    same([(left.name, left.limit_ms) for left in leftovers(place, place, [], {})],
         [("latchd:fence:{n}", 0)])


def planted(events):
    """A history of tests/proof/planted.jsonl."""
    story, fence = Story(), 0
    for who, f, call, answered, value, more in (
            [*event, *[None] * (6 - len(event))] for event in events):
        more = more or {}
        if f == "told":
            story.tell(who, call)
        elif f == "closed":
            story.close(who, call, **more)
        elif f == "write":
            story.write(who, call, more["token"], fence, fence, fence, vouched=more["accepted"])
            fence = max(fence, more["token"])
        else:
            names = {"wait": "wait_ms", "lease": "lease_ms"}
            story.ask(f.upper(), who, call, answered,
                      Error(value) if isinstance(value, str) else value,
                      **{names.get(key, key): v for key, v in more.items()})
    return story


def it_agrees_with_the_independent_checker():
    count = 0
    for line in (HERE.parent / "proof" / "planted.jsonl").read_text().splitlines():
        pair = json.loads(line)
        if pair["rule"] is None:  # none of ours
            continue
        count += 1
        if pair["rule"] not in found(planted(pair["wrong"])):
            raise AssertionError(f"{pair['case']}: {found(planted(pair['wrong']))}")
        if found(planted(pair["right"])):
            raise AssertionError(f"{pair['case']}, right: {found(planted(pair['right']))}")
    assert count >= 47, count


def a_long_history_is_checked_in_time():
    story = Story()
    for i in range(20_000):
        who = f"c{i % 7}"
        story.lock(who, 4 * i, 4 * i + 1, i + 1, request=f"r{i}", kind="fair")
        story.unlock(who, 4 * i + 2)
        story.write(who, 4 * i + 2, i + 1, i, i, i)
    same(found(story), [])


def main():
    cases = [(name, case) for name, case in globals().items()
             if getattr(case, "__module__", None) == __name__ and callable(case)
             and name not in ("Story", "Replaced", "found", "allowed", "same", "main", "tap",
                              "two_in_turn", "lent", "inside", "led", "a_latch", "planted")]
    sys.exit(1 if tap(cases) else 0)


main()
