/* Lets a program that asks for much more memory than it uses run on a smaller machine.

   Pinocchio's Data zeroes four tensors of nv^3 numbers (second derivatives of inverse dynamics): 32 GB at 1000 links. Its
   rnea and aba never look at them. Preloaded (LD_PRELOAD), this answers every request of at least a gigabyte with one
   64 MB buffer, mapped over and over; smaller requests go to the system's malloc, so what is timed is untouched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 30)
#define PIECE ((size_t)1 << 26)
#define MOST 64

static struct { void *start; size_t size; } given[MOST];

static void *repeated(size_t size) {
    size_t whole = (size + PIECE - 1) / PIECE * PIECE;
    int slot = 0, file = memfd_create("spare", 0);
    while (slot < MOST && given[slot].start) slot++;
    if (slot == MOST || file < 0 || ftruncate(file, PIECE)) return NULL;
    char *start = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    for (size_t at = 0; at < whole; at += PIECE)
        if (mmap(start + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) return NULL;
    close(file);
    given[slot].start = start;
    given[slot].size = whole;
    return start;
}

void *malloc(size_t size) {
    static void *(*system_malloc)(size_t);
    if (size >= LARGE) return repeated(size);
    if (!system_malloc) system_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    return system_malloc(size);
}

void free(void *start) {
    static void (*system_free)(void *);
    for (int slot = 0; start && slot < MOST; slot++)
        if (given[slot].start == start) {
            munmap(start, given[slot].size);
            given[slot].start = NULL;
            return;
        }
    if (!system_free) system_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    system_free(start);
}
