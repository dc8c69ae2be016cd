# The arguments are BLAS's and LAPACK's own: pointers to Fortran's characters, integers of 32 bits and arrays.
ctypedef void dgemv_type(char* trans, int* m, int* n, double* alpha, double* a, int* lda, double* x, int* incx,
                         double* beta, double* y, int* incy) noexcept nogil
ctypedef void sgemv_type(char* trans, int* m, int* n, float* alpha, float* a, int* lda, float* x, int* incx,
                         float* beta, float* y, int* incy) noexcept nogil
ctypedef void dsyrk_type(char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda,
                         double* beta, double* c, int* ldc) noexcept nogil
ctypedef void ssyrk_type(char* uplo, char* trans, int* n, int* k, float* alpha, float* a, int* lda,
                         float* beta, float* c, int* ldc) noexcept nogil
ctypedef void sgemm_type(char* transa, char* transb, int* m, int* n, int* k, float* alpha, float* a, int* lda,
                         float* b, int* ldb, float* beta, float* c, int* ldc) noexcept nogil
ctypedef void dgesv_type(int* n, int* nrhs, double* a, int* lda, int* pivots, double* b, int* ldb,
                         int* info) noexcept nogil
ctypedef void dposv_type(char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb,
                         int* info) noexcept nogil
ctypedef void dpotrf_type(char* uplo, int* n, double* a, int* lda, int* info) noexcept nogil
ctypedef void spotrf_type(char* uplo, int* n, float* a, int* lda, int* info) noexcept nogil
ctypedef void dtrsv_type(char* uplo, char* trans, char* diag, int* n, double* a, int* lda, double* x,
                         int* incx) noexcept nogil
ctypedef void strsv_type(char* uplo, char* trans, char* diag, int* n, float* a, int* lda, float* x,
                         int* incx) noexcept nogil
ctypedef void dpotrs_type(char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb,
                          int* info) noexcept nogil
ctypedef void dtrsm_type(char* side, char* uplo, char* trans, char* diag, int* m, int* n, double* alpha,
                         double* a, int* lda, double* b, int* ldb) noexcept nogil
ctypedef void strsm_type(char* side, char* uplo, char* trans, char* diag, int* m, int* n, float* alpha,
                         float* a, int* lda, float* b, int* ldb) noexcept nogil

cdef dgemv_type* dgemv
cdef sgemv_type* sgemv
cdef dsyrk_type* dsyrk
cdef ssyrk_type* ssyrk
cdef sgemm_type* sgemm
cdef dgesv_type* dgesv
cdef dposv_type* dposv
cdef dpotrf_type* dpotrf
cdef dpotrs_type* dpotrs
cdef spotrf_type* spotrf
cdef strsv_type* strsv
cdef strsm_type* strsm
cdef dtrsv_type* dtrsv
cdef dtrsm_type* dtrsm
