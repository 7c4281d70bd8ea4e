#!/usr/bin/env bash
# Make .venv-<name>, or bring it up to date: a program of others that our tests check something with.
#
#   ptb      python-telegram-bot, for our fake Telegram
#   discord-clients  discord.py and hikari, for our fake Discord
#   openapi  openapi-python-client, for our OpenAPI document
#   synapse  a homeserver of Matrix, for our Matrix channel
#   whisper  faster-whisper, for voice messages that are written down on this machine
#   profile  py-spy, which looks where the time goes
#   audit    pip-audit, for what we locked, and the schema of CycloneDX, for our list of parts
#
# Installs requirements/<name>.txt by hash, with the interpreter of .venv. Says one line when there is
# something to do and nothing when there is not. Uses uv when it is on PATH, pip otherwise.
set -euo pipefail
cd -P "$(dirname "$0")/.."

NAME=${1:?which one: ptb, discord-clients, openapi, synapse, whisper, profile or audit}
FOLDER=.venv-$NAME
REQUIREMENTS=requirements/$NAME.txt

main() {
    lock
    is_current && return
    echo "environment: installing $REQUIREMENTS into $FOLDER"
    if ! { install_with_uv || install_with_pip; }; then
        echo "environment: $REQUIREMENTS could not be installed; is the package index in reach?" >&2
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
    # With the pip of .venv, if it has one: to install one more takes as long as all else.
    local install=(install --quiet --disable-pip-version-check --no-compile --require-hashes -r "$REQUIREMENTS")
    if .venv/bin/python -c 'import pip' 2>/dev/null; then
        .venv/bin/python -m venv --clear --without-pip "$FOLDER" &&
            .venv/bin/python -m pip --python "$FOLDER/bin/python" "${install[@]}"
    else
        .venv/bin/python -m venv --clear "$FOLDER" && "$FOLDER/bin/python" -m pip "${install[@]}"
    fi
}

main
