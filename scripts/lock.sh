#!/usr/bin/env bash
# Write requirements/*.txt from pyproject.toml: exact versions and hashes, for every platform and Python.
#
# Versions already there are kept; UPGRADE=1 takes the newest. The files name no index, so they work with any.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the benchmarks compare us with lives in an environment of its own.
PEERS=benchmarks/peers/requirements.in
# So do pip itself, and the programs of others that something of ours is checked with.
SIDE=(installer ptb discord-clients openapi audit profile synapse)
# What a user adds to an installation: each file is whole, the runtime's versions included.
EXTRAS=(acp anthropic discord google matrix-e2e mcp media moving postgres prices slack web whisper)

main() {
    local uv
    uv=$(find_uv)
    compile "$uv" runtime --group build pyproject.toml
    compile "$uv" dev --group build --group dev --constraints requirements/runtime.txt pyproject.toml
    local extra
    for extra in "${EXTRAS[@]}"; do
        compile "$uv" "$extra" --group build --extra "$extra" --constraints requirements/dev.txt pyproject.toml
    done
    if [[ -e $PEERS ]]; then compile "$uv" bench "$PEERS"; fi
    local name
    for name in "${SIDE[@]}"; do compile "$uv" "$name" "requirements/$name.in"; done
    if grep -nE '://|^-|--(index|find|extra)' requirements/*.txt; then
        echo "lock: the requirements files must not name an index" >&2
        exit 1
    fi
}

compile() {
    local uv=$1 name=$2
    shift 2
    echo "lock: requirements/$name.txt"
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
        --no-emit-index-url --annotation-style line ${UPGRADE:+--upgrade} "$@" \
        --output-file "requirements/$name.txt" >/dev/null
}

find_uv() {
    if command -v uv; then return; fi
    if [[ ! -x .venv-tools/bin/uv ]]; then
        echo "lock: installing uv into .venv-tools" >&2
        "${PYTHON:-python3}" -m venv --clear .venv-tools >&2
        .venv-tools/bin/python -m pip install --quiet --disable-pip-version-check uv >&2
    fi
    echo .venv-tools/bin/uv
}

main
