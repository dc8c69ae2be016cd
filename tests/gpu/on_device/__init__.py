"""Checks of the GPU code on a device, started by ``tests/gpu/on_device.sh``: parts of tasks, a process each.

``__main__`` reads the command line, ``engine`` runs the tasks of a part and prints their lines, ``task`` is
what a task's process runs. Each other module but the helpers (``options``, ``problems``, ``pytest_cases``,
``driver_calls``) is a part: TASK_LIMIT, LIMIT (seconds of one task, of all), AT_ONCE (whether tasks may run
at the same time), ``tasks(options)`` and ``run(task, options)``.
"""
