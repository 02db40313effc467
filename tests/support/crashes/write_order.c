/* Notes what a process does to the files below one folder, in order: to be preloaded.
 *
 * note_below(root, log) begins, and note_nothing() ends it. Each operation that succeeded is a
 * record in the log: a header, one or two paths, and what was written. One lock is held over an
 * operation and its record, so that the order of the records is the order of the operations.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN = 'O', WRITE = 'W', TRUNCATE = 'T', SYNC = 'S', SYNC_ALL = 'A', TIMES = 'M' };
enum { RENAME = 'R', MKDIR = 'D', UNLINK = 'U' };

struct header {
    int64_t kind, inode, at, moment, length, other, size;
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char root[4096];
static size_t root_length;
static int log_file = -1;

#define REAL(name) ({ \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    real; \
})

void note_below(const char *folder, const char *log) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    log_file = REAL(open)(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (log_file < 0) abort();
}

void note_nothing(void) {
    close(log_file);
    log_file = -1;
}

static int is_below(const char *path) {
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int path_of(int descriptor, char *path, size_t room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, room - 1);
    path[size < 0 ? 0 : size] = 0;
    return size >= 0;
}

static int is_noted(int descriptor) {
    char path[4096];
    return log_file >= 0 && path_of(descriptor, path, sizeof path) && is_below(path);
}

/* Whether a path is below the root; it is made absolute. */
static int locate(int folder, const char *path, char *whole, size_t room) {
    if (log_file < 0) return 0;
    if (path[0] == '/') {
        snprintf(whole, room, "%s", path);
    } else {
        char above[4096];
        if (!path_of(folder, above, sizeof above)) return 0;
        if (!strcmp(path, ".")) snprintf(whole, room, "%s", above);
        else if ((size_t)snprintf(whole, room, "%s/%s", above, path) >= room) abort();
    }
    return is_below(whole);
}

static void put(const void *data, size_t size) {
    if (size && REAL(write)(log_file, data, size) != (ssize_t)size) abort();
}

static void note(int kind, const struct stat *info, off_t at, const char *path, const char *other,
                 const void *data, size_t size) {
    struct header header = {
        .kind = kind, .at = at, .length = strlen(path), .other = strlen(other), .size = size
    };
    if (info) {
        header.inode = info->st_ino;
        header.moment = info->st_mtim.tv_sec * 1000000000L + info->st_mtim.tv_nsec;
    }
    put(&header, sizeof header);
    put(path, header.length);
    put(other, header.other);
    put(data, size);
}

static void note_file(int kind, int file, off_t at, const void *data, size_t size) {
    struct stat info;
    char path[4096] = "";
    if (fstat(file, &info)) abort();
    if (S_ISDIR(info.st_mode)) path_of(file, path, sizeof path);
    note(kind, &info, at, path, "", data, size);
}

#define BEGIN(condition) \
    int is_ours = (condition); \
    if (is_ours) pthread_mutex_lock(&one_at_a_time)
#define END(done, record) \
    if (is_ours) { \
        int kept = errno; \
        if (done) record; \
        pthread_mutex_unlock(&one_at_a_time); \
        errno = kept; \
    }

static int noted_open(int file, int flags, const char *whole) {
    struct stat info;
    if (fstat(file, &info)) abort();
    note(OPEN, &info, flags & O_TRUNC ? 1 : 0, whole, "", "", 0);
    return file;
}

#define OPENING(name, first, folder, ...) \
    int name(first const char *path, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, int); \
        va_end(more); \
        char whole[8192]; \
        BEGIN(flags & (O_CREAT | O_TRUNC) && locate(folder, path, whole, sizeof whole)); \
        int file = REAL(name)(__VA_ARGS__, flags, mode); \
        END(file >= 0, noted_open(file, flags, whole)) \
        return file; \
    }
OPENING(open, , AT_FDCWD, path)
OPENING(open64, , AT_FDCWD, path)
#define FOLDER int folder,
OPENING(openat, FOLDER, folder, folder, path)
OPENING(openat64, FOLDER, folder, folder, path)

ssize_t write(int file, const void *data, size_t size) {
    BEGIN(is_noted(file));
    ssize_t done = REAL(write)(file, data, size);
    END(done > 0, note_file(WRITE, file, lseek(file, 0, SEEK_CUR) - done, data, done))
    return done;
}

#define WRITING_AT(name, offset) \
    ssize_t name(int file, const void *data, size_t size, offset at) { \
        BEGIN(is_noted(file)); \
        ssize_t done = REAL(name)(file, data, size, at); \
        END(done > 0, note_file(WRITE, file, at, data, done)) \
        return done; \
    }
WRITING_AT(pwrite, off_t)
WRITING_AT(pwrite64, off64_t)

#define BY_FILE(kind, name, parameters, arguments, at) \
    int name parameters { \
        BEGIN(is_noted(file)); \
        int failed = REAL(name) arguments; \
        END(!failed, note_file(kind, file, at, "", 0)) \
        return failed; \
    }
BY_FILE(TRUNCATE, ftruncate, (int file, off_t size), (file, size), size)
BY_FILE(TRUNCATE, ftruncate64, (int file, off64_t size), (file, size), size)
BY_FILE(SYNC, fsync, (int file), (file), 0)
BY_FILE(SYNC, fdatasync, (int file), (file), 0)
BY_FILE(SYNC_ALL, syncfs, (int file), (file), 0)
BY_FILE(TIMES, futimens, (int file, const struct timespec times[2]), (file, times), 0)

static void note_name(int kind, const char *path, const char *other) {
    struct stat info;
    note(kind, kind == MKDIR && !lstat(path, &info) ? &info : 0, 0, path, other, "", 0);
}

#define BY_NAME(kind, name, parameters, folder, arguments) \
    int name parameters { \
        char whole[8192]; \
        BEGIN(locate(folder, path, whole, sizeof whole)); \
        int failed = REAL(name) arguments; \
        END(!failed, note_name(kind, whole, "")) \
        return failed; \
    }
BY_NAME(MKDIR, mkdir, (const char *path, mode_t mode), AT_FDCWD, (path, mode))
BY_NAME(MKDIR, mkdirat, (int folder, const char *path, mode_t mode), folder, (folder, path, mode))
BY_NAME(UNLINK, unlink, (const char *path), AT_FDCWD, (path))
BY_NAME(UNLINK, unlinkat, (int folder, const char *path, int flags), folder, (folder, path, flags))
BY_NAME(UNLINK, rmdir, (const char *path), AT_FDCWD, (path))

#define RENAMING(name, parameters, folder, other, arguments) \
    int name parameters { \
        char whole[8192], whole_to[8192]; \
        BEGIN(locate(folder, path, whole, sizeof whole) \
              && locate(other, to, whole_to, sizeof whole_to)); \
        int failed = REAL(name) arguments; \
        END(!failed, note_name(RENAME, whole, whole_to)) \
        return failed; \
    }
RENAMING(rename, (const char *path, const char *to), AT_FDCWD, AT_FDCWD, (path, to))
RENAMING(renameat, (int folder, const char *path, int other, const char *to), folder, other,
         (folder, path, other, to))
