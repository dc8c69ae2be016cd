"""CUDA versions of the kernels in ``sparsekit._cython``: same folders, modules and names, for CuPy arrays.

Arguments are the same as well, but for what a device has no use for: workspace, parts, threads.

Elementwise losses are CuPy's ElementwiseKernel over the headers of ``_scalar``; what CuPy's libraries do is
array expressions. CUDA C of this folder is for the rest, and for sums that must have one order. It is
compiled when first used (`sparsekit.gpu.shared._compile`). Nothing here imports CuPy before a function gets
its arrays.
"""

# functions of sparsekit._cython that have no GPU version, and why
_ONE = "decodes one small instance, step after step: a GPU has nothing to do at once, main memory is faster"
_ROWS = "takes the rows one after another, each with what the last one left: a GPU has nothing to do at once"
_HOST = "it speaks of the processor's instructions and threads"
_CHAIN = (
    "a chain goes on position after position through tables of a few labels; sequences are in main memory"
)
_COUPLED = "a general solver in main memory ends what passes leave open: a GPU makes all passes instead"
_FILES = "files and their text are read in main memory"
_SHORT = "on a GPU all scores are ranked: a shortlist has not been tried there"
_ROOM = "the rounds of a device allocate what they work in"
_ONE_BY_ONE = "it takes one variable after another; on a GPU least squares go by OBA, with one side or two"
_OTHER_NAME = "designs on a GPU multiply by `_sparse.Lines` and `_dense.matvec`, rows and columns alike"
_AS_CSR = "a design on a GPU has its rows in CSR whatever X is, and its columns beside them"
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
    "factor_graph._factor_graph.States.duals": "only tests look at the multipliers",
    "factor_graph._factor_graph.States.set_solution": _COUPLED,
    "factor_graph._factor_graph.States.set_start": _COUPLED,
    "factor_graph._factor_graph.solve_one": _COUPLED,
    "shared._multinomial.class_factors": "blocks of the chosen columns are dense on a GPU, for cuBLAS",
    "shared._multinomial.class_gram": "pairs of a row's entries would be added by atomics in no fixed "
    "order: the Gram matrix is made of dense blocks by matrix products",
    "shared._multinomial.rmatmat": "a design on a GPU has its columns, whose products `matmat` makes",
    "shared._multinomial.row_entries": "it counts the pairs of a row's entries, which make no Gram matrix "
    "on a GPU",
    "extreme._class_blocks.block_room_sizes": _ROOM,
    "extreme._class_blocks.draw_blocks": _STEPS,
    "extreme._class_blocks.find_hard_blocks": "the adaptive steps that take hard blocks have no twin",
    "extreme._extreme.alias_table": "each entry follows from the one before: it is made in main memory",
    "extreme._extreme.draw": _STEPS,
    "extreme._extreme.implicit_few": "each row has a thread of its own: there are no lanes to fill with "
    "others",
    "extreme._extreme.implicit_many": _STEPS,
    "extreme._extreme.implicit_one": _STEPS,
    "extreme._extreme.implicit_rows": _STEPS,
    "extreme._extreme.room_sizes": _ROOM,
    "bounded._min_norm.min_norm_weights": _ONE,
    "shared._rows.ModelRows.diagonal": "an operator adds it up by the columns of its store",
    "extreme._ranking.TILE": "no kernel on a GPU ranks by tiles of classes",
    "extreme._ranking.rank_sparse": "scores of sparse rows are ranked block by block, as those of dense "
    "rows are",
    "datasets._row_files.ALL_READ": _FILES,
    "datasets._row_files.NO_ROOM": _FILES,
    "datasets._row_files.ODD_LINE": _FILES,
    "datasets._row_files.SvmlightRows": _FILES,
    "datasets._row_files.first_bad_row": _FILES,
    "datasets._row_files.number": _FILES,
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
    "shared._sparse.csr_absolute_bound": "designs make it of two products with absolute values",
    "shared._sparse.csr_matvec": _OTHER_NAME,
    "shared._sparse.csr_rmatvec": _OTHER_NAME,
    "shared._sparse.csr_select": "`_sparse.select` does it for designs",
    "shared._sparse.csr_slope_range": "blocks of rows and screening are in main memory",
    "shared._sparse.dense_compress": "a dense X on a GPU stays dense, whatever the share of its zeros",
    "shared._sparse.dense_count": "a dense X on a GPU stays dense, whatever the share of its zeros",
    "l1._square_columns.GramColumns": _ONE_BY_ONE,
    "l1._squares.Descent": _ONE_BY_ONE,
    "factor_graph._structures.dense": _ONE,
    "factor_graph._structures.matching": _ONE,
    "factor_graph._structures.sets_that_lack": "mixtures are taken apart on the host",
    "factor_graph._structures.tree": _ONE,
    "factor_graph._structures.viterbi": _ONE,
}
