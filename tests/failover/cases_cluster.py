"""A Redis Cluster that fails over, and is resharded."""
from clusters import Cluster
from stage import WATCHDOG_MS, crowded
import load

BACK_MS = 2000  # from when the cluster has settled to grants
QUARANTINE_MS = WATCHDOG_MS  # of names that nobody here held
SETTLE_MS = 4000  # a master that was away waits for a while, or is replaced after all
ELSEWHERE_MS = 1000  # of names whose master is well: there is no outage
MOVE_MS = 5000  # more than a move takes, with MIGRATE for each key
HOT = "{hot}"


def two_daemons(stage, cluster, *options):
    for name in "ab":
        stage.latchd(name, cluster.url, *options)
    return crowded(stage)


def a_killed_master_is_replaced_and_the_others_go_on(stage):
    """kill -9; the slots of the others are not to notice."""
    cluster = Cluster(stage, "--cluster-require-full-coverage", "no")
    crowd = two_daemons(stage, cluster)
    crowd.granted(200)
    port_of = {name: cluster.master_of(name).port for name in crowd.names}
    slot, old = cluster.slot("kept-0"), cluster.master_of("kept-0")
    stage.mark("kill")
    old.kill()
    cluster.settled(slot, cluster.replica_of[old], [old])
    crowd.all_granted(stage.mark("settled"))
    crowd.granted(200)
    stage.check(gaps={
        "kill": [(ELSEWHERE_MS, lambda name: port_of[name] != old.port)],
        "settled": BACK_MS + QUARANTINE_MS})


def a_cluster_that_needs_all_slots_comes_back(stage):
    """kill -9, where no slot is served while one is not."""
    cluster = Cluster(stage)
    crowd = two_daemons(stage, cluster)
    crowd.granted(200)
    slot, old = cluster.slot("kept-1"), cluster.master_of("kept-1")
    stage.mark("kill")
    old.kill()
    cluster.settled(slot, cluster.replica_of[old], [old])
    crowd.all_granted(stage.mark("settled"))
    crowd.granted(200)
    stage.check(gaps={"settled": BACK_MS + QUARANTINE_MS})


def a_master_hands_over(stage):
    """CLUSTER FAILOVER: nothing is lost, which shows, so that no name is withheld."""
    cluster = Cluster(stage)
    crowd = two_daemons(stage, cluster)
    crowd.granted(200)
    slot, old = cluster.slot("kept-0"), cluster.master_of("kept-0")
    stage.mark("order")
    cluster.replica_of[old].ask("CLUSTER", "FAILOVER")
    cluster.settled(slot, cluster.replica_of[old])
    crowd.all_granted(stage.mark("settled"))
    crowd.granted(200)
    stage.check(gaps={"settled": BACK_MS})


def a_hot_slot_moves_without_an_error(stage):
    """There and on, under load. What asks while it moves waits until it has arrived; on
    a busy machine that takes a while."""
    cluster = Cluster(stage)
    for name in "ab":
        stage.latchd(name, cluster.url, timeout_ms=MOVE_MS)
    crowd = stage.clients()
    names = [f"{HOT}-{i}" for i in range(6)]
    crowd.add(12, load.quick, names)
    crowd.add(3, load.mover, names)
    crowd.add(2, load.lessee, [f"{HOT}-leased"])
    crowd.add(2, load.quick, [f"{HOT}-rw"], 8, 25, "read")
    crowd.add(2, load.quick, [f"{HOT}-rw"], 8, 25, "write")
    for i in range(2):
        crowd.add(1, load.keeper, f"{HOT}-kept-{i}")
        crowd.add(1, load.quick, [f"{HOT}-kept-{i}"])
    crowd.start()
    slot = cluster.slot(HOT)
    gaps = {}
    for turn in range(2):
        crowd.granted(200)
        old = cluster.master_of(HOT)
        new = next(m for m in cluster.masters if m is not old)
        gaps[f"move {turn} begins"] = MOVE_MS
        gaps[f"move {turn} is over"] = BACK_MS
        stage.mark(f"move {turn} begins")
        cluster.move(slot, new)
        crowd.all_granted(stage.mark(f"move {turn} is over"))
    crowd.granted(200)
    stage.check(gaps=gaps, no_errors=True, redis_timeout_ms=MOVE_MS)


def a_stopped_master_is_not_believed_when_it_goes_on(stage):
    """SIGSTOP, until its replica is master; then it goes on."""
    cluster = Cluster(stage, "--cluster-require-full-coverage", "no")
    crowd = two_daemons(stage, cluster)
    crowd.granted(200)
    slot, old = cluster.slot("kept-0"), cluster.master_of("kept-0")
    stage.mark("stop")
    old.pause()
    cluster.settled(slot, cluster.replica_of[old], [old])
    crowd.all_granted(stage.mark("settled"))
    old.resume()
    stage.mark("it goes on")
    cluster.settled(slot, cluster.replica_of[old])
    crowd.all_granted(stage.book.marks["it goes on"])
    crowd.granted(200)
    stage.check(gaps={"settled": BACK_MS + QUARANTINE_MS,
                      "it goes on": BACK_MS + QUARANTINE_MS})


def a_master_is_back_before_anybody_took_its_place(stage):
    """kill -9, and started again at once."""
    cluster = Cluster(stage, "--cluster-require-full-coverage", "no")
    crowd = two_daemons(stage, cluster)
    crowd.granted(200)
    old = cluster.master_of("kept-0")
    stage.mark("kill")
    old.kill()
    old.restart()
    crowd.all_granted(stage.mark("it is back"))
    crowd.granted(200)
    stage.check(gaps={"it is back": BACK_MS + QUARANTINE_MS + SETTLE_MS})


def acknowledged_grants_outlive_moves_and_failovers(stage):
    """min-replicas, while a slot moves and a master hands over."""
    cluster = Cluster(stage, "--cluster-require-full-coverage", "no")
    crowd = two_daemons(stage, cluster, "--min-replicas", "1", "--replica-timeout", "500ms")
    crowd.granted(200)
    slot, old = cluster.slot("kept-0"), cluster.master_of("kept-0")
    cluster.move(cluster.slot("plain-0"), next(
        m for m in cluster.masters if m is not cluster.master_of("plain-0")))
    crowd.granted(200)
    stage.mark("order")
    cluster.replica_of[old].ask("CLUSTER", "FAILOVER")
    cluster.settled(slot, cluster.replica_of[old])
    crowd.all_granted(stage.mark("settled"))
    crowd.granted(200)
    stage.check(gaps={"settled": BACK_MS + QUARANTINE_MS})


CASES = [
    a_killed_master_is_replaced_and_the_others_go_on,
    a_cluster_that_needs_all_slots_comes_back,
    a_master_hands_over,
    a_hot_slot_moves_without_an_error,
    a_stopped_master_is_not_believed_when_it_goes_on,
    a_master_is_back_before_anybody_took_its_place,
    acknowledged_grants_outlive_moves_and_failovers,
]
