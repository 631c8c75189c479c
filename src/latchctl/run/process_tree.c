#include "latchctl/run/process_tree.h"

#include "util/alloc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
    pid_t pid;
    pid_t parent;
    bool zombie;
    bool ours;
};

struct processes {
    struct process *list;
    size_t count;
    size_t room;
};

/* Parses `pid (name) state parent ...`, where the name may be anything. */
static bool read_process(const char *pid, struct process *ret)
{
    char path[64];
    char text[512];
    const char *end;
    char state;
    int parent;
    size_t len;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    len = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    end = strrchr(text, ')');
    if (end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2) {
        return false;
    }
    *ret = (struct process){
        .pid = (pid_t)strtol(pid, NULL, 10),
        .parent = parent,
        .zombie = state == 'Z' || state == 'X',
    };
    return true;
}

static void read_all(struct processes *all)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;

    *all = (struct processes){ 0 };
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct process p;

        if (isdigit((unsigned char)entry->d_name[0]) &&
            read_process(entry->d_name, &p)) {
            if (all->count == all->room) {
                all->room = all->room == 0 ? 256 : all->room * 2;
                all->list = xrealloc(all->list, all->room * sizeof(p));
            }
            all->list[all->count++] = p;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* Marks children of marked processes. True: there were new ones. */
static bool mark_children(struct processes *all)
{
    bool more = false;
    pid_t self = getpid();

    for (size_t i = 0; i < all->count; i++) {
        struct process *p = &all->list[i];
        bool ours = p->parent == self;

        for (size_t j = 0; j < all->count && !ours && !p->ours; j++) {
            ours = all->list[j].ours && all->list[j].pid == p->parent;
        }
        more = more || (ours && !p->ours);
        p->ours = p->ours || ours;
    }
    return more;
}

size_t tree_signal(pid_t spare, int sig, pid_t *ret_denied)
{
    struct processes all;
    size_t alive = 0;
    pid_t denied = 0;

    read_all(&all);
    while (mark_children(&all)) {
    }
    for (size_t i = 0; i < all.count; i++) {
        const struct process *p = &all.list[i];

        if (!p->ours || p->zombie || p->pid == spare) {
            continue;
        }
        alive++;
        if (sig != 0 && kill(p->pid, sig) != 0 && errno == EPERM) {
            denied = p->pid;
        }
    }
    free(all.list);
    if (ret_denied != NULL) {
        *ret_denied = denied;
    }
    return alive;
}
