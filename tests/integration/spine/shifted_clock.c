/* Preloaded into an agent: its wall clock is the machine's plus the seconds written in the file SHIFT_FILE (a
 * native double, fractions included). All processes share the machine's own clock, and other clocks stay as
 * they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

static const double *shift;

__attribute__((constructor)) static void map(void) {
  const char *path = getenv("SHIFT_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED)
    shift = mapped;
}

static const long long SECOND_NS = 1000000000;

/* Adds the shift, once or less once, and keeps the nanoseconds in their range. */
static void move(struct timespec *time, int times) {
  long long ns = shift ? time->tv_nsec + times * (long long)(*shift * 1e9) : time->tv_nsec;
  long long carry = ns >= 0 ? ns / SECOND_NS : -((SECOND_NS - 1 - ns) / SECOND_NS);
  time->tv_sec += carry;
  time->tv_nsec = ns - carry * SECOND_NS;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real)
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    move(now, 1);
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  static int (*real)(struct timeval *, void *);
  if (!real)
    real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(now, zone);
  if (result == 0) {
    struct timespec moved = {now->tv_sec, now->tv_usec * 1000};
    move(&moved, 1);
    now->tv_sec = moved.tv_sec;
    now->tv_usec = moved.tv_nsec / 1000;
  }
  return result;
}

/* A process that waits until a time of day means that of the shifted clock; the kernel has another one. */
static struct timespec of_kernel(const struct timespec *until) {
  struct timespec shifted = *until;
  move(&shifted, -1);
  return shifted;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!real)
    real = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec shifted = of_kernel(until);
  return real(condition, mutex, &shifted);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
  static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
  if (!real)
    real = (int (*)(cnd_t *, mtx_t *, const struct timespec *))dlsym(RTLD_NEXT, "cnd_timedwait");
  struct timespec shifted = of_kernel(until);
  return real(condition, mutex, &shifted);
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result)
    *result = now.tv_sec;
  return now.tv_sec;
}
