#!/usr/bin/env bash
# Make .npm-neighbours, or bring it up to date: MCP servers of others, to be restarted and killed in tests, and axe,
# which looks at the page for what keeps people out.
#
# Installed by name and exact version from the registry that npm is set up with; nothing of it is kept in the
# tree, no lock file either, because that would hold addresses. Says one line when there is something to do.
# Without npm it ends with 3, and the tests that need these servers are skipped.
set -euo pipefail
cd -P "$(dirname "$0")/.."

FOLDER=.npm-neighbours
PACKAGES=(@modelcontextprotocol/server-everything@2026.8.31 axe-core@4.14.0)

main() {
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
        echo "environment: npm and node are not installed" >&2
        exit 3
    fi
    lock
    is_current && return
    echo "environment: installing ${PACKAGES[*]} into $FOLDER"
    rm -rf "$FOLDER"
    mkdir "$FOLDER"
    if ! npm install --prefix "$FOLDER" --silent --no-audit --no-fund --no-package-lock --ignore-scripts \
        --no-update-notifier "${PACKAGES[@]}" >/dev/null; then
        echo "environment: ${PACKAGES[*]} could not be installed; is npm's registry in reach?" >&2
        exit 1
    fi
    fingerprint >"$FOLDER/.installed"
}

# Two makes at once must not install into the same folder.
lock() {
    command -v flock >/dev/null || return 0
    exec 9>"$FOLDER.lock"
    flock 9
}

is_current() {
    [[ -e $FOLDER/.installed && $(fingerprint) == "$(<"$FOLDER/.installed")" ]]
}

fingerprint() {
    printf '%s\n' "${PACKAGES[@]}" "$(node --version)"
}

main
