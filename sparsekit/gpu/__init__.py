"""CUDA versions of the kernels in ``sparsekit._cython``: same folders, modules and names, for CuPy arrays.

Arguments are the same, too, except for workspace, parts and threads, which a GPU does not need.

Elementwise losses are CuPy's ElementwiseKernel over the headers of ``_scalar``. Array expressions call CuPy's
libraries. CUDA C of this folder is for the rest, and for sums whose order must be fixed. It is compiled when
first used (`sparsekit.gpu.shared._compile`). Nothing here imports CuPy before a function gets its arrays.
"""

# functions of sparsekit._cython that have no GPU version, and why
_ONE = "decodes one small instance in sequential steps: without parallel work the CPU is faster"
_ROWS = "each row depends on the result of the row before: a GPU has no parallel work"
_HOST = "it describes the processor's instructions and threads"
_CHAIN = "a chain is sequential, position by position, with few labels; sequences are in main memory"
_COUPLED = "on the CPU a general solver finishes what the passes have not; a GPU makes all passes instead"
_SHORT = "on a GPU all scores are ranked: a shortlist has not been tried there"
_WORKSPACE = "on a GPU the rounds allocate their own workspace"
_ONE_BY_ONE = "it updates variables one by one; on a GPU least squares use OBA, positive=True included"
_OTHER_NAME = "designs on a GPU multiply by `_sparse.Lines` and `_dense.matvec`, rows and columns alike"
_AS_CSR = "a sparse design on a GPU stores X twice, by rows and by columns"
_STEPS = "it is one part of a step, for tests: on a GPU steps are tested whole"
NOT_HERE: dict[str, str] = {
    "tagger._chain_steps.perceptron_steps": _ROWS,
    "tagger._chains.best_sequences": _CHAIN,
    "tagger._chains.forward_backward": _CHAIN,
    "tagger._chains.pair_scores": _CHAIN,
    "tagger._chains.pair_sums": _CHAIN,
    "shared._curvature.pair_gram": "small systems of many pairs of classes are bound by launches: the Gram "
    "matrix is made of dense blocks by matrix products",
    "shared._dense.dense_matvec": _OTHER_NAME,
    "shared._dense.dense_rmatvec": _OTHER_NAME,
    "shared._dense.dense_squares": _OTHER_NAME,
    "fenchel_young._dual_ascent.ascend": _ROWS,
    "fenchel_young._dual_ascent.ascend_dense": _ROWS,
    "factor_graph._factor_graph.States.count": _COUPLED,
    "factor_graph._factor_graph.States.duals": "only tests read the multipliers",
    "factor_graph._factor_graph.States.set_solution": _COUPLED,
    "factor_graph._factor_graph.States.set_start": _COUPLED,
    "factor_graph._factor_graph.solve_one": _COUPLED,
    "shared._multinomial.class_factors": "blocks of the chosen columns are dense on a GPU, for cuBLAS",
    "shared._multinomial.class_gram": "pairs of a row's entries would be added by atomics in no fixed "
    "order: the Gram matrix is made of dense blocks by matrix products",
    "shared._multinomial.rmatmat": "a design on a GPU has its columns, whose products `matmat` makes",
    "shared._multinomial.row_entries": "it counts the pairs of a row's entries, which make no Gram matrix "
    "on a GPU",
    "extreme._class_blocks.block_workspace_sizes": _WORKSPACE,
    "extreme._class_blocks.draw_blocks": _STEPS,
    "extreme._class_blocks.find_hard_blocks": "adaptive steps, which use hard blocks, run on the CPU only",
    "extreme._extreme.alias_table": "each entry follows from the one before: it is made in main memory",
    "extreme._extreme.draw": _STEPS,
    "extreme._extreme.implicit_few": "each row has its own thread: there are no SIMD lanes to share",
    "extreme._extreme.implicit_many": _STEPS,
    "extreme._extreme.implicit_one": _STEPS,
    "extreme._extreme.implicit_rows": _STEPS,
    "extreme._extreme.workspace_sizes": _WORKSPACE,
    "bounded._min_norm.min_norm_weights": _ONE,
    "shared._rows.ModelRows.diagonal": "an operator adds it up by the columns of its store",
    "shared._rows.ModelRows.select": "models on a GPU keep the rows of negligible weight",
    "extreme._ranking.TILE": "no kernel on a GPU ranks by tiles of classes",
    "extreme._ranking.rank_sparse": "scores of sparse rows are ranked block by block, as those of dense "
    "rows are",
    "shared._runtime.LEVELS": _HOST,
    "shared._runtime.run_on_one_thread": _HOST,
    "shared._runtime.simd_level": _HOST,
    "shared._runtime.simd_levels": _HOST,
    "extreme._shortlist.PART": _SHORT,
    "extreme._shortlist.rank_shortlisted": _SHORT,
    "extreme._shortlist.round_columns": _SHORT,
    "shared._sparse.csc_matvec": _AS_CSR,
    "shared._sparse.csc_select_count": _AS_CSR,
    "shared._sparse.csc_select_fill": _AS_CSR,
    "shared._sparse.csc_slope_range": "blocks of rows and screening are in main memory",
    "shared._sparse.csr_absolute_bound": "designs compute it by two products with absolute values",
    "shared._sparse.csr_matvec": _OTHER_NAME,
    "shared._sparse.csr_rmatvec": _OTHER_NAME,
    "shared._sparse.csr_select": "`_sparse.select` does it for designs",
    "shared._sparse.csr_slope_range": "blocks of rows and screening are in main memory",
    "shared._sparse.dense_compress": "a dense X on a GPU stays dense, however many zeros it has",
    "shared._sparse.dense_count": "a dense X on a GPU stays dense, however many zeros it has",
    "l1._square_columns.GramColumns": _ONE_BY_ONE,
    "l1._squares.Descent": _ONE_BY_ONE,
    "factor_graph._structures.dense": _ONE,
    "factor_graph._structures.matching": _ONE,
    "factor_graph._structures.sets_that_lack": "mixtures are decomposed on the CPU",
    "factor_graph._structures.tree": _ONE,
    "factor_graph._structures.viterbi": _ONE,
}
