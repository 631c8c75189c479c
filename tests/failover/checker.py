#!/usr/bin/env python3
"""The checker, on histories written by hand: it finds what is planted, and nothing else.

Times are in ms here. Prints TAP.
"""
import pathlib
import sys

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from history import (MS, Ask, Book, Closed, Excuse, Rules, Told, late_answers,  # noqa: E402
                     overlaps, service_gaps, tokens_that_do_not_grow, verdict)
from resp import Error  # noqa: E402
from stand import tap  # noqa: E402

END = 100_000


class Story(Book):
    """A book that is written by hand."""

    def __init__(self):
        super().__init__()
        self.ended = END * MS

    def ask(self, verb, who, sent, answered, value, daemon="a", name="n", **more):
        self.asks.append(Ask(who, daemon, verb, name, sent * MS,
                             answered=None if answered is None else answered * MS,
                             value=value, **more))
        return self

    def lock(self, who, sent, answered, token, **more):
        return self.ask("LOCK", who, sent, answered, token, **more)

    def unlock(self, who, sent, answered=None, value=0, **more):
        return self.ask("UNLOCK", who, sent, answered or sent + 1, value, **more)

    def renew(self, who, sent, answered, value=1000, **more):
        return self.ask("RENEW", who, sent, answered, value, **more)

    def tell(self, who, at, daemon="a", name="n"):
        self.told.append(Told(who, daemon, name, at * MS))
        return self

    def close(self, who, at, daemon="a"):
        self.closed.append(Closed(who, daemon, at * MS))
        return self


def found(story, *excuses):
    """(old, new, from, to, excuse) of each overlap."""
    return [(o.old.who, o.new.who, o.start // MS, o.end // MS, o.excuse)
            for o in overlaps(story.holds(), excuses)]


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got}, not {wanted}")


def one_after_the_other_is_well():
    same(found(Story().lock("c", 0, 5, 1).unlock("c", 50).lock("d", 6, 51, 2)
               .unlock("d", 60).lock("c", 55, 61, 3)), [])


def as_soon_as_it_is_given_back_it_may_be_granted():
    same(found(Story().lock("c", 0, 5, 1).unlock("c", 50, 70).lock("d", 6, 50, 2)), [])


def two_at_once_are_found():
    same(found(Story().lock("c", 0, 5, 1).unlock("c", 50).lock("d", 6, 49, 2)),
         [("c", "d", 49, 50, None)])


def two_at_once_are_found_once_and_each_pair():
    story = Story().lock("c", 0, 5, 1).lock("d", 0, 6, 2).lock("e", 0, 7, 3)
    story.tell("c", 500).renew("c", 501, 502)
    same([(old, new) for old, new, *_ in found(story)],
         [("c", "d"), ("c", "e"), ("d", "e")])


def other_names_do_not_matter():
    same(found(Story().lock("c", 0, 5, 1).lock("d", 0, 5, 1, name="m")), [])


def readers_share_and_writers_do_not():
    story = Story().lock("c", 0, 5, 1, kind="read").lock("d", 0, 6, 2, kind="read")
    same(found(story), [])
    story.lock("e", 0, 7, 3, kind="write").unlock("e", 8)
    same([(old, new) for old, new, *_ in found(story)], [("c", "e"), ("d", "e")])


def who_was_told_does_not_believe_any_more():
    same(found(Story().lock("c", 0, 5, 1).tell("c", 1000).lock("d", 6, 1001, 2)), [])


def a_word_that_comes_too_late_is_found():
    same(found(Story().lock("c", 0, 5, 1).tell("c", 1000).lock("d", 6, 700, 2)),
         [("c", "d", 700, 1000, None)])


def a_word_about_another_name_is_no_word():
    same(len(found(Story().lock("c", 0, 5, 1).tell("c", 10, name="m")
                   .lock("d", 6, 1000, 2))), 1)


def who_lost_its_connection_does_not_believe():
    same(found(Story().lock("c", 0, 5, 1).close("c", 100).lock("d", 6, 101, 2)), [])


def the_connection_that_counts_is_the_one_it_is_attached_to():
    story = Story().lock("c", 0, 5, 1).renew("c", 10, 12, daemon="b").close("c", 20)
    same(len(found(story.lock("d", 6, 1000, 2))), 1)
    same(found(story.close("c", 900, daemon="b")), [])


def a_doubt_that_ended_well_was_none():
    story = Story().lock("c", 0, 5, 1).close("c", 100)
    story.renew("c", 200, 210, daemon="b").unlock("c", 300, daemon="b")
    same(found(story), [])
    same(found(story.lock("d", 0, 150, 2).unlock("d", 160)), [("c", "d", 150, 160, None)])


