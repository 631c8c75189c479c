"""The same, where they meet in a Redis Cluster: each name at one of its masters."""
from actors import Ours, Theirs, asleep
from checks_crash import (a_killed_jvm_blocks_latchd_for_its_ttl_only,
                          a_killed_latchd_blocks_redisson_for_its_ttl_only)
from checks_fair import (a_fair_unlock_of_redisson_wakes_latchd,
                         an_unlock_of_latchd_wakes_a_fair_lock, fair_ones_take_turns,
                         they_are_served_in_the_order_of_arrival)
from checks_many import (an_unlock_of_a_multi_lock_wakes_latchd,
                         an_unlock_of_many_wakes_a_multi_lock)
from checks_plain import (an_unlock_of_latchd_wakes_redisson,
                          an_unlock_of_redisson_wakes_latchd, each_can_throw_the_other_out,
                          fenced_locks_exclude_and_count_in_one_sequence,
                          the_greedy_leave_something_to_the_other_side, they_take_turns)
from checks_rw import (a_writer_of_latchd_that_reads_on_wakes_readers,
                       an_unlock_of_latchd_wakes_readers_and_writers,
                       an_unlock_of_redisson_wakes_readers_and_writers,
                       readers_of_both_come_in_together, they_read_and_write)
from checks_semaphore import (a_larger_limit_of_redisson_serves_latchd_at_once,
                              a_release_of_latchd_wakes_a_semaphore_of_redisson,
                              a_release_of_redisson_wakes_a_waiter_for_permits,
                              never_more_are_inside_than_there_are_permits,
                              permits_of_one_side_count_for_the_other)
from expect import check

LOCK_CHANNEL = "redisson_lock__channel:{%s}"


def each_version_listens_in_its_own_way(world):
    """The new one to sharded channels, the old one, as we set it, to plain ones."""
    name = "heard"
    channel = LOCK_CHANNEL % name
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        holder = Ours(latchd, "plain", name)
        holder.take()
        waiter = Theirs(world.jvm, "listener", "plain", name)
        waiter.wait()
        asleep(redis, waiter)
        counts = [redis.at(name).ask("PUBSUB", how, channel)[1]
                  for how in ("NUMSUB", "SHARDNUMSUB")]
        check(counts == ([0, 1] if world.sharded else [1, 0]), f"{counts} listen")
        holder.leave()
        waiter.got()
        waiter.leave()


CHECKS = [
    the_greedy_leave_something_to_the_other_side,
    each_version_listens_in_its_own_way,
    they_take_turns,
    an_unlock_of_redisson_wakes_latchd,
    an_unlock_of_latchd_wakes_redisson,
    fenced_locks_exclude_and_count_in_one_sequence,
    each_can_throw_the_other_out,
    fair_ones_take_turns,
    a_fair_unlock_of_redisson_wakes_latchd,
    an_unlock_of_latchd_wakes_a_fair_lock,
    they_are_served_in_the_order_of_arrival,
    they_read_and_write,
    an_unlock_of_redisson_wakes_readers_and_writers,
    an_unlock_of_latchd_wakes_readers_and_writers,
    readers_of_both_come_in_together,
    a_writer_of_latchd_that_reads_on_wakes_readers,
    an_unlock_of_a_multi_lock_wakes_latchd,
    an_unlock_of_many_wakes_a_multi_lock,
    permits_of_one_side_count_for_the_other,
    a_release_of_redisson_wakes_a_waiter_for_permits,
    a_release_of_latchd_wakes_a_semaphore_of_redisson,
    never_more_are_inside_than_there_are_permits,
    a_larger_limit_of_redisson_serves_latchd_at_once,
]

WAITING = [
    a_killed_jvm_blocks_latchd_for_its_ttl_only,
    a_killed_latchd_blocks_redisson_for_its_ttl_only,
]
