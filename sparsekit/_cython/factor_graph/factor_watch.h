/* Interruption of solves that run without the interpreter's lock: by a signal, a failed oracle of the same call, or the
 * time limit. */
#ifndef SPARSEKIT_FACTOR_WATCH_H
#define SPARSEKIT_FACTOR_WATCH_H

#include <stdatomic.h>
#include <time.h>

#include "shared/simd.h"

/* Seconds between checks for signals; units of work (a few nanoseconds) between readings of the clock. Both are too
 * dear for each pass over a small graph. */
#define FG_POLL_SECONDS 0.1
#define FG_POLL_WORK 100000

/* What all threads of a call share. */
typedef struct {
    atomic_int stop;
    _Atomic(sk_size) next, done;    /* graphs that were begun, and that are done */
    void *held;                     /* where the interpreter keeps its exception */
    double deadline;                /* in fg_seconds, or infinite */
} fg_call;

SK_INLINE void fg_begin_call(fg_call *call, void *held, double deadline) {
    atomic_init(&call->stop, 0);
    atomic_init(&call->next, 0);
    atomic_init(&call->done, 0);
    call->held = held;
    call->deadline = deadline;
}

/* Ends all graphs of a call. No data of another thread comes with it, so no order of memory is needed. */
SK_INLINE void fg_stop(fg_call *call) { atomic_store_explicit(&call->stop, 1, memory_order_relaxed); }

SK_INLINE int fg_is_stopped(fg_call *call) { return atomic_load_explicit(&call->stop, memory_order_relaxed); }

/* State of one thread; only the calling thread may check for signals. */
typedef struct {
    fg_call *call;
    int is_caller;
    sk_size work;
    double due;
    int late;                       /* the deadline is past: the current point is the answer */
} fg_watch;

/* Whether a signal's handler has raised; set by the extension module when it is loaded. */
static int (*fg_interrupted)(void *held);

static double fg_seconds(void) {
    struct timespec now;
#if defined(CLOCK_MONOTONIC) && (defined(__unix__) || defined(__APPLE__))
    if (clock_gettime(CLOCK_MONOTONIC, &now) == 0) return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
    if (timespec_get(&now, TIME_UTC) == 0) return 0.0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sleeps a fifth of a millisecond on systems where all compilers can. */
static void fg_pause(void) {
#if defined(_POSIX_TIMERS) || defined(__unix__) || defined(__APPLE__)
    struct timespec rest = {0, 200000};
    nanosleep(&rest, NULL);
#endif
}

static void fg_poll(fg_watch *w) {
    double now = fg_seconds();
    if (now >= w->call->deadline) w->late = 1;
    if (!w->is_caller) return;
    /* do not wait for a clock that was set back */
    if (now < w->due && w->due < now + 2.0 * FG_POLL_SECONDS) return;
    w->due = now + FG_POLL_SECONDS;
    if (fg_interrupted != NULL && fg_interrupted(w->call->held)) fg_stop(w->call);
}

/* Whether to stop; `work`: done since the last call. Without a watch the answer is no. */
SK_INLINE int fg_stopped(fg_watch *w, sk_size work) {
    if (w == NULL) return 0;
    if (fg_is_stopped(w->call)) return 1;
    if ((w->work += work) < FG_POLL_WORK) return 0;
    w->work = 0;
    fg_poll(w);
    return fg_is_stopped(w->call);
}

SK_INLINE int fg_late(const fg_watch *w) { return w != NULL && w->late; }

#endif
