"""Files of rows: text of index:value pairs to CSR, and whether the arrays of a file are CSR at all."""
from libc.stdint cimport int32_t, int64_t

cdef extern from "Python.h":
    double PyOS_string_to_double(const char*, char**, object) except? -1.0

cdef extern from "datasets/svmlight.h" nogil:
    int SK_ALL_READ
    int SK_ODD_LINE
    int SK_BUFFER_FULL
    ctypedef double (*sk_slow_number)(const char*, const char**)

    ctypedef struct sk_svm:
        int32_t *indptr
        int32_t *indices
        void *data
        int is_double
        double *labels
        int32_t *label_indptr
        int32_t *label_indices
        int64_t max_bytes
        int64_t most_rows
        int64_t most_entries
        int64_t most_labels
        int64_t rows
        int64_t entries
        int64_t n_labels
        int64_t lines
        int64_t lowest
        int64_t highest
        int64_t least_found
        int64_t largest_found
        int64_t largest_label
        int status

    const char *sk_svm_read(sk_svm*, const char*, const char*, sk_slow_number)
    const char *sk_number(const char*, double*, sk_slow_number)

ALL_READ = SK_ALL_READ
ODD_LINE = SK_ODD_LINE
BUFFER_FULL = SK_BUFFER_FULL


cdef double _slow(const char *start, const char **end) noexcept with gil:
    # noexcept: without a number `end` stays NULL, which the caller checks
    try:
        return PyOS_string_to_double(start, <char**>end, OverflowError)
    except (ValueError, OverflowError):
        end[0] = NULL
        return 0.0


def number(bytes text):
    """The decimal number that the text begins with and its length; None if it begins with none."""
    cdef double value = 0.0
    cdef const char *start = text
    cdef const char *end = sk_number(start, &value, _slow)
    return None if end == NULL else (value, end - start)


cdef class SvmlightRows:
    """The rows of one block, into arrays of the caller.

    One of ``data32`` and ``data64`` is empty. ``label_indptr`` and ``label_indices`` are empty where a row has one label, ``labels`` where it has several.
    ``max_bytes`` is the number of bytes that the rows may take; a single row may take more. Indices are kept as they
    stand in the text, from ``lowest`` to ``highest``.
    """

    cdef sk_svm s
    cdef object keep

    def __init__(self, int32_t[::1] indptr, int32_t[::1] indices, float[::1] data32, double[::1] data64,
                 double[::1] labels, int32_t[::1] label_indptr, int32_t[::1] label_indices, int64_t max_bytes,
                 int64_t lowest, int64_t highest):
        self.keep = (indptr, indices, data32, data64, labels, label_indptr, label_indices)
        self.s.indptr, self.s.indices = &indptr[0], &indices[0]
        self.s.is_double = data64.shape[0] > 0
        self.s.data = <void*>&data64[0] if data64.shape[0] else <void*>&data32[0]
        self.s.labels = &labels[0] if labels.shape[0] else NULL
        self.s.label_indptr = &label_indptr[0] if label_indptr.shape[0] else NULL
        self.s.label_indices = &label_indices[0] if label_indices.shape[0] else NULL
        self.s.max_bytes = max_bytes
        self.s.most_rows = indptr.shape[0] - 1
        self.s.most_entries = min(indices.shape[0], max(data32.shape[0], data64.shape[0]))
        self.s.most_labels = label_indices.shape[0]
        self.s.lowest, self.s.highest = lowest, highest
        self.s.least_found, self.s.largest_found, self.s.largest_label = highest + 1, -1, -1
        indptr[0] = 0
        if label_indptr.shape[0]:
            label_indptr[0] = 0
        self.clear()

    def clear(self):
        """Begin a new block; the indices found so far are kept."""
        self.s.rows = self.s.entries = self.s.n_labels = 0

    def read(self, bytes text, Py_ssize_t start):
        """Read lines from byte ``start`` on; returns where it stopped, and ALL_READ, ODD_LINE or BUFFER_FULL.

        The text ends in a newline.
        """
        cdef const char *first = text
        cdef Py_ssize_t length = len(text)
        cdef const char *stop
        if length == 0 or first[length - 1] != b"\n":
            raise ValueError("the text must end in a newline")
        self.s.lines = 0
        with nogil:
            stop = sk_svm_read(&self.s, first + start, first + length, _slow)
        return stop - first, self.s.status

    @property
    def rows(self):
        """Rows in the block."""
        return self.s.rows

    @property
    def entries(self):
        """Entries in the block."""
        return self.s.entries

    @property
    def n_labels(self):
        """Labels in the block, where rows have several."""
        return self.s.n_labels

    @property
    def lines(self):
        """Lines that the last call of `read` has passed."""
        return self.s.lines

    @property
    def found(self):
        """Least index of a row (``highest`` + 1 if there was none), largest index, largest label (or -1)."""
        return self.s.least_found, self.s.largest_found, self.s.largest_label


def first_bad_row(const int32_t[::1] indptr, const int32_t[::1] indices, int64_t lowest, int64_t highest):
    """The first row that is none: ends before it begins, or has indices out of range or order; -1: none is."""
    cdef Py_ssize_t i, k, n = indptr.shape[0] - 1, bad = -1
    cdef int64_t last
    if n < 0 or indptr[0] != 0 or indptr[n] != indices.shape[0]:
        return 0
    with nogil:
        for i in range(n):
            if indptr[i + 1] < indptr[i] or indptr[i + 1] > indptr[n]:
                bad = i
                break
            last = lowest - 1
            for k in range(indptr[i], indptr[i + 1]):
                if indices[k] <= last:
                    bad = i
                    break
                last = indices[k]
            if bad >= 0 or last > highest:
                bad = i
                break
    return bad
