#!/usr/bin/env bash
# Shows on a machine with an NVIDIA GPU, in at most ten minutes, whether the GPU code works and how fast it is:
#
#     tests/gpu/on_device.sh [--wheels DIR] [--installed] [--dry-run] [--out DIR] [--only PART ...] [...]
#
# Prints one JSON line for every check; doc/gpu.md says what they mean, --help lists the options of the checks.
# The status is 0 where nothing failed, 1 where a check failed or ran over its limit, 2 where the package could
# not be had.
#
# The package is built, or taken from a wheel for this Python in DIR, and installed into a temporary folder beside what
# Python has. What it needs and Python lacks comes from DIR alone where it is given, and else from pip's index.
# --installed takes the package that Python has. PYTHON names the interpreter (3.11 to 3.14).
set -euo pipefail

start=$SECONDS
limit=600       # seconds, of everything
setup_limit=240 # of them, for what is installed and for the wheel; the parts share the others
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)

wheels='' installed='' given=()
while [ $# -gt 0 ]; do
    case $1 in
        --wheels) wheels=$(cd "${2:?--wheels needs a folder}" && pwd) && shift 2 ;;
        --installed) installed=yes && shift ;;
        -h | --help) installed=yes && given+=("$1") && shift ;;
        *) given+=("$1") && shift ;;
    esac
done

fail() {
    printf '{"summary": "failed", "error": "%s"}\n' "$1"
    exit 2
}

work=$(mktemp -d "${TMPDIR:-/tmp}/sparsekit-on-device.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Run a command for what is left of the time to set up, at least a second: 0 would be without a limit.
limited() {
    local left=$((setup_limit - (SECONDS - start)))
    timeout --kill-after=5 "$((left > 1 ? left : 1))" "$@"
}

# The first interpreter of a supported version, one that has CuPy before others.
find_python() {
    local name found='' names=(python3 python python3.14 python3.13 python3.12 python3.11)
    if [ -n "${PYTHON:-}" ]; then names=("$PYTHON"); fi
    for name in "${names[@]}"; do
        "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || continue
        if "$name" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("cupy"))'; then
            echo "$name"
            return
        fi
        found=${found:-$name}
    done
    echo "$found"
}

# Requirements that this Python lacks, CuPy's for the CUDA version that the driver has.
missing() {
    limited "$python" - "${given[@]}" <<'PYTHON'
import importlib.util
import re
import shutil
import subprocess
import sys

needed = ["numpy>=2.0", "scipy>=1.15", "scikit-learn>=1.6", "joblib>=1.3", "threadpoolctl>=3.5",
          "pytest>=9.0", "hypothesis>=6.100", "pytest-xdist>=3.6", "pytest-timeout>=2.3", "mpmath>=1.3"]
modules = {"scikit-learn": "sklearn", "pytest-xdist": "xdist", "pytest-timeout": "pytest_timeout"}
for requirement in needed:
    name = re.split("[>=]", requirement)[0]
    if importlib.util.find_spec(modules.get(name, name)) is None:
        print(requirement)
if importlib.util.find_spec("cupy") is None and shutil.which("nvidia-smi") and "--dry-run" not in sys.argv:
    said = subprocess.run(["nvidia-smi"], capture_output=True, text=True, timeout=60).stdout
    version = re.search(r"CUDA Version:\s*(\d+)", said)
    print(f"cupy-cuda{13 if version and int(version[1]) >= 13 else 12}x>=14")
PYTHON
}

# From the folder of wheels alone where there is one.
install() {
    local from=()
    if [ -n "$wheels" ]; then from=(--no-index --find-links "$wheels"); fi
    limited "${pip[@]}" install --quiet --disable-pip-version-check --target "$work/site" "${from[@]}" "$@"
}

build() {
    local from=()
    if [ -n "$wheels" ]; then from=(--no-index --find-links "$wheels"); fi
    # what is installed builds without a copy of itself, and its programs are beside it
    if "$python" -c 'import mesonpy, Cython' 2>/dev/null; then from=(--no-build-isolation); fi
    PATH="$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH" \
        limited "${pip[@]}" wheel --quiet --disable-pip-version-check --no-deps \
        --config-settings=build-dir="$work/build" --wheel-dir "$work/wheels" "${from[@]}" "$checkout"
}

python=$(find_python)
[ -n "$python" ] || fail "no Python 3.11 to 3.14 found; set PYTHON"
if [ -z "$installed" ]; then
    pip=("$python" -m pip)
    if ! "${pip[@]}" --version >/dev/null 2>&1; then
        limited "$python" -m venv "$work/venv" || fail "$python has no pip, and venv failed"
        # another Python's pip installs for this one, which may be a virtual environment itself
        pip=("$work/venv/bin/python" -m pip --python "$python")
    fi
    missing > "$work/lacking" || fail "what is missing could not be found within $setup_limit s"
    mapfile -t lacking < "$work/lacking"
    if [ ${#lacking[@]} -gt 0 ]; then
        install "${lacking[@]}" || fail "pip could not install ${lacking[*]} within $setup_limit s"
    fi
    if ! { [ -n "$wheels" ] && install --no-deps --pre sparsekit; }; then
        build || fail "the wheel could not be built within $setup_limit s; --wheels takes one that is"
        install --no-deps "$work"/wheels/*.whl || fail "the wheel could not be installed within $setup_limit s"
    fi
fi

export PYTHONPATH="$here:$work/site${PYTHONPATH:+:$PYTHONPATH}"
status=0
# -P: not the working directory, which may be the checkout, whose sparsekit has no compiled kernels
"$python" -P -m on_device --limit "$((limit - 10 - (SECONDS - start)))" "${given[@]}" || status=$?
exit "$status"
