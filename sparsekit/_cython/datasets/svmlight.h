/* Lines "label index:value index:value ..." to CSR rows.

   The text is read byte by byte, once. Lines of any other form are left to Python: a sign before an index, an
   infinite value, an index out of range, an error. Python reads them slowly or reports the error. */
#ifndef SK_SVMLIGHT_H
#define SK_SVMLIGHT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SK_ALL_READ, SK_ODD_LINE, SK_BUFFER_FULL };

typedef double (*sk_slow_number)(const char *, const char **);

typedef struct {
    int32_t *indptr;   /* indptr[0] is 0 */
    int32_t *indices;
    void *data;
    int is_double;
    double *labels;           /* one a row; NULL where a row has several */
    int32_t *label_indptr;
    int32_t *label_indices;
    int64_t max_bytes;             /* bytes that the rows may take (sk_svm_bytes) */
    int64_t most_rows, most_entries, most_labels;
    int64_t rows, entries, n_labels, lines;
    int64_t lowest, highest;           /* indices allowed */
    int64_t least_found, largest_found;
    int64_t largest_label;
    int status;
} sk_svm;

/* exact in float64 */
static const double sk_tens[23] = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
    1e20, 1e21, 1e22,
};

static inline int sk_is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* white space of Python's bytes.split, but the end of the line */
static inline int sk_is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

static inline const char *sk_skip(const char *p) {
    while (sk_is_space(*p)) p++;
    return p;
}

/* where a token must end */
static inline int sk_is_end(char c) { return sk_is_space(c) || c == '\n' || c == '#'; }

/* w 10^e to the nearest double where that can be told: w to 64 bits, |e| up to 22. Returns 0 where it cannot.

   w = high + low, both doubles, and 10^|e| is one. The quotient (product) of high is t plus a rest that fma gives
   exactly; c is that rest with low's share. The sum t + c is rounded right if it does not change when c moves by
   more than its rounding error. */
static inline int sk_scaled(uint64_t w, int e, double *out) {
    const double ten = sk_tens[e < 0 ? -e : e];
    if (w <= (UINT64_C(1) << 53)) {  /* both are exact: one rounding */
        *out = e < 0 ? (double)w / ten : (double)w * ten;
        return 1;
    }
    const double high = (double)w, low = (double)(int64_t)(w - (uint64_t)high);
    double t, c, error;
    if (e < 0) {
        t = high / ten;
        c = (fma(-t, ten, high) + low) / ten;
        error = fabs(c) * 0x1p-50;
    } else {
        t = high * ten;
        const double rest = fma(high, ten, -t), share = low * ten;
        c = rest + share;
        error = (fabs(rest) + fabs(share)) * 0x1p-50;
    }
    *out = t + (c - error);
    return *out == t + (c + error);
}

/* The decimal number at p, correctly rounded; what follows it, or NULL if there is none. */
static inline const char *sk_number(const char *p, double *out, sk_slow_number slow) {
    const char *start = p;
    const int negative = *p == '-';
    if (negative || *p == '+') p++;
    uint64_t w = 0;
    int e = 0, n_digits = 0, is_long = 0;
    for (; sk_is_digit(*p); p++, n_digits++) {
        is_long |= w > UINT64_C(999999999999999999);  /* a twentieth digit would not fit */
        w = 10 * w + (uint64_t)(*p - '0');
    }
    if (*p == '.') {
        for (p++; sk_is_digit(*p); p++, n_digits++, e--) {
            is_long |= w > UINT64_C(999999999999999999);
            w = 10 * w + (uint64_t)(*p - '0');
        }
    }
    if (!n_digits) return NULL;
    if (*p == 'e' || *p == 'E') {
        int below = 0, power = 0;
        p++;
        if (*p == '-' || *p == '+') below = *p++ == '-';
        if (!sk_is_digit(*p)) return NULL;
        for (; sk_is_digit(*p); p++) if (power < 100000) power = 10 * power + (*p - '0');
        e += below ? -power : power;
    }
    double value;
    if (is_long || e < -22 || e > 22 || !sk_scaled(w, e, &value)) {
        const char *end = NULL;
        value = slow(start, &end);
        if (end != p || !isfinite(value)) return NULL;
        *out = value;
        return p;
    }
    *out = negative ? -value : value;
    return p;
}

