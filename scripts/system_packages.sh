#!/usr/bin/env bash
# Install the system packages the tests use, or the ones named after --install.
#
# Quiet when nothing is missing. As root on Debian it calls apt-get; otherwise it says what to install.
# Without arguments a missing package is not an error: the tests that need it skip and say so.
set -euo pipefail
cd -P "$(dirname "$0")/.."

# command:package, or library:package
TESTS_NEED=(
    bwrap:bubblewrap
    strace:strace
    mount:mount
    prlimit:util-linux
    systemctl:systemd
    chromium:chromium
    tmux:tmux
    postgres:postgresql
    libatomic.so.1:libatomic1 # Playwright's driver
)

main() {
    if [[ ${1:-} == --install ]]; then
        shift
        install "$@"
        return
    fi
    local missing=() pair
    for pair in "${TESTS_NEED[@]}"; do
        is_there "${pair%%:*}" || missing+=("${pair#*:}")
    done
    ((${#missing[@]} == 0)) || install "${missing[@]}" || true
}

is_there() {
    case $1 in
    postgres) command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ;;
    lib*.so.*) PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -F "$1" >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

install() {
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        echo "system packages: please install $*  (Debian: sudo apt-get install $*)" >&2
        return 1
    fi
    echo "system packages: installing $*"
    export DEBIAN_FRONTEND=noninteractive
    # apt-get does not wait for another one everywhere; the set-up of an environment may need it at the same time.
    if command -v flock >/dev/null; then
        exec 9>.venv-packages.lock
        flock 9
    fi
    local said
    case " $* " in *" postgresql "*) without_cluster ;; esac
    if ! said=$(apt-get update 2>&1 && apt-get install -y --no-install-recommends "$@" 2>&1); then
        printf '%s\n' "$said" "system packages: apt-get could not install $*" >&2
        return 1
    fi
}

# Debian's package would make a cluster and start it; the tests make their own.
without_cluster() {
    apt-get update >/dev/null 2>&1 && apt-get install -y --no-install-recommends postgresql-common >/dev/null 2>&1 || return 0
    local settings=/etc/postgresql-common/createcluster.conf
    [[ ! -e $settings ]] || sed -i 's/^#* *create_main_cluster *=.*/create_main_cluster = false/' "$settings"
}

main "$@"
