/* every_input: which inputs are rare is not worth nine tenths of the time, where there
 * is much to cover. */
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char *args[64], flag[] = "-entropic=0";
    int n = *argc < 62 ? *argc : 62;

    for (int i = 0; i < n; i++) {
        args[i] = (*argv)[i];
    }
    args[n] = n > 1 ? flag : NULL; /* AFL++ has no arguments */
    *argc = n > 1 ? n + 1 : n;
    *argv = args;
    return 0;
}
