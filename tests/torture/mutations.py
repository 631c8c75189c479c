"""Faults to be planted in latchd, of which mutants.py proves that they are caught.

Each is a name, what goes wrong, and edits: (file below src/, a text that is there exactly
once, what takes its place). Whoever changes such a text mends it here: the lint test
`mutations` says so.
"""
import dataclasses
import pathlib
import shutil
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "src/backend/script"))
import lua_scope  # noqa: E402  pylint: disable=wrong-import-position


@dataclasses.dataclass
class Mutation:
    """topology, faults: of the torture that is to find it, if no simulator does. simulated: the
    simulators are to find it although it is in a script."""

    name: str
    what: str
    edits: list
    topology: str = "single"
    faults: str = "half"
    minutes: float = 0  # at least
    simulated: bool = False


MUTATIONS = [
    Mutation(
        "void_priority", "PRIORITY changes nothing", [
            ("engine/wait_queue.c",
             "w->rank -= (int64_t)(w->spec->terms.priority * eng->cfg.priority_aging_ms);",
             "w->rank -= 0;"),
        ]),
    Mutation(
        "stuck_head", "the head that was being asked for is never passed afterwards", [
            ("engine/schedule.c",
             "struct waiter *passed = wait_queue_step_back(eng, lock);",
             "struct waiter *passed = NULL;"),
        ]),
    Mutation(
        "endless_queue", "QUEUE refuses nobody", [
            ("engine/wait_queue.c",
             "return places >= max;",
             "return places < max && places > max;"),
        ]),
    Mutation(
        "unlocked_place", "a request that was unlocked keeps its place", [
            ("engine/release.c",
             "struct waiter *w = waiter_of_ended(eng, lock, d);",
             "struct waiter *w = left < 0 ? waiter_of_ended(eng, lock, d) : NULL;"),
        ]),
    Mutation(
        "skipped_renewal", "every other hold is not renewed", [
            ("engine/hold.c",
             "hold_renewal_lease(eng, h) != 0) {",
             "hold_renewal_lease(eng, h) != 0 && h->token % 2 == 0) {"),
        ]),
    Mutation(
        "lent_is_held", "a name that is lent to another daemon is null at once", [
            ("engine/acquire.c",
             "    bool lent = r->lent && lock->loan == NULL &&",
             "    bool lent = r->lent && lock->loan != NULL &&"),
        ]),
    Mutation(
        "own_alarm", "a renewal of one's own counts as a change of the name", [
            ("engine/hold.c",
             "h->watch == WATCH_DOUBTED) {\n        set_watch(eng, h, WATCH_OFF);\n    }\n}\n\nstatic",
             "h->watch == WATCH_DOUBTED) {\n        set_watch(eng, h, h->watch);\n    }\n}\n\nstatic"),
        ]),
    Mutation(
        "unheard_flush", "that all names may have changed is not looked into", [
            ("engine/engine.c", "        holds_touched(eng, concerns, ctx);\n", ""),
        ]),
    Mutation(
        "unheard_change", "that a watched name was changed is not looked into", [
            ("engine/engine.c",
             "        if (h->watch == WATCH_ON) {\n",
             "        if (h->watch == WATCH_ON && h->token == 0) {\n"),
        ]),
    Mutation(
        "unseen_gap", "a name that is gone before it is watched counts as watched", [
            ("engine/hold.c",
             "h->watch == WATCH_ASKED && missing) {",
             "h->watch == WATCH_ASKED && missing && h->token == 0) {"),
        ]),
    Mutation(
        "watched_once", "a hold is not watched again behind its renewals", [
            ("engine/hold.c",
             "    } else if (is_old_enough(eng, h)) {\n",
             "    } else if (h->watch == WATCH_YOUNG && is_old_enough(eng, h)) {\n"),
        ]),
    Mutation(
        "endless_looks", "a hold that was looked at for nothing is watched again at once", [
            ("engine/hold.c",
             "h->watch == WATCH_PROBING) {\n        set_watch(eng, h, WATCH_OFF);\n    } else",
             "h->watch == WATCH_PROBING) {\n        set_watch(eng, h, WATCH_OFF);\n"
             "        ask_watch(eng, h);\n    } else"),
        ]),
    Mutation(
        "early_handover", "a lock is free when a part of its lease is over", [
            ("backend/script/lua/include/part_acquire.lua",
             "--@include include/part_free.lua\n",
             "--@include include/part_free.lua\n"
             "free = free or call('PTTL', lock) < lease * 0.8\n"),
        ]),
    Mutation(
        "early_release", "the first UNLOCK of an owner frees all of its entries", [
            ("backend/script/lua/include/part_release.lua",
             "local left = entry and not force and count > 1 and count - 1 or 0",
             "local left = 0"),
        ]),
    Mutation(
        "forgotten_rest", "a name does not rest after a hold with ATLEAST", [
            ("backend/script/lua/include/part_release.lua",
             "    rest_ms = rest_end - math.floor(now / 1000)\n",
             "    rest_ms = 0\n"),
        ]),
    Mutation(
        "lost_rest", "no daemon puts a rest back that Redis has lost", [
            ("engine/release.c",
             "if (r->release.rest_ms > 0) {",
             "if (r->release.rest_ms > 0 && eng->stopping) {"),
        ]),
    Mutation(
        "cut_rest", "RENEW with a short LEASE, and GRACE, end a rest early", [
            ("backend/script/lua/plain/renew.lua",
             "call('PEXPIRE', lock, math.max(lease, rest_left(lock)))",
             "call('PEXPIRE', lock, lease)"),
            ("backend/script/lua/plain/attach.lua",
             "call('PEXPIRE', lock, math.max(lease, rest_ms))",
             "call('PEXPIRE', lock, lease)"),
        ], simulated=True),
    Mutation(
        "lost_undo", "a grant that nobody can be told of is not taken back", [
            ("engine/pending_release.c",
             "if (is_superseded(eng, lock, spec)) {",
             "if (is_superseded(eng, lock, spec) || spec != NULL) {"),
        ]),
    Mutation(
        "token_reuse", "the tokens of one twentieth of a second are the same", [
            ("backend/script/lua/include/part_grant.lua",
             "local token = last + 1",
             "local token = last"),
            ("backend/script/lua/include/part_grant.lua",
             "token = now\n",
             "token = now - now % 50000\n"),
            ("backend/script/lua/include/part_grant.lua",
             "token = seen + 1",
             "token = seen + 0"),
            ("backend/script/lua/plain/acquire_batch.lua",
             "= now, time[1] .. sub('00000' .. time[2], -6)",
             "= now - now % 50000, format('%.0f', now - now % 50000)"),
        ]),
    Mutation(
        "no_recheck", "nothing is asked again once the subscription is there", [
            ("engine/engine.c",
             "latch_watch_note(eng, lock);\n    if (lock_head(lock) != NULL) {",
             "latch_watch_note(eng, lock);\n    if (eng->stopping) {"),
        ]),
    Mutation(
        "lost_wake", "a release tells nobody", [
            ("backend/script/lua/include/part_release.lua",
             "redis.pcall('PUBLISH', channel, '0')\n        call('DEL'",
             "call('DEL'"),
            ("backend/script/lua/include/part_release.lua",
             "redis.pcall('PUBLISH', channel, '0')\n-- The last",
             "--"),
            ("backend/script/lua/plain/release_batch.lua",
             "try('PUBLISH', 'redisson_lock__channel:' .. tag, '0')",
             ""),
        ], faults="none"),
    Mutation(
        "fence_ignored", "a token is given whatever the fence key says", [
            ("backend/script/lua/include/part_grant.lua",
             "local token = last + 1",
             "local token = last - last + 1"),
            ("backend/script/lua/plain/acquire_batch.lua",
             "\n            and last < token_text",
             ""),
        ], faults="clock_back"),
    Mutation(
        "minority", "one master less than a majority is enough", [
            ("backend/quorum/quorum_tally.c",
             "    if (most.count < p->need) {",
             "    if (most.count + 1 < p->need) {"),
            ("backend/quorum/quorum_tally.c",
             "    if (most.count - most.elsewhere < p->need) {",
             "    if (most.count + 1 - most.elsewhere < p->need) {"),
            ("backend/quorum/quorum_tally.c",
             "    if (ok >= p->need) {\n        return tally_granted",
             "    if (ok + 1 >= p->need) {\n        return tally_granted"),
        ], topology="quorum"),
    Mutation(
        "foreign_release", "an UNLOCK ends whatever hold is there", [
            ("backend/script/lua/include/part_target.lua",
             "    if found[2] then\n        field, count = candidate, "
             "tonumber(found[2])",
             "    local first = call('HKEYS', lock)[1]\n    if first then\n        "
             "field, count = first, 1"),
        ]),
    Mutation(
        "silent_loss", "whose lease is over is not told", [
            ("engine/hold.c",
             "if (!hold_is_ending(h) || ran_out(eng, h)) {\n            "
             "hold_expired(eng, h);",
             "if (!hold_is_ending(h) || ran_out(eng, h)) {\n            "
             "hold_forget(eng, h, true);"),
        ]),
    Mutation(
        "queue_jumped", "a fair lock that is free goes to whoever asks", [
            ("backend/script/lua/fair/fair_acquire.lua",
             "if free and ours and ARGV[7]",
             "if free and ARGV[7]"),
        ], faults="none", minutes=1),
    Mutation(
        "entered_twice", "an ID that is sent again is one more entry of its owner", [
            ("backend/script/lua/include/part_find.lua",
             "elseif owner_kind == 'i' or call('HEXISTS', entries_key, claim_entry) == 1 "
             "then",
             "elseif owner_kind == 'i' then"),
        ]),
    Mutation(
        "granted_twice", "an ID that is sent again is given a token of its own", [
            ("backend/script/lua/include/part_attach.lua",
             "if owner_kind == 'a' or (string.sub(who, 1, 1) == 'f' and string.sub(who, "
             "18) == claim) then",
             "if owner_kind == 'a' or who == '' then"),
        ]),
    Mutation(
        "late_grant", "a token is given although its lease may be over", [
            ("engine/inflight_op.c",
             "(eng->now - asked.at) * 2 <= asked.lease_ms",
             "asked.at <= eng->now"),
        ], faults="stop_redis"),
    Mutation(
        "long_belief", "a hold is vouched for beyond its lease", [
            ("engine/acquire_spec.h",
             "sent + (lease_ms > margin ? lease_ms - margin : 0)",
             "sent + lease_ms + margin * 40"),
        ], faults="stop_redis"),
    Mutation(
        "reader_beside_writer", "readers come in while a writer is there", [
            ("backend/script/lua/rw/rw_acquire.lua",
             "local beside = not for_write and mode == 'read' and not only_reenter",
             "local beside = not for_write and not only_reenter"),
        ]),
    Mutation(
        "not_put_back", "what a failover lost is not put back", [
            ("engine/engine.c",
             "quarantine_exempt(eng, lock);\n            restore_lock(eng, lock);",
             "quarantine_exempt(eng, lock);"),
            ("engine/engine.c",
             "            restore_lock(eng, lock);\n        }\n        release_log_replay",
             "            lock_touch(eng, lock);\n        }\n        release_log_replay"),
        ], topology="sentinel", faults="lag"),
    Mutation(
        "one_more", "a semaphore gives one permit more than it has", [
            ("backend/script/lua/semaphore/sem_acquire.lua",
             "if only_reenter or permits > free then",
             "if only_reenter or permits > free + 1 then"),
        ]),
    Mutation(
        "one_less", "of several permits one does not come back", [
            ("backend/script/lua/include/part_sem_remove.lua",
             "free = call('INCRBY', lock, removed)",
             "free = call('INCRBY', lock, math.max(1, removed - 1))"),
        ]),
    Mutation(
        "no_end", "a lock is written without a lease", [
            ("backend/script/lua/include/part_give.lua",
             "local set = redis.pcall('PEXPIRE', lock, math.max(lease, atleast or 0))",
             "local set = lease and 1"),
            ("backend/script/lua/plain/acquire_batch.lua",
             "try('PEXPIREAT', lock, ends), nil",
             "1, nil"),
        ]),
    Mutation(
        "older_leader", "a leader that a failover brought back is told of again", [
            ("engine/leader_watch.c",
             "return leader->token != 0 && leader->token < token;",
             "return token == 1;"),
        ]),
    Mutation(
        "stale_leader", "a follower is told who led before it asked", [
            ("engine/name_watch.c",
             "watch->known_op > c->follower.asked_op &&",
             "watch->known_op + 2 > c->follower.asked_op &&"),
        ]),
    Mutation(
        "unseen_leader", "what nobody tells of a leader is not looked for", [
            ("engine/leader_watch.h",
             "LEADER_LOOK_MS = 1000,",
             "LEADER_LOOK_MS = 1000000,"),
        ]),
    Mutation(
        "lent_leader", "the token of a loan elsewhere is a leader's", [
            ("engine/inspect.c",
             "return h == NULL && who.len > 0 && who.ptr[0] == 'l' &&",
             "return false && h == NULL && who.len > 0 && who.ptr[0] == 'l' &&"),
        ]),
    Mutation(
        "loan_unmarked", "the fence key does not say that the name is lent", [
            ("backend/script/lua/include/part_give.lua",
             "(lent and ' l' or ' a') .. claim",
             "(lent and ' a' or ' a') .. claim"),
        ], simulated=True),
    Mutation(
        "lost_data", "a hand-over forgets the data of the next holder", [
            ("backend/script/lua/include/part_give.lua",
             "claim .. before .. rest .. data,",
             "claim .. before .. rest,"),
        ]),
    Mutation(
        "wrong_heir", "every other UNLOCK TO hands over to the first waiter", [
            ("engine/release.c",
             "named != NULL ? named : lock_head(lock);",
             "named != NULL && eng->now % 2 == 0 ? named : lock_head(lock);"),
        ]),
    # Of names that are lent to a daemon:
    Mutation(
        "loan_overlaps", "a block of tokens begins before the last token", [
            ("backend/script/lua/include/part_grant.lua",
             "math.max(last, tonumber(seen), now - block) + 1",
             "now - block + 1"),
            ("backend/script/lua/plain/acquire_batch.lua",
             "math.max(tonumber(sub(last, 1, 16)), tonumber(seen), now - block) + 1",
             "now - block + 1"),
        ], simulated=True),
    Mutation(
        "loan_found_again", "what was granted before is taken for a loan with a block", [
            ("engine/acquire.c",
             "hold_from_loan(eng, e->hold, r, asked);\n    }\n",
             "hold_from_loan(eng, e->hold, r, asked);\n"
             "    } else if (spec->local && asked.claimed_before) {\n"
             "        e->hold->loan_token = r->token + 1000;\n"
             "        loan_begin(eng, e->hold, r->token + 1000, asked);\n    }\n"),
        ]),
    Mutation(
        "loan_outlives_window", "a loan lends for as long as its tokens last", [
            ("engine/acquire.c",
             "read_time(eng) >= loan->lends_until) {",
             "read_time(eng) < loan->lends_until - loan->lends_until) {"),
            ("engine/schedule.c",
             "heap_armed(&loan->timer.node) && eng->now < loan->lends_until) {",
             "eng->up) {"),
        ]),
    Mutation(
        "loan_in_flight", "a hold ends in memory while the op that settles it is in flight", [
            ("engine/watchdog.c",
             "loan_set_state(hold_loan(h), LOAN_SETTLING);",
             "hold_loan(h)->state = LOAN_HELD;"),
        ]),
    Mutation(
        "loan_vouch_ends", "a window is taken for the end of a hold from memory", [
            ("engine/acquire.c",
             "h->loan_token = r->loan_token;\n",
             "h->loan_token = r->loan_token;\n"
             "        h->until = h->began + eng->cfg.local_window_ms;\n"),
        ]),
    Mutation(
        "loan_kept_at_stop", "a daemon that stops keeps its idle loans", [
            ("engine/schedule.c",
             "list_empty(&lock->releases) && !eng->stopping &&\n"
             "        list_empty(&lock->waiting_for_restore)",
             "list_empty(&lock->releases) &&\n"
             "        list_empty(&lock->waiting_for_restore)"),
        ]),
    Mutation(
        "loan_lowers_fence", "who is settled sets the fence key, whoever's it is", [
            ("backend/script/lua/plain/renew.lua",
             "    call('HSET', lock, field, '1')\n",
             "    call('HSET', lock, field, '1')\n"
             "    call('SET', tagged('latchd:fence:', lock), string.sub(field, 8) - 60000000 "
             ".. ' a', 'PX', 600000)\n"),
        ], faults="clock_back", simulated=True),
    Mutation(
        "loan_dropped_by_batch", "a batch of renewals lacks the loans of its holds", [
            ("engine/watchdog.c",
             "hold_loan(h) != NULL ? h->loan_token : 0,",
             "0,"),
        ]),
    Mutation(
        "loan_never_yields", "whom a name is lent with gets it before others", [
            ("engine/release.c",
             "release->next.block_us = next != NULL ? local_grant_block(eng, next) : 0;\n",
             "release->next.block_us = next != NULL ? local_grant_block(eng, next) : 0;\n"
             "    release->yield = release->next.block_us != 0 ? YIELD_NEVER : release->yield;\n"),
        ]),
    Mutation(
        "loan_held_twice", "a name is granted from memory while somebody has it", [
            ("engine/schedule.c",
             "    case LOAN_HELD:\n    case LOAN_SETTLING:\n        return step_lent_hold",
             "    case LOAN_HELD:\n"
             "        if (lock_head(lock) != NULL) {\n"
             "            return step_idle_loan(eng, lock, loan);\n"
             "        }\n"
             "        return step_lent_hold(eng, lock, loan->holder);\n"
             "    case LOAN_SETTLING:\n        return step_lent_hold"),
            ("engine/acquire.c",
             "lock->fair == NULL && list_empty(&lock->holds) &&",
             "lock->fair == NULL &&"),
            ("engine/loan.c",
             "[LOAN_HELD] = { \"HELD\", INTO(LOAN_IDLE) |",
             "[LOAN_HELD] = { \"HELD\", INTO(LOAN_HELD) | INTO(LOAN_IDLE) |"),
        ]),
    Mutation(
        "loan_renewed_late", "a renewed loan lends from when the answer came", [
            ("engine/loan.c",
             "uint64_t until = asked.at + eng->cfg.local_window_ms;",
             "uint64_t until = eng->now + eng->cfg.local_window_ms;"),
        ]),
    Mutation(
        "loan_renewed_for_ever", "a loan is renewed as long as its name is asked for", [
            ("engine/loan.c",
             "loan->lends_until < loan->ends_at &&\n",
             "loan->ends_at != 0 &&\n"),
            ("engine/loan.c",
             "loan->lends_until = until < loan->ends_at ? until : loan->ends_at;",
             "loan->lends_until = until;"),
        ]),
    Mutation(
        "count_again", "a COUNT that got no answer is sent again as another request", [
            ("engine/latch.c",
             "    if (pending_request_was_retried(eng, o, r)) {\n",
             "    if (c != NULL && c->target.entry.len == 0 &&\n"
             "        (r->status == OP_UNKNOWN || r->status == OP_LATE)) {\n"
             "        c->latch.op.request =\n"
             "            make_serial(eng, c->latch.serial, sizeof(c->latch.serial));\n"
             "    }\n"
             "    if (pending_request_was_retried(eng, o, r)) {\n"),
        ]),
    Mutation(
        "forgotten_ids", "a latch does not remember who has counted it down", [
            ("backend/script/lua/latch/latch_count.lua",
             "call('ZADD', counted_key, string.format('%.0f', gen), request)",
             "call('ZADD', counted_key, string.format('%.0f', gen), request .. ARGV[1])"),
        ], simulated=True),
    Mutation(
        "deaf_await", "the message that a latch is open wakes nobody", [
            ("engine/latch.c",
             "        watch->heard_after = eng->next_op;\n"
             "    }\n"
             "    name_watch_note(eng, &watch->watch);\n",
             "        watch->heard_after = eng->next_op;\n"
             "    }\n"),
        ]),
    Mutation(
        "blind_await", "a latch whose message was lost is not looked at", [
            ("engine/latch.c",
             "name_watch_next_look_in(watch, eng->cfg.recheck_ms);",
             "name_watch_next_look_in(watch, eng->cfg.recheck_ms * 1000);"),
        ]),
    Mutation(
        "lost_counts", "what a failover took back of a latch is not counted again", [
            ("engine/latch.c",
             "if (concerns == NULL || concerns(ctx, lock_group(eng, logged_name(logged)))) {",
             "if (concerns != NULL && concerns(ctx, lock_group(eng, logged_name(logged)))) {"),
        ]),
    Mutation(
        "brief_memory", "what was counted before a long outage is not counted again", [
            ("engine/latch.c",
             "while (!log->is_paused && (logged = ",
             "while ((logged = "),
        ]),
    Mutation(
        "count_in_another", "what was lost with its latch is counted in the next one", [
            ("engine/latch.c",
             "        .generation = logged->generation,\n",
             ""),
        ]),
    Mutation(
        "stale_opening", "an AWAIT is answered by a look that was sent before it came", [
            ("engine/name_watch.c",
             "return watch->is_known && watch->known_op > c->follower.asked_op &&",
             "return watch->is_known &&"),
        ]),
    Mutation(
        "gone_is_open", "a latch that was deleted and set anew counts as opened", [
            ("engine/latch.c",
             "    if (generation == told->last_gone) {\n",
             "    if (generation == told->last_gone && told->generation == 0) {\n"),
            ("engine/latch.c",
             "generation > told->last_gone && generation > told->last_lost",
             "generation >= told->last_gone && generation > told->last_lost"),
        ]),
    Mutation(
        "trusted_past", "what marks say after a failover is taken for what was awaited", [
            ("engine/latch.c",
             "            c->follower.is_doubted = true;",
             "            c->follower.is_doubted = false;"),
        ]),
    Mutation(
        "next_latch", "who waits for a latch that was opened and set anew waits for the new one", [
            ("engine/latch.c",
             "            c->follower.generation = watch->told.generation;\n",
             ""),
        ]),
    Mutation(
        "place_kept", "a place that a failover brought back late stays in the fair queue", [
            ("engine/release.c",
             "if (r->release.own_head) {",
             "if (r->release.own_head && r->moved) {"),
        ]),
    Mutation(
        "unlock_forgotten", "what is unlocked elsewhere while a failover has lost it is put back", [
            ("engine/release.c",
             "may_come_back(eng, lock, d)\n               ? TOMBSTONE_OF_DOUBT",
             "d->tries == 0\n               ? TOMBSTONE_OF_DOUBT"),
        ]),
    Mutation(
        "unlock_not_awaited", "what another daemon may put back is told not held at once", [
            ("engine/release.c",
             "if (await_restore(eng, lock, d)) {",
             "if (d->tries == 0 && await_restore(eng, lock, d)) {"),
        ]),
    Mutation(
        "renewal_not_held", "a RENEW is told not held although the hold may be put back", [
            ("engine/watchdog.c",
             "if (may_come_back(eng, c, r)) {",
             "if (eng->quorum && may_come_back(eng, c, r)) {"),
        ]),
]


def misfit(mutation, source):
    """Why the scripts do not fit together with the mutation in them, or None."""
    lua = source / "backend/script/lua"
    with tempfile.TemporaryDirectory() as folder:
        planted = pathlib.Path(folder) / "backend/script/lua"
        shutil.copytree(lua, planted)
        for file, old, new in mutation.edits:
            path = pathlib.Path(folder) / file
            if path.suffix == ".lua":
                path.write_text(path.read_text().replace(old, new))
        scripts = [path for path in sorted(planted.glob("*/*.lua"))
                   if path.parent.name != "include"]
        try:
            lua_scope.check(scripts, planted)
        except lua_scope.Broken as broken:
            return str(broken)
    return None


def problems(source):
    """What does not fit the sources that there are."""
    for mutation in MUTATIONS:
        found = False
        for file, old, _ in mutation.edits:
            count = (source / file).read_text().count(old)
            if count != 1:
                found = True
                yield f"{mutation.name}: {count} times in src/{file}:\n{old}"
        if not found and any(file.endswith(".lua") for file, *_ in mutation.edits):
            why = misfit(mutation, source)
            if why is not None:
                yield f"{mutation.name} cannot be built: {why}"
