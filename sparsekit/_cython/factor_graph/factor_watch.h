/* Ends that come from outside while solves run without the interpreter's lock: a key that was pressed, an oracle of
 * the user that failed, in this graph or in another one of the same call, or time that is up. */
#ifndef SPARSEKIT_FACTOR_WATCH_H
#define SPARSEKIT_FACTOR_WATCH_H

#include <stdatomic.h>
#include <time.h>

#include "shared/simd.h"

/* seconds between two looks at the interpreter, and units of work (about a nanosecond or a few) between two at the
 * clock: a pass over a small graph is not to pay for either */
#define FG_LOOK_SECONDS 0.1
#define FG_LOOK_WORK 100000

/* What all threads of a call share. */
typedef struct {
    atomic_int stop;
    _Atomic(sk_size) next, done;    /* graphs that were begun, and that are done */
    void *held;                     /* what the interpreter keeps its exception in */
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

/* What a thread has; only the one that made the call may look at the interpreter. */
typedef struct {
    fg_call *call;
    int is_caller;
    sk_size work;
    double due;
    int late;                       /* the deadline is past: what has been found is the answer */
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

/* a fifth of a millisecond, where there is a way that all compilers of the system know */
static void fg_pause(void) {
#if defined(_POSIX_TIMERS) || defined(__unix__) || defined(__APPLE__)
    struct timespec rest = {0, 200000};
    nanosleep(&rest, NULL);
#endif
}

static void fg_look(fg_watch *w) {
    double now = fg_seconds();
    if (now >= w->call->deadline) w->late = 1;
    if (!w->is_caller) return;
    /* a clock that was set back is no reason to wait */
    if (now < w->due && w->due < now + 2.0 * FG_LOOK_SECONDS) return;
    w->due = now + FG_LOOK_SECONDS;
    if (fg_interrupted != NULL && fg_interrupted(w->call->held)) fg_stop(w->call);
}

/* Whether to end; `work` is what has been done since the last time. Without a watch nothing ends. */
SK_INLINE int fg_stopped(fg_watch *w, sk_size work) {
    if (w == NULL) return 0;
    if (fg_is_stopped(w->call)) return 1;
    if ((w->work += work) < FG_LOOK_WORK) return 0;
    w->work = 0;
    fg_look(w);
    return fg_is_stopped(w->call);
}

SK_INLINE int fg_late(const fg_watch *w) { return w != NULL && w->late; }

#endif
