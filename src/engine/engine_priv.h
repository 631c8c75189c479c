/* engine_priv: what nearly every file of engine/ needs. Private to engine/; its headers
 * name what they need themselves. */
#ifndef LATCHD_ENGINE_ENGINE_PRIV_H
#define LATCHD_ENGINE_ENGINE_PRIV_H

#include "engine/acquire.h"
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/fair.h"
#include "engine/followed_names.h"
#include "engine/grace.h"
#include "engine/hold.h"
#include "engine/inflight_op.h"
#include "engine/inspect.h"
#include "engine/latch.h"
#include "engine/loan.h"
#include "engine/lock.h"
#include "engine/mlock.h"
#include "engine/name_watch.h"
#include "engine/op.h"
#include "engine/peers.h"
#include "engine/pending_release.h"
#include "engine/pending_request.h"
#include "engine/quarantine.h"
#include "engine/release_log.h"
#include "engine/renew_queue.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/timer.h"
#include "engine/trouble.h"
#include "engine/user_check.h"
#include "engine/value_hold.h"
#include "engine/wait_graph.h"
#include "engine/waiter.h"
#include "engine/yield.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/recent.h"
#include "util/span.h"
#include "util/table.h"
#include "util/text.h"

#include <stdio.h>
#include <stdlib.h>

#endif
