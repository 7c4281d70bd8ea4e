#!/usr/bin/env bash
# Make .venv-ptb, or bring it up to date: python-telegram-bot alone, to check our fake Telegram with.
#
# Installs requirements/ptb.txt by hash, with the interpreter of .venv. Says one line when there is
# something to do and nothing when there is not. Uses uv when it is on PATH, pip otherwise.
set -euo pipefail
cd -P "$(dirname "$0")/.."

FOLDER=.venv-ptb
REQUIREMENTS=requirements/ptb.txt

main() {
    lock
    is_current && return
    echo "environment: installing python-telegram-bot into $FOLDER"
    if ! { install_with_uv || install_with_pip; }; then
        echo "environment: python-telegram-bot could not be installed from $REQUIREMENTS;" \
            "is the package index in reach?" >&2
        exit 1
    fi
    fingerprint >"$FOLDER/.installed"
}

# Two makes at once must not install into the same environment.
lock() {
    command -v flock >/dev/null || return 0
    exec 9>"$FOLDER.lock"
    flock 9
}

# A virtual environment knows its own path, so a moved clone needs a new one.
is_current() {
    [[ -e $FOLDER/.installed ]] && "$FOLDER/bin/python" -c '' 2>/dev/null &&
        [[ $(fingerprint) == "$(<"$FOLDER/.installed")" ]]
}

fingerprint() {
    cksum "$REQUIREMENTS"
    echo "$PWD"
}

install_with_uv() {
    command -v uv >/dev/null || return 1
    uv venv --quiet --clear --python .venv/bin/python "$FOLDER" &&
        uv pip install --quiet --python "$FOLDER/bin/python" --require-hashes -r "$REQUIREMENTS"
}

install_with_pip() {
    .venv/bin/python -m venv --clear "$FOLDER" &&
        "$FOLDER/bin/python" -m pip install --quiet --disable-pip-version-check \
            --require-hashes -r "$REQUIREMENTS"
}

main