def the_answer_to_what_was_asked_before_the_doubt_ends_no_doubt():
    story = Story().lock("c", 0, 5, 1).renew("c", 99, 101).tell("c", 100)
    same(found(story.lock("d", 0, 500, 2)), [])


def a_doubt_that_ended_badly_was_the_end():
    story = Story().lock("c", 0, 5, 1).tell("c", 100)
    story.renew("c", 200, 210, Error("NOTHELD"))
    same(found(story.lock("d", 0, 150, 2)), [])


def an_answer_that_says_nothing_changes_nothing():
    story = Story().lock("c", 0, 5, 1).renew("c", 200, 210, Error("BACKEND"))
    same(len(found(story.lock("d", 0, 150, 2))), 1)


def a_lease_ends_when_it_was_asked_for_plus_itself_less_the_margin():
    def story(second):
        return Story().lock("c", 0, 5, 1, lease_ms=1000).lock("d", 0, second, 2)
    same(found(story(940)), [])
    same(found(story(939)), [("c", "d", 939, 940, None)])


def a_lease_that_was_waited_for_has_its_half_left():
    def story(second):
        return Story().lock("c", 0, 9000, 1, lease_ms=2000).lock("d", 0, second, 2)
    same(found(story(9530)), [])
    same(len(found(story(9529))), 1)


def a_lease_can_be_renewed():
    def story(second):
        return (Story().lock("c", 0, 5, 1, lease_ms=1000)
                .renew("c", 500, 501, lease_ms=1000).lock("d", 0, second, 2))
    same(found(story(1440)), [])
    same(found(story(1439)), [("c", "d", 1439, 1440, None)])


def the_watchdog_has_no_end():
    same(len(found(Story().lock("c", 0, 5, 1).lock("d", 0, 90_000, 2))), 1)


def a_request_that_is_sent_again_is_the_same_hold():
    story = Story().lock("c", 0, 5, 1, request="r").close("c", 10)
    story.lock("c", 11, 12, 1, request="r", daemon="b").unlock("c", 20, daemon="b")
    same(len(story.holds()), 1)
    same(found(story.lock("d", 0, 21, 2)), [])


def what_may_be_lost_is_excused_and_only_that():
    excuse = Excuse(90 * MS, 100 * MS, "lost")
    for answered, daemon, why in ((95, "b", "lost"), (80, "b", None), (101, "b", None),
                                  (95, "a", None)):
        story = Story().lock("c", 20, answered, 1).lock("d", 0, 150, 2, daemon=daemon)
        same([o[-1] for o in found(story, excuse)], [why])


def who_was_cut_off_is_excused_for_as_long_as_it_was():
    excuse = Excuse(90 * MS, 100 * MS, "cut off", "b")
    for second, daemon, why in ((95, "b", "cut off"), (80, "b", None), (101, "b", None),
                                (95, "a", None), (95, "c", None)):
        story = Story().lock("c", 0, 5, 1).lock("d", 0, second, 2, daemon=daemon)
        same([o[-1] for o in found(story, excuse)], [why])


def tokens_of_who_was_cut_off_are_excused_too():
    story = Story().lock("c", 0, 95, 2).lock("d", 96, 97, 1, daemon="b")
    same(len(tokens_that_do_not_grow(story.holds())), 1)
    same(tokens_that_do_not_grow(story.holds(), [Excuse(90 * MS, 100 * MS, "x", "b")]), [])


def errors_are_found_where_there_should_be_none():
    story = Story().lock("c", 0, 5, Error("BACKEND x"))
    same(verdict(story, Rules(1000))[0], [])
    same(verdict(story, Rules(1000, no_errors=True))[0],
         ["n: LOCK of c at a was answered BACKEND x"])


def tokens_grow():
    same(tokens_that_do_not_grow(Story().lock("c", 0, 5, 1).lock("d", 6, 7, 2)
                                 .lock("c", 0, 9, 1, name="m").holds()), [])


def a_token_that_goes_back_is_found():
    for asked, answered in ((6, 7), (0, 2000)):
        story = Story().lock("c", 0, 5, 10).unlock("c", 6)
        story.lock("e", 0, 7, 11).unlock("e", 8)
        story.lock("d", asked, answered, 9).unlock("d", answered + 1)
        same([(old.who, new.who) for old, new in tokens_that_do_not_grow(story.holds())],
             [("e" if answered > 7 else "c", "d")])


def readers_that_were_asked_for_together_come_in_any_order():
    story = Story().lock("c", 0, 5, 11, kind="read").lock("d", 0, 2000, 10, kind="read")
    same(tokens_that_do_not_grow(story.holds()), [])
    story = Story().lock("c", 0, 5, 11, kind="read").lock("d", 6, 2000, 10, kind="read")
    same(len(tokens_that_do_not_grow(story.holds())), 1)


