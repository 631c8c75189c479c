#include "support/op_words.h"

const char *const OP_WORDS[] = {
    [OP_ACQUIRE] = "acquire", [OP_ACQUIRE_BATCH] = "batch", [OP_RELEASE] = "release",
    [OP_RENEW] = "renew",     [OP_ATTACH] = "attach",       [OP_RESTORE] = "restore",
    [OP_INSPECT] = "inspect", [OP_QUEUE] = "queue",         [OP_LEAVE] = "leave",
    [OP_LIMIT] = "limit",     [OP_LATCH] = "latch",         [OP_SCAN] = "scan",
};

const char *const OP_STATUS_WORDS[] = {
    [OP_OK] = "ok",
    [OP_BUSY] = "busy",
    [OP_NOTHELD] = "notheld",
    [OP_ENDED] = "ended",
    [OP_OVER] = "over",
    [OP_ELSEWHERE] = "elsewhere",
    [OP_UPGRADE] = "upgrade",
    [OP_AMBIGUOUS] = "ambiguous",
    [OP_SKIPPED] = "skipped",
    [OP_NOSEMAPHORE] = "nosemaphore",
    [OP_BEYOND] = "beyond",
    [OP_OTHER_DATA] = "other-data",
    [OP_FULL] = "full",
    [OP_BEHIND] = "behind",
    [OP_WRONGTYPE] = "wrongtype",
    [OP_LATE] = "late",
    [OP_UNKNOWN] = "unknown",
    [OP_ERROR] = "error",
    [OP_NOREPLICAS] = "noreplicas",
};

const char *const RENEW_WORDS[] = {
    [RENEW_OK] = "ok",
    [RENEW_GONE] = "gone",
    [RENEW_ENDED] = "ended",
    [RENEW_ELSEWHERE] = "elsewhere",
    [RENEW_WRONGTYPE] = "wrongtype",
    [RENEW_WANTED] = "wanted",
    [RENEW_UNKNOWN] = "unknown",
};

const size_t OP_STATUS_WORD_COUNT = sizeof OP_STATUS_WORDS / sizeof *OP_STATUS_WORDS;
const size_t RENEW_WORD_COUNT = sizeof RENEW_WORDS / sizeof *RENEW_WORDS;
