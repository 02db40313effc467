/* Makes the time of day wrong by the seconds in WRONG_CLOCK: to be preloaded. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t wrong(void) {
    const char *seconds = getenv("WRONG_CLOCK");
    return seconds ? (time_t)atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *moment) {
    int result = (int)syscall(SYS_clock_gettime, clock, moment);
    if (result == 0 && clock == CLOCK_REALTIME) moment->tv_sec += wrong();
    return result;
}

int gettimeofday(struct timeval *moment, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    moment->tv_sec = now.tv_sec;
    moment->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *moment) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (moment) *moment = now.tv_sec;
    return now.tv_sec;
}
