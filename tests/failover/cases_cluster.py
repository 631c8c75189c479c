"""A Redis Cluster that fails over, and is resharded."""
from clusters import Cluster
from stage import WATCHDOG_MS, crowded
import load

BACK_MS = 2000  # from when the cluster has settled to grants
QUARANTINE_MS = WATCHDOG_MS  # of names that nobody here held
ELSEWHERE_MS = 1000  # of names whose master is well: there is no outage
HOT = "{hot}"


def two_daemons(stage, cluster):
    for name in "ab":
        stage.latchd(name, cluster.url)
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
    """CLUSTER FAILOVER: nothing is lost, though nobody but the two of them knows."""
    cluster = Cluster(stage)
    crowd = two_daemons(stage, cluster)
    crowd.granted(200)
    slot, old = cluster.slot("kept-0"), cluster.master_of("kept-0")
    stage.mark("order")
    cluster.replica_of[old].ask("CLUSTER", "FAILOVER")
    cluster.settled(slot, cluster.replica_of[old])
    crowd.all_granted(stage.mark("settled"))
    crowd.granted(200)
    stage.check(gaps={"settled": BACK_MS + QUARANTINE_MS})


def a_hot_slot_moves_without_an_error(stage):
    """There and on, under load."""
    cluster = Cluster(stage)
    for name in "ab":
        stage.latchd(name, cluster.url)
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
        gaps[f"move {turn} begins"] = gaps[f"move {turn} is over"] = BACK_MS
        stage.mark(f"move {turn} begins")
        cluster.move(slot, new)
        crowd.all_granted(stage.mark(f"move {turn} is over"))
    crowd.granted(200)
    stage.check(gaps=gaps, no_errors=True)


CASES = [
    a_killed_master_is_replaced_and_the_others_go_on,
    a_cluster_that_needs_all_slots_comes_back,
    a_master_hands_over,
    a_hot_slot_moves_without_an_error,
]
