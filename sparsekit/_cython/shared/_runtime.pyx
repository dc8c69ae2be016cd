"""What kernels run on: the level of instructions (simd.h), and OpenMP's threads."""

cdef extern from "shared/simd.h" nogil:
    int sk_level
    int sk_highest_level()

cdef extern from *:
    """
    #if defined(_OPENMP) && _OPENMP >= 200805
    #include <omp.h>
    #else
    static void omp_set_max_active_levels(int levels) { (void)levels; }
    #endif
    """
    void omp_set_max_active_levels(int levels) nogil


LEVELS = ("baseline", "x86-64-v3", "x86-64-v4")


def simd_level():
    """The level in use: the highest that SPARSEKIT_SIMD and the processor allow."""
    return LEVELS[sk_level]


def simd_levels():
    """All levels that this build and this processor have, from the lowest."""
    return LEVELS[:sk_highest_level() + 1]


def run_on_one_thread():
    """OpenMP regions of the calling thread run on it alone from now on, whatever they ask for.

    The work is cut as before, so results keep their bits. Threads that are started later are not concerned.
    """
    omp_set_max_active_levels(0)