/* The bytes that rows take in the files of a block. */
static inline int64_t sk_svm_bytes(const sk_svm *s) {
    const int64_t entry = 4 + (s->is_double ? 8 : 4);
    const int64_t targets = s->labels ? 8 * s->rows : 4 * (s->rows + 1 + s->n_labels);
    return 4 * (s->rows + 1) + entry * s->entries + targets;
}

/* One row, or a line without one. Returns what follows it, or NULL with s->status set. */
static inline const char *sk_svm_line(sk_svm *s, const char *p, const char *end, sk_slow_number slow) {
    double value;
    p = sk_skip(p);
    if (*p == '\n' || *p == '#') return (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    s->status = SK_BUFFER_FULL;
    if (s->rows >= s->most_rows) return NULL;
    s->status = SK_ODD_LINE;
    if (s->labels) {
        p = sk_number(p, &value, slow);
        if (!p || !sk_is_end(*p)) return NULL;
        s->labels[s->rows] = value;
    } else {
        const char *token = p;
        while (!sk_is_end(*token) && *token != ':') token++;
        while (*token != ':') {  /* with a colon the row has no label */
            p = sk_number(p, &value, slow);
            if (!p || !(value >= 0 && value < 2147483647.0) || value != floor(value)) return NULL;
            if (s->n_labels >= s->most_labels) {
                s->status = SK_BUFFER_FULL;
                return NULL;
            }
            s->label_indices[s->n_labels++] = (int32_t)value;
            if (value > s->largest_label) s->largest_label = (int64_t)value;
            if (*p != ',') break;
            p++;
        }
        if (*token != ':' && !sk_is_end(*p)) return NULL;
    }
    p = sk_skip(p);
    if (p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':') {
        while (!sk_is_end(*p)) p++;
        p = sk_skip(p);
    }
    int64_t last = -1, k = s->entries;
    while (!(*p == '\n' || *p == '#')) {
        int64_t index = 0;
        const char *first = p;
        for (; sk_is_digit(*p) && p - first < 11; p++) index = 10 * index + (*p - '0');
        if (p == first || *p != ':' || index <= last || index < s->lowest || index > s->highest) return NULL;
        p = sk_number(p + 1, &value, slow);
        if (!p || !sk_is_end(*p)) return NULL;
        if (k >= s->most_entries) {
            s->status = SK_BUFFER_FULL;
            return NULL;
        }
        s->indices[k] = (int32_t)index;
        if (s->is_double) ((double *)s->data)[k] = value;
        else {
            const float rounded = (float)value;
            if (!isfinite(rounded)) return NULL;
            ((float *)s->data)[k] = rounded;
        }
        k++;
        /* the first index of a row is its least */
        if (last < 0 && index < s->least_found) s->least_found = index;
        last = index;
        p = sk_skip(p);
    }
    if (last > s->largest_found) s->largest_found = last;
    if (*p == '#') p = (const char *)memchr(p, '\n', (size_t)(end - p));
    s->entries = k;
    s->rows++;
    s->indptr[s->rows] = (int32_t)k;
    if (s->label_indptr) s->label_indptr[s->rows] = (int32_t)s->n_labels;
    return p + 1;
}

/* Read lines of the text from p on, which ends in a newline. Returns where it stopped: at the end, before a line of
 * another form, or before a line that does not fit the block. What that line has written is discarded. */
static const char *sk_svm_read(sk_svm *s, const char *p, const char *end, sk_slow_number slow) {
    while (p < end) {
        const sk_svm before = *s;
        const char *next = sk_svm_line(s, p, end, slow);
        /* a row that fits into no block has one of its own */
        const int too_much = next && s->rows > before.rows && s->rows > 1 && sk_svm_bytes(s) > s->max_bytes;
        if (!next || too_much) {
            const int status = too_much ? SK_BUFFER_FULL : s->status;
            *s = before;
            s->status = status;
            return p;
        }
        s->lines++;
        p = next;
    }
    s->status = SK_ALL_READ;
    return p;
}

#endif