def a_place_that_was_kept_was_asked_for_when_it_was_first():
    story = Story().lock("c", 3, 5, 11, kind="read")
    story.lock("d", 4, 50, None, request="r", kind="read")
    story.lock("d", 51, 52, 10, request="r", kind="read")
    same(tokens_that_do_not_grow(story.holds()), [])


def a_token_given_twice_is_found():
    story = Story().lock("c", 0, 5, 10).unlock("c", 6).lock("d", 0, 7, 10)
    same(len(tokens_that_do_not_grow(story.holds())), 1)


def answers_are_late_after_the_wait_or_the_timeout():
    for wait, answered, late in ((0, 1610, 0), (0, 1700, 90), (3000, 3610, 0),
                                 (3000, 3700, 90), (None, 90_000, 0)):
        story = Story().lock("c", 0, answered, None, wait_ms=wait)
        same([ms for _, ms, _ in late_answers(story, 1000)], [late] if late else [])


def a_machine_that_stood_still_is_nobodys_fault():
    story = Story().lock("c", 0, 1700, None, wait_ms=0)
    story.stalls = [(1500 * MS, 40 * MS)]
    same(late_answers(story, 1000), [])
    story.stalls = [(1500 * MS, 20 * MS), (1 * MS, 500 * MS), (1800 * MS, 500 * MS)]
    same([ms for _, ms, _ in late_answers(story, 1000)], [30])
    story.stalls, story.pauses = [], [(100 * MS, 130 * MS), (1500 * MS, 1550 * MS)]
    same([(ms, why) for _, ms, why in late_answers(story, 1000)], [(10, None)])
    story.pauses += [(1690 * MS, 1750 * MS)]
    same([why for _, _, why in late_answers(story, 1000)], ["the machine stood still"])


def no_answer_is_late_too():
    story = Story().lock("c", 0, None, None, wait_ms=10)
    same(len(late_answers(story, 1000)), 1)
    story.asks[0].closed = 900 * MS
    same(late_answers(story, 1000), [])


def gaps_are_counted_per_name():
    story = Story().lock("d", 0, 300, 2).lock("c", 0, 50, 1, name="m")
    same(service_gaps(story, story.holds(), 100 * MS), {"n": 200.0, "m": None})


def while_nobody_asks_there_is_no_gap():
    story = Story().lock("d", 0, 50, 2).unlock("d", 60).lock("c", 500, 520, 3)
    same(service_gaps(story, story.holds(), 100 * MS), {"n": 20.0})


def while_somebody_holds_it_there_is_no_gap():
    story = Story().lock("c", 0, 5, 1).unlock("c", 150).lock("e", 0, 90, 2)
    story.unlock("e", 160).lock("d", 0, 300, 3)
    same(service_gaps(story, story.holds(), 100 * MS), {"n": 140.0})


def what_is_lost_is_found_where_nothing_should_be():
    story = Story().lock("c", 0, 5, 1).renew("c", 6, 7, Error("NOTHELD x"))
    same(verdict(story, Rules(1000, kept=("m",)))[0], [])
    same(verdict(story, Rules(1000, kept=("n",)))[0][0], "n: c at a has lost it")
    story = Story().lock("c", 0, 5, 1).unlock("c", 6, value=Error("NOTHELD x"))
    same(verdict(story, Rules(1000, kept=("n",)))[0], [])


def gaps_are_told_apart_by_name():
    story = Story().lock("d", 0, 300, 2).lock("c", 0, 900, 1, name="m")
    story.marks["back"] = 100 * MS
    for limit, bad in ((500, 1), (900, 0)):
        wrong, _ = verdict(story, Rules(1000, gaps={"back": [
            (500, lambda name: name == "n"), (limit, lambda name: name == "m")]}))
        same(wrong[:1], ["service after 'back': 800 of 500 ms, m"] * bad)


def a_verdict_has_it_all():
    story = Story().lock("c", 0, 5, 1).lock("d", 6, 2000, 1, wait_ms=10)
    story.lock("e", 0, 5, 1, name="m").marks["back"] = 1000 * MS
    wrong, said = verdict(story, Rules(1000, gaps={"back": 900}))
    same([line.split(" ")[0] for line in wrong if not line.startswith(" ")],
         ["two", "n:", "n:", "n:", "m:"])
    same(said[0].split(",")[:2], ["3 requests", " 3 holds"])
    wrong, _ = verdict(Story().lock("c", 0, 5, 1).unlock("c", 6), Rules(1000))
    same(wrong, [])


def main():
    cases = [(name, case) for name, case in globals().items()
             if getattr(case, "__module__", None) == __name__ and callable(case)
             and name not in ("Story", "found", "same", "main", "tap")]
    sys.exit(1 if tap(cases) else 0)


main()
