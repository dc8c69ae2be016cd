#include "common.cuh"

// The first place of an index that is not one of 0 .. n - 1 goes to ``first``, which must begin above all places.
extern "C" __global__ void sk_index_fault(const index_t* indices, long long size, long long n,
                                          unsigned long long* first) {
    for (long long k = sk::thread_of_grid(); k < size; k += sk::threads_of_grid()) {
        const long long v = indices[k];
        if (v < 0 || v >= n) {
            atomicMin(first, (unsigned long long)k);
            return;  // this thread's later places are no smaller
        }
    }
}

// The same of the pointers: the first of all is 0, none falls or is beyond ``most``.
extern "C" __global__ void sk_pointer_fault(const index_t* indptr, long long size, long long most,
                                            unsigned long long* first) {
    for (long long k = sk::thread_of_grid(); k < size; k += sk::threads_of_grid()) {
        const long long v = indptr[k];
        if (k == 0 ? v != 0 : v < indptr[k - 1] || v > most) {
            atomicMin(first, (unsigned long long)k);
            return;
        }
    }
}
