"""A master that Sentinel replaces."""
import time

from faults import Network
from history import MS, Excuse
from sentinels import REDIS_FROM, SENTINEL_FROM, Sentinels
from stage import WATCHDOG_MS, crowded

BACK_MS = 2000  # from +switch-master to grants
# Names that nobody here held are granted only when a lost grant's lease is over.
QUARANTINE_MS = WATCHDOG_MS
LONG_MS = 9000  # a lease that outlives a failover
ACKNOWLEDGED = ("--min-replicas", "1", "--replica-timeout", "500ms")


def two_daemons(stage, sentinels, *options, **how):
    for name in "ab":
        stage.latchd(name, sentinels.url, *options, **how)
    return crowded(stage)


def switched(stage, crowd, sentinels):
    sentinels.switched()
    stage.mark("+switch-master")
    crowd.all_granted(stage.book.marks["+switch-master"])


def check(stage, sentinels, gaps, acknowledged=False, **rules):
    if not sentinels.calm():
        stage.say(f"too busy to measure: {sentinels.heard}")
        gaps = {}
        if not acknowledged:
            rules["excuses"] = [Excuse(0, time.monotonic_ns(), "switched without need")]
    stage.check(gaps=gaps, **rules)


def a_killed_master_is_replaced(stage):
    """kill -9; what it had not sent to its replicas is lost, and put back."""
    sentinels = Sentinels(stage)
    crowd = two_daemons(stage, sentinels)
    crowd.granted(200)
    stage.mark("kill")
    sentinels.master.kill()
    switched(stage, crowd, sentinels)
    crowd.granted(200)
    check(stage, sentinels, {"+switch-master": BACK_MS + QUARANTINE_MS})


def service_is_back_soon_without_quarantine(stage):
    """One daemon is all there is: nobody else's grant can be lost."""
    sentinels = Sentinels(stage)
    stage.latchd("a", sentinels.url, "--failover-quarantine", "0")
    crowd = crowded(stage)
    crowd.granted(200)
    stage.mark("kill")
    sentinels.master.kill()
    switched(stage, crowd, sentinels)
    crowd.granted(200)
    check(stage, sentinels, {"+switch-master": BACK_MS})


def what_no_replica_had_seen_is_put_back(stage):
    """The replicas hear nothing any more from a master that goes on granting, and then
    it is killed: its last grants are on no server, only known here."""
    network = stage.keep(Network(stage.folder))
    sentinels = Sentinels(stage, network)
    crowd = two_daemons(stage, sentinels, "--failover-quarantine", f"{QUARANTINE_MS}ms",
                        watchdog_ms=LONG_MS)
    crowd.granted(200)
    network.between(REDIS_FROM, sentinels.master.port, "hold")
    kept = ("kept-0", "kept-1", "kept-2")
    crowd.all_granted(stage.mark("the replicas hear nothing"), kept)
    stage.mark("kill")
    sentinels.master.kill()
    switched(stage, crowd, sentinels)
    crowd.granted(200)
    if stage.book.marks["+switch-master"] > stage.book.marks["kill"] + LONG_MS // 2 * MS:
        stage.say("too busy: leases are over before there is a master")
        kept = ()
    check(stage, sentinels, {"+switch-master": BACK_MS + LONG_MS}, kept=kept)


def a_stopped_master_is_not_believed_when_it_goes_on(stage):
    """SIGSTOP, until another one is master; what it still answers then is worth nothing."""
    sentinels = Sentinels(stage)
    crowd = two_daemons(stage, sentinels)
    crowd.granted(200)
    stage.mark("stop")
    old = sentinels.master
    old.pause()
    switched(stage, crowd, sentinels)
    stage.mark("it goes on")
    old.resume()
    crowd.all_granted(stage.book.marks["it goes on"])
    check(stage, sentinels, {"+switch-master": BACK_MS + QUARANTINE_MS,
                             "it goes on": BACK_MS + QUARANTINE_MS})


def partition(stage, *options):
    """Daemon a and the master on one side, all else on the other; until all is well
    again."""
    network = stage.keep(Network(stage.folder))
    sentinels = Sentinels(stage, network)
    network.introduce([stage.latchd(name, sentinels.url, *options).ready()
                       for name in "ab"])
    crowd = crowded(stage)
    crowd.granted(200)
    stage.mark("partition")
    old = sentinels.master
    for who in ("b", REDIS_FROM, SENTINEL_FROM):
        network.between(who, old.port, "hold")
    for server in (*sentinels.servers[1:], *sentinels.sentinels):
        network.between("a", server.port, "hold")
    sentinels.switched()
    crowd.granted(50, stage.mark("+switch-master"))
    for server in (*sentinels.servers, *sentinels.sentinels):
        network.between("*", server.port, "pass")
    crowd.all_granted(stage.mark("healed"))
    crowd.granted(100)
    return sentinels


def a_daemon_with_the_old_master_may_be_wrong_while_cut_off(stage):
    """Nothing is acknowledged: on either side locks are granted."""
    sentinels = partition(stage)
    marks = stage.book.marks
    check(stage, sentinels, {"healed": BACK_MS + QUARANTINE_MS}, excuses=[Excuse(
        marks["partition"], marks["healed"] + BACK_MS * MS, "cut off", "a")])


def a_daemon_with_the_old_master_knows_without_acknowledgements(stage):
    """The same, and all that counts is acknowledged by a replica."""
    sentinels = partition(stage, *ACKNOWLEDGED)
    check(stage, sentinels, {"healed": BACK_MS + QUARANTINE_MS}, acknowledged=True)


CASES = [
    a_killed_master_is_replaced,
    service_is_back_soon_without_quarantine,
    what_no_replica_had_seen_is_put_back,
    a_stopped_master_is_not_believed_when_it_goes_on,
    a_daemon_with_the_old_master_may_be_wrong_while_cut_off,
    a_daemon_with_the_old_master_knows_without_acknowledgements,
]
