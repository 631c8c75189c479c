#include "cmd/observe/command_stats.h"

#include "cmd/cmd_priv.h"
#include "util/clock.h"

static const char *const WORDS[OUTCOME_COUNT] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_NULL] = "null",
    [OUTCOME_GONE] = "gone",
    [OUTCOME_ERR] = LATCHD_ERR,
    [OUTCOME_NOAUTH] = LATCHD_ERR_NOAUTH,
    [OUTCOME_WRONGPASS] = LATCHD_ERR_WRONGPASS,
    [OUTCOME_NOPERM] = LATCHD_ERR_NOPERM,
    [OUTCOME_NOPROTO] = LATCHD_ERR_NOPROTO,
    [OUTCOME_EXECABORT] = "EXECABORT",
    [OUTCOME_WRONGTYPE] = LATCHD_ERR_WRONGTYPE,
    [OUTCOME_NOTHELD] = LATCHD_ERR_NOTHELD,
    [OUTCOME_DEADLOCK] = LATCHD_ERR_DEADLOCK,
    [OUTCOME_BACKEND] = LATCHD_ERR_BACKEND,
    [OUTCOME_NOREPLICAS] = LATCHD_ERR_NOREPLICAS,
    [OUTCOME_CROSSSLOT] = LATCHD_ERR_CROSSSLOT,
    [OUTCOME_LIMIT] = LATCHD_ERR_LIMIT,
    [OUTCOME_GOAWAY] = LATCHD_ERR_GOAWAY,
    [OUTCOME_UNBLOCKED] = LATCHD_ERR_UNBLOCKED,
    [OUTCOME_OTHER] = "other",
};

enum outcome outcome_of_error(const char *word)
{
    for (int i = OUTCOME_ERR; i < OUTCOME_OTHER; i++) {
        if (strcmp(word, WORDS[i]) == 0) {
            return (enum outcome)i;
        }
    }
    return OUTCOME_OTHER;
}

const char *outcome_word(enum outcome outcome)
{
    return WORDS[outcome];
}

static struct command_stat *stat_of(struct cmd *c, const struct command *command)
{
    return &c->stats[command - COMMANDS];
}

void stats_rejected(const struct command_ctx *ctx)
{
    struct command_stat *stat;

    if (ctx->command == NULL) {
        ctx->cmd->unknown++;
        return;
    }
    stat = stat_of(ctx->cmd, ctx->command);
    stat->rejected++;
    if (outcome_is_error(ctx->outcome)) {
        stat->outcomes[ctx->outcome]++;
    }
}

static uint64_t elapsed_us(uint64_t started_us, uint64_t now_us)
{
    return now_us > started_us ? now_us - started_us : 0;
}

/* Answers of one round have one time: they leave together. */
static uint64_t answered_us(struct cmd *c)
{
    if (c->answered_us == 0) {
        c->answered_us = clock_boot_us();
    }
    return c->answered_us;
}

uint64_t stats_ran(const struct command_ctx *ctx)
{
    struct command_stat *stat = stat_of(ctx->cmd, ctx->command);
    uint64_t us = elapsed_us(ctx->started_us, clock_boot_us());

    if (!ctx->counted) {
        stat->calls++;
        ctx->cmd->calls++;
    }
    histogram_add(&stat->work, us);
    if (ctx->result == ANSWERED) {
        stat->failed += outcome_is_error(ctx->outcome);
        stat->outcomes[ctx->outcome]++;
    }
    return us;
}

void stats_answered(struct cmd *c, const struct command *command, uint64_t began_us,
                    enum outcome outcome)
{
    struct command_stat *stat = stat_of(c, command);

    histogram_add(&stat->wait, elapsed_us(began_us, answered_us(c)));
    stat->failed += outcome_is_error(outcome);
    stat->outcomes[outcome]++;
}

void cmd_reset_stats(struct cmd *c)
{
    memset(c->stats, 0, COMMAND_COUNT * sizeof(*c->stats));
    c->calls = 0;
    c->unknown = 0;
    denials_reset_totals(c->users.denials);
}

uint64_t stats_calls(const struct cmd *c)
{
    return c->calls;
}

uint64_t stats_outcome(const struct cmd *c, enum outcome outcome)
{
    uint64_t count = outcome == OUTCOME_ERR ? c->unknown : 0;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        count += c->stats[i].outcomes[outcome];
    }
    return count;
}

void cmd_stats_each(const struct cmd *c, cmd_stats_fn *fn, void *ctx)
{
    struct cmd_outcome outcomes[OUTCOME_COUNT];

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command_stat *stat = &c->stats[i];
        struct cmd_stats row = {
            .name = COMMANDS[i].name,
            .calls = stat->calls,
            .rejected = stat->rejected,
            .failed = stat->failed,
            .outcomes = outcomes,
            .work = &stat->work,
            .wait = (COMMANDS[i].flags & CMD_BLOCKING) != 0 ? &stat->wait : NULL,
        };

        if (stat->calls + stat->rejected == 0) {
            continue;
        }
        for (int k = 0; k < OUTCOME_COUNT; k++) {
            if (stat->outcomes[k] != 0) {
                outcomes[row.outcome_count++] =
                    (struct cmd_outcome){ WORDS[k], stat->outcomes[k] };
            }
        }
        fn(ctx, &row);
    }
}
