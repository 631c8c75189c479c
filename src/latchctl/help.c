/* The text of `latchctl --help`. */
#include "latchctl/options.h"

#include <ctype.h>
#include <stdio.h>

static const char BEFORE[] =
    "usage: latchctl [options] run NAME [--] COMMAND [ARGUMENT ...]\n"
    "       latchctl [options] run NAME -c TEXT\n"
    "       latchctl [options] lock NAME --lease TIME | unlock NAME --token TOKEN\n"
    "       latchctl [options] top | why NAME | ls [GLOB] | leader NAME | force NAME\n"
    "       latchctl [options] latch NAME set N | count | await | delete | info\n"
    "\n"
    "  run    take the lock NAME, run COMMAND, release the lock\n"
    "  lock   take it and print its token, for a part of a script that ends with\n"
    "  unlock release it\n"
    "  top    the hottest names, live\n"
    "  why    who holds NAME, who waits for it, and what to do about it\n"
    "  ls     the names that are held or waited for\n"
    "  leader who holds NAME alone: token, owner and data\n"
    "  latch  set NAME, count it down, wait until it is open\n"
    "  force  free NAME, whatever its holder thinks\n"
    "\n"
    "Which latchd:\n"
    "  -h, --host HOST     127.0.0.1\n"
    "  -p, --port PORT     5625\n"
    "  -s, --socket PATH   a unix socket\n"
    "  -u, --uri URL       redis://[user:password@]host[:port][,host[:port] ...],\n"
    "                      rediss:// for TLS, or unix:///path; LATCHD_URL in the\n"
    "                      environment does the same\n"
    "      --user USER     the password is in LATCHCTL_AUTH or REDISCLI_AUTH\n"
    "  -a, --pass PASSWORD others can see this one\n"
    "      --tls           with TLS; its certificate must be of the system's "
    "authorities\n"
    "      --cacert FILE | --cacertdir DIR    or of these\n"
    "      --sni NAME      and for this name, instead of HOST\n"
    "      --insecure      or whatever it is\n"
    "      --cert FILE, --key FILE            the one to show to latchd\n"
    "\n"
    "run, and lock:\n"
    "  -w, --wait TIME     give up after so long; without it, never\n"
    "  -n, --no-wait       give up at once\n";

static const char AFTER[] =
    "      --and NAME      take this lock, too: all or none\n"
    "  -c, --command TEXT  run by the shell, in place of COMMAND\n"
    "      --lease TIME    how long the lock outlives a machine that died (30s);\n"
    "                      renewed every third of it while COMMAND runs; `lock`: "
    "never\n"
    "  -k, --kill-after TIME\n"
    "                      from TERM to KILL when the lock is lost (10s, and never\n"
    "                      beyond the lease)\n"
    "  -E, --conflict-exit-code N   not taken within --wait, --queue (1)\n"
    "      --lost-exit-code N       lost while COMMAND ran (124)\n"
    "      --verbose       say what happens\n"
    "\n"
    "top: --interval TIME, --once, --sort waiters|wait|held|name, --count N\n"
    "ls: [--match] GLOB, --count N, --all: also what others have left in Redis\n"
    "force: --any | --token T | --owner O; or --match GLOB instead of NAME, which "
    "shows\n"
    "       what is held and asks first (--yes: does not ask)\n"
    "latch: --id ID counts once, --wait TIME, --no-wait\n"
    "leader: --follow, each change on a line of its own\n"
    "\n"
    "TIME is in seconds, or with a unit: 500ms, 30s, 5m, 1h, 1d. latchctl(1) tells "
    "more.\n";

/* A line for an option of terms.def. */
static void print_term(const struct term *t)
{
    char words[64];
    size_t len = (size_t)snprintf(words, sizeof(words), "--%s ", t->name);

    for (const char *at = t->type == TERM_MS ? "time" : t->argument; *at != '\0';
         at++) {
        words[len++] = (char)toupper((unsigned char)*at);
    }
    words[len] = '\0';
    printf("      %-15s %s\n", words, t->help);
}

bool print_help(void)
{
    (void)fputs(BEFORE, stdout);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (*TERMS[i].name != '\0') {
            print_term(&TERMS[i]);
        }
    }
    (void)fputs(AFTER, stdout);
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}
