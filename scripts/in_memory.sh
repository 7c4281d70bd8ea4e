#!/usr/bin/env bash
# Run a command with the folders of the tests in memory: scripts/in_memory.sh command …
#
# A kill leaves the same in memory as on a disk, and waiting for the disk takes a third of a test run. The memory is
# mounted where pytest makes its folders, in a mount namespace of the command's own: no path changes, nothing outside sees
# it, and it is gone when the last process of the command is. For that it must be root, with enough memory; otherwise, and
# with KOBOSHI_TESTS_ON_DISK=1, the command runs on the disk.
set -euo pipefail

AVAILABLE_KB_MIN=$((6 * 1024 * 1024))

is_possible() {
    [[ -z ${KOBOSHI_TESTS_ON_DISK:-} && -z ${PYTEST_DEBUG_TEMPROOT:-} && $EUID == 0 && -r /proc/meminfo ]] &&
        (($(awk '/^MemAvailable/ {print $2}' /proc/meminfo) > AVAILABLE_KB_MIN)) &&
        unshare --mount --propagation private true 2>/dev/null
}

is_possible || exec "$@"
folder=${TMPDIR:-/tmp}/pytest-of-$(id -un)
mkdir -p -m 0700 "$folder"
exec unshare --mount --propagation private bash -c '
    mount -t tmpfs -o mode=0700 koboshi-tests "$0" 2>/dev/null || echo "tests: on the disk, nothing can be mounted" >&2
    exec "$@"' "$folder" "$@"
