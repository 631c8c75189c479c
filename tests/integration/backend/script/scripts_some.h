/* scripts_some: for tests of the scripts that do several simple ops in one call: three
 * names, what is asked of them, and what is there then. */
#ifndef LATCHD_TESTS_SCRIPTS_SOME_H
#define LATCHD_TESTS_SCRIPTS_SOME_H

#include "backend/script/script_codec.h"
#include "scripts_peer.h"

enum { THREE = 3, SOME_TEXT_MAX = 64 };

extern const char *const SOME_NAMES[THREE];

/* Long enough for any machine. */
struct op_times some_times(void);
/* The same requests for the same names each time. */
void some_acquires(struct op ops[static THREE]);
/* Ends an anonymous hold; `text` outlives it. */
struct op some_end(const char *name, uint64_t token, char text[static SOME_TEXT_MAX]);
/* Takes all of them; what ends that. */
void some_holds(struct op releases[static THREE]);

/* Of the last call. */
void some_expect(size_t i, enum op_status status);
void some_near_pttl(const char *key, int64_t want);
bool some_is_there(const char *key);

#endif
