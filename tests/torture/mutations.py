"""Faults to be planted in latchd, of which mutants.py proves that they are caught.

Each is a name, what goes wrong, and edits: (file below src/, a text that is there exactly
once, what takes its place). Whoever changes such a text mends it here: the lint test
`mutations` says so.
"""
import dataclasses


@dataclasses.dataclass
class Mutation:
    """topology, faults: of the torture that is to find it, if no simulator does."""

    name: str
    what: str
    edits: list
    topology: str = "single"
    faults: str = "half"
    minutes: float = 0  # at least


MUTATIONS = [
    Mutation(
        "skipped_renewal", "every other hold is not renewed", [
            ("core/watchdog.c", "list_empty(&h->in_due) && asked_lease(l, h) != 0) {",
             "list_empty(&h->in_due) && asked_lease(l, h) != 0 && h->token % 2 == 0) {")]),
    Mutation(
        "early_hand_over", "a lock is free when a part of its lease is over", [
            ("store/lua/part_acquire.lua", "local free = call('HLEN', lock) == 0",
             "local free = call('HLEN', lock) == 0 or call('PTTL', lock) < lease * 0.8")]),
    Mutation(
        "early_release", "the first UNLOCK of an owner frees all of its entries", [
            ("store/lua/part_release.lua",
             "local left = entry and not force and count > 1 and count - 1 or 0",
             "local left = 0")]),
    Mutation(
        "lost_undo", "a grant that nobody can be told of is not taken back", [
            ("core/duty.c", "if (superseded(l, lock, want)) {",
             "if (superseded(l, lock, want) || want != NULL) {")]),
    Mutation(
        "token_reuse", "the tokens of one twentieth of a second are the same", [
            ("store/lua/part_grant.lua", "local token = last + 1", "local token = last"),
            ("store/lua/part_grant.lua", "token = now\n", "token = now - now % 50000\n"),
            ("store/lua/part_grant.lua", "token = seen + 1", "token = seen + 0"),
            ("store/lua/acquire_some.lua", "= now, time[1] .. sub('00000' .. time[2], -6)",
             "= now - now % 50000, format('%.0f', now - now % 50000)")]),
    Mutation(
        "no_recheck", "nothing is asked again once the subscription is there", [
            ("core/lock.c", "->sub_op = l->next_op;\n    if (lock_head(lock) != NULL) {",
             "->sub_op = l->next_op;\n    if (lock->unacked) {")]),
    Mutation(
        "lost_wake", "a release tells nobody", [
            ("store/lua/part_release.lua", "call('PUBLISH', channel, '0')\n        call('DEL'",
             "call('DEL'"),
            ("store/lua/part_release.lua", "call('PUBLISH', channel, '0')\n-- The last", "--"),
            ("store/lua/release_some.lua", "try('PUBLISH', 'redisson_lock__channel:' .. tag, "
             "'0')", "0")],
        faults="none"),
    Mutation(
        "fence_ignored", "a token is given whatever the fence key says", [
            ("store/lua/part_grant.lua", "local token = last + 1", "local token = 1"),
            ("store/lua/acquire_some.lua", "\n            and last < token_text", "")],
        faults="clock_back"),
    Mutation(
        "minority", "one master less than a majority is enough", [
            ("store/ballot_join.c", "    if (most.count < p->need) {",
             "    if (most.count + 1 < p->need) {"),
            ("store/ballot_join.c", "    if (most.count - most.elsewhere < p->need) {",
             "    if (most.count + 1 - most.elsewhere < p->need) {"),
            ("store/ballot_join.c", "    if (ok >= p->need) {\n        return granted",
             "    if (ok + 1 >= p->need) {\n        return granted")], topology="quorum"),
    Mutation(
        "foreign_release", "an UNLOCK ends whatever hold is there", [
            ("store/lua/part_target.lua", "    if found[2] then\n        field, count = "
             "candidate, tonumber(found[2])", "    local first = call('HKEYS', lock)[1]\n"
             "    if first then\n        field, count = first, 1")]),
    Mutation(
        "silent_loss", "whose lease is over is not told", [
            ("core/hold.c", "if (!hold_ending(h) || ran_out(l, h)) {\n            "
             "hold_expired(l, h);", "if (!hold_ending(h) || ran_out(l, h)) {\n            "
             "hold_forget(l, h, true);")]),
    Mutation(
        "queue_jumped", "a fair lock that is free goes to whoever asks", [
            ("store/lua/fair_acquire.lua", "if free and ours and ARGV[7]",
             "if free and ARGV[7]")], faults="none", minutes=1),
    Mutation(
        "entered_twice", "an ID that is sent again is one more entry of its owner", [
            ("store/lua/part_find.lua",
             "elseif kind == 'i' or call('HEXISTS', entries_key, claim_entry) == 1 then",
             "elseif kind == 'i' then")]),
    Mutation(
        "granted_twice", "an ID that is sent again is given a token of its own", [
            ("store/lua/part_attach.lua",
             "if kind == 'a' or (string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == "
             "claim) then", "if kind == 'a' then")]),
    Mutation(
        "late_grant", "a token is given although its lease may be over", [
            ("core/work.c", "(l->now - asked.at) * 2 <= asked.lease_ms",
             "asked.at <= l->now")], faults="stop_redis"),
    Mutation(
        "long_belief", "a hold is vouched for beyond its lease", [
            ("core/hold.c", "sent + (lease_ms > margin ? lease_ms - margin : 0)",
             "sent + lease_ms + margin * 40")], faults="stop_redis"),
    Mutation(
        "reader_beside_writer", "readers come in while a writer is there", [
            ("store/lua/rw_acquire.lua", "local beside = not for_write and mode == 'read' and "
             "not reenter_only", "local beside = not for_write and not reenter_only")]),
    Mutation(
        "not_put_back", "what a failover lost is not put back", [
            ("core/restore.c", "exempt(l, lock);\n            restore_lock(l, lock);",
             "exempt(l, lock);"),
            ("core/locks.c", "restore_lock(l, lock);", "lock_touch(l, lock);")], topology="sentinel", faults="lag"),
    Mutation(
        "no_end", "a lock is written without a lease", [
            ("store/lua/part_give.lua", "local set = redis.pcall('PEXPIRE', lock, lease)",
             "local set = 1"),
            ("store/lua/acquire_some.lua", "try('PEXPIREAT', lock, ends), nil", "1, nil")]),
]


def problems(source):
    """What does not fit the sources that there are."""
    for mutation in MUTATIONS:
        for file, old, _ in mutation.edits:
            count = (source / file).read_text().count(old)
            if count != 1:
                yield f"{mutation.name}: {count} times in src/{file}:\n{old}"
