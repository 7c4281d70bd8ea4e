#!/usr/bin/env bash
# Make .venv, or bring it up to date: scripts/environment.sh runtime|dev
#
# Installs requirements/<kind>.txt by hash, then koboshi itself, editable. Says one line when there is
# something to do and nothing when there is not. Uses uv when it is on PATH, else pip: first the locked one,
# because the pip of a Python is as old as that Python.
# PYTHON=… chooses the interpreter for a new environment; EXTRAS="mcp anthropic" adds extras, by hash, too.
set -euo pipefail
cd -P "$(dirname "$0")/.."

main() {
    local kind=$1
    case $kind in runtime | dev) ;; *) stop "unknown environment \"$kind\"; known: runtime, dev" ;; esac

    lock
    is_current dev && return
    if [[ $kind == dev ]] || ! is_current runtime; then install "$kind"; fi
    # The development environment has them all.
    if [[ $kind == dev ]]; then return; fi
    local extra
    for extra in ${EXTRAS:-}; do
        case $extra in
            anthropic | discord | google | matrix-e2e | mcp | media | postgres | slack | web) ;;
            *) stop "unknown extra \"$extra\"; known: anthropic, discord, google, matrix-e2e, mcp, media, postgres, slack, web" ;;
        esac
        is_current "$extra" || install "$extra"
    done
}

install() {
    local kind=$1
    if command -v uv >/dev/null; then
        install_with_uv "$kind"
    else
        install_with_pip "$kind"
    fi
    fingerprint "$kind" >".venv/.installed-$kind"
}

# Two makes at once must not install into the same environment.
lock() {
    command -v flock >/dev/null || return 0
    exec 9>.venv.lock
    flock 9
}

is_current() {
    [[ -x .venv/bin/koboshi && -e .venv/.installed-$1 ]] && works &&
        [[ $(fingerprint "$1") == "$(<".venv/.installed-$1")" ]]
}

fingerprint() {
    cksum requirements/runtime.txt requirements/installer.txt pyproject.toml
    [[ $1 == runtime ]] || cksum "requirements/$1.txt"
}

# A virtual environment knows its own path, so a moved clone needs a new one.
works() {
    .venv/bin/python -c '' 2>/dev/null && grep -qsF "$PWD/.venv" .venv/bin/activate
}

install_with_uv() {
    say "installing the $1 requirements into .venv with uv"
    if ! works; then make_uv_venv; fi
    local install=(uv pip install --quiet --python .venv/bin/python)
    "${install[@]}" --require-hashes -r "requirements/$1.txt"
    "${install[@]}" --no-deps --no-build-isolation -e .
}

install_with_pip() {
    say "installing the $1 requirements into .venv with pip (uv would be faster)"
    # An environment made by uv has no pip.
    if ! works || ! .venv/bin/python -c 'import pip' 2>/dev/null; then make_venv; fi
    if ! has_locked_pip; then
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/installer.txt
    fi
    local install=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
    # What a developer needs of ten thousand files is compiled when it is first used, as uv does it.
    [[ $1 != dev ]] || install+=(--no-compile)
    "${install[@]}" --require-hashes -r "requirements/$1.txt"
    "${install[@]}" --no-deps --no-build-isolation -e .
}

# Its folder tells the version, and is quicker to look at than pip is to ask.
has_locked_pip() {
    local version
    version=$(sed -n 's/^pip==\([^ ]*\).*/\1/p' requirements/installer.txt)
    [[ -d $(echo .venv/lib/python3.*/site-packages/pip-"$version".dist-info) ]]
}

make_uv_venv() {
    local python
    python=$(find_python)
    rm -rf .venv
    uv venv --quiet --python "$python" .venv
}

make_venv() {
    local python
    python=$(find_python)
    # Debian ships Python without these two; they come in a package of their own.
    "$python" -c 'import ensurepip, venv' 2>/dev/null || scripts/system_packages.sh --install \
        "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    "$python" -m venv --clear .venv
}

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14 python}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    stop "no Python 3.11 or newer found; install one (Debian: apt-get install python3) or set PYTHON=…"
}

say() { echo "environment: $*"; }

stop() {
    echo "environment: $*" >&2
    exit 1
}

main "${1:-runtime}"
