"""Two or three daemons on one Redis: any may be killed, its clients go to another."""
import time

from servers import kept
from stage import FAIR_WAIT_MS, WATCHDOG_MS, crowded

BACK_MS = 2000  # from "Redis answers again" to grants of every name
# Until what a dead daemon alone knew is over: a grant whose client never heard of it is
# there for a lease, a waiter in a fair queue for that and its time.
ORPHAN_MS = WATCHDOG_MS + FAIR_WAIT_MS


def fleet(stage, count):
    redis = stage.keep(kept(stage.folder))
    for name in "abc"[:count]:
        stage.latchd(name, redis.url)
    return crowded(stage), redis


def any_of_three_is_killed(stage):
    """One after the other, each started again; and never two at once."""
    crowd, _ = fleet(stage, 3)
    for name, daemon in stage.daemons.items():
        crowd.granted(150)
        daemon.kill()
        crowd.all_granted(stage.mark(f"{name} dies"))
        daemon.restart()
    crowd.granted(150)
    stage.check(gaps={f"{name} dies": BACK_MS + ORPHAN_MS for name in stage.daemons})


def a_daemon_and_redis_are_killed(stage):
    """What the one knew is lost, and the other has lost its links."""
    crowd, redis = fleet(stage, 2)
    crowd.granted(200)
    redis.kill()
    stage.daemons["a"].kill()
    stage.mark("both die")
    time.sleep(0.4)  # how long they are away
    redis.restart()
    stage.mark("Redis is back")
    crowd.all_granted(stage.book.marks["Redis is back"])
    stage.daemons["a"].restart()
    crowd.granted(200)
    stage.check(gaps={"Redis is back": BACK_MS + ORPHAN_MS})


CASES = [any_of_three_is_killed, a_daemon_and_redis_are_killed]
