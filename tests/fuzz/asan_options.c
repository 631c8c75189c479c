/* asan_options: one input is small, and soon over: to keep a quarter of a gigabyte of
 * what it gave back costs a third of the time, and finds no more. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=8";
}
