"""Every CUDA source is compiled by CuPy in single and double precision."""

from __future__ import annotations

import time

import gpu_sources

TASK_LIMIT, AT_ONCE = 110, True
IN_DRY_RUN = 3  # sources: others take g++ minutes


def tasks(options):
    """Sources, the longest first."""
    files = sorted(gpu_sources.FILES, key=lambda file: -len(gpu_sources.own_text(file)))
    return files[-IN_DRY_RUN:] if options.dry_run else files


def variants(file):
    """Options of each way to compile a source, in the order of `sparsekit.gpu.shared._compile`.

    So CuPy's cache has the kernels when they are launched.
    """
    if not gpu_sources.has_types(file):
        return [()]
    return [
        (f"-DINDEX={index}", f"-DREAL={real}") for real, index in (gpu_sources.SINGLE, gpu_sources.DOUBLE)
    ]


def run(task, options):
    """Compile; kernels with a stack in local memory are named, since it is slow."""
    from sparsekit.gpu.shared import _compile

    device = options.cupy().cuda.Device().id
    names = gpu_sources.KERNEL.findall(_compile.source(task))
    failures, local, seconds = [], {}, {}
    for defines in variants(task):
        variant = " ".join(defines)
        start = time.perf_counter()
        try:
            module = _compile._module(device, task, defines)
            module.compile()
            kernels = [module.get_function(name) for name in names]
            # the emulation has no registers, so no stack
            stacks = [] if options.dry_run else [kernel.local_size_bytes for kernel in kernels]
        except Exception as error:  # the next variant may compile
            failures.append(f"{variant}: {type(error).__name__}: {str(error)[-800:]}")
            continue
        seconds[variant] = round(time.perf_counter() - start, 2)
        local.update({f"{name} ({variant})": stack for name, stack in zip(names, stacks) if stack})
    if failures:
        raise AssertionError("; ".join(failures))
    return {"kernels": len(names), "seconds_by_variant": seconds, "local_bytes": local}
