/* replay: runs a fuzz target over the files of a directory, without a fuzzer. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUT_MAX = 1 << 20 };

static int replay_file(const char *dir, const char *name)
{
    static uint8_t data[INPUT_MAX];
    char path[4096];
    size_t len;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return -1;
    }
    len = fread(data, 1, sizeof(data), f);
    (void)fclose(f);
    (void)printf("%s: %zu bytes\n", name, len);
    (void)fflush(stdout); /* the last line names the culprit */
    return LLVMFuzzerTestOneInput(data, len);
}

int main(int argc, char **argv)
{
    const struct dirent *entry;
    int count = 0;
    DIR *dir;

    if (argc != 2 || (dir = opendir(argv[1])) == NULL) {
        (void)fprintf(stderr, "usage: replay DIRECTORY\n");
        return EXIT_FAILURE;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            if (replay_file(argv[1], entry->d_name) != 0) {
                return EXIT_FAILURE;
            }
            count++;
        }
    }
    (void)closedir(dir);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
