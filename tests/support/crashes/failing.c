/* Makes operations on files below one folder fail, from a certain one on: to be preloaded.
 *
 * arm(root, nth, error, mask, persistent) sets it up in this process; hits() counts failures and
 * seen() counts the operations that could have failed. Writes, reads and syncs are known by the
 * file that their descriptor is of.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, NAME = 8, READ = 16, LOOK = 32 };

static char root[4096];
static size_t root_length;
static long left = -1, hit, met;
static int error_number, mask, persistent;

void arm(const char *folder, long nth, int number, int wanted, int for_ever) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    left = nth;
    error_number = number;
    mask = wanted;
    persistent = for_ever;
    hit = met = 0;
}

long hits(void) { return hit; }
long seen(void) { return met; }

static int below(const char *path) {
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int is_of(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path);
}

static int strike(int kind) {
    if (!(mask & kind)) return 0;
    met++;
    if (left < 0) return 0;
    if (left-- > 0) return 0;
    if (persistent) left = 0;
    hit++;
    errno = error_number;
    return 1;
}

static int fails(int kind, int descriptor) {
    int kept = errno, failing = root_length && is_of(descriptor) && strike(kind);
    if (!failing) errno = kept;
    return failing;
}

static int fails_at(int kind, int folder, const char *path) {
    int kept = errno, failing;
    failing = root_length && (path && path[0] == '/' ? below(path) : folder >= 0 && is_of(folder))
              && strike(kind);
    if (!failing) errno = kept;
    return failing;
}

#define REAL(name) ({ \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    real; \
})

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, int); \
        va_end(more); \
        return fails_at(OPEN, -1, path) ? -1 : REAL(name)(path, flags, mode); \
    }
#define OPENING_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, int); \
        va_end(more); \
        return fails_at(OPEN, folder, path) ? -1 : REAL(name)(folder, path, flags, mode); \
    }
OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

#define BY_DESCRIPTOR(kind, type, name, parameters, arguments) \
    type name parameters { return fails(kind, file) ? -1 : REAL(name) arguments; }
BY_DESCRIPTOR(WRITE, ssize_t, write, (int file, const void *data, size_t size), (file, data, size))
BY_DESCRIPTOR(WRITE, ssize_t, pwrite, (int file, const void *data, size_t size, off_t at),
              (file, data, size, at))
BY_DESCRIPTOR(WRITE, ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at),
              (file, data, size, at))
BY_DESCRIPTOR(WRITE, int, ftruncate, (int file, off_t size), (file, size))
BY_DESCRIPTOR(WRITE, int, ftruncate64, (int file, off64_t size), (file, size))
BY_DESCRIPTOR(SYNC, int, fsync, (int file), (file))
BY_DESCRIPTOR(SYNC, int, fdatasync, (int file), (file))
BY_DESCRIPTOR(SYNC, int, syncfs, (int file), (file))
BY_DESCRIPTOR(NAME, int, futimens, (int file, const struct timespec times[2]), (file, times))
BY_DESCRIPTOR(READ, ssize_t, read, (int file, void *data, size_t size), (file, data, size))
BY_DESCRIPTOR(READ, ssize_t, pread, (int file, void *data, size_t size, off_t at),
              (file, data, size, at))
BY_DESCRIPTOR(READ, ssize_t, pread64, (int file, void *data, size_t size, off64_t at),
              (file, data, size, at))

#define BY_NAME(kind, name, parameters, folder, path, arguments) \
    int name parameters { return fails_at(kind, folder, path) ? -1 : REAL(name) arguments; }
BY_NAME(NAME, rename, (const char *path, const char *to), -1, path, (path, to))
BY_NAME(NAME, renameat, (int folder, const char *path, int other, const char *to), folder, path,
        (folder, path, other, to))
BY_NAME(NAME, mkdir, (const char *path, mode_t mode), -1, path, (path, mode))
BY_NAME(NAME, mkdirat, (int folder, const char *path, mode_t mode), folder, path,
        (folder, path, mode))
BY_NAME(NAME, unlink, (const char *path), -1, path, (path))
BY_NAME(NAME, unlinkat, (int folder, const char *path, int flags), folder, path,
        (folder, path, flags))
BY_NAME(NAME, rmdir, (const char *path), -1, path, (path))
BY_NAME(NAME, utimensat, (int folder, const char *path, const struct timespec times[2], int flags),
        folder, path, (folder, path, times, flags))
BY_NAME(LOOK, fstatat, (int folder, const char *path, struct stat *info, int flags), folder, path,
        (folder, path, info, flags))
BY_NAME(LOOK, fstatat64, (int folder, const char *path, struct stat64 *info, int flags), folder,
        path, (folder, path, info, flags))
