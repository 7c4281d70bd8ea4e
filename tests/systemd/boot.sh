#!/usr/bin/env bash
# Become a systemd with nothing but what the tests need. Called by machine.py as the first process of
# its own pid, mount and cgroup namespaces; nothing outside is changed.
#
#   boot.sh <user> <uid> <folder to open>…
set -euo pipefail

user=$1 uid=$2
shift 2

mount --make-rprivate /
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /etc/systemd/system
mount --bind /dev/null /dev/console

# A user without rights, for this machine only.
cp /etc/passwd /etc/group /run
echo "$user:x:$uid:$uid::/var/lib/$user:/bin/sh" >>/run/passwd
echo "$user:x:$uid:" >>/run/group
mount --bind /run/passwd /etc/passwd
mount --bind /run/group /etc/group

# Folders that only root may pass, and behind which Python or this code lies.
for folder in "$@"; do
    seen=$(mktemp -d /run/behind.XXXXXX)
    mount --rbind "$folder" "$seen"
    mount -t tmpfs -o mode=755 tmpfs "$folder"
    for each in "$seen"/* "$seen"/.[!.]*; do
        if [[ -L $each ]]; then
            cp -P "$each" "$folder/"
        elif [[ -d $each ]]; then
            mkdir "$folder/${each##*/}" && mount --rbind "$each" "$folder/${each##*/}"
        fi
    done
done

# The few targets that every service refers to; the machine's own would start the whole system.
mkdir /run/units /run/user-units
for target in sysinit basic shutdown network-online multi-user; do
    printf '[Unit]\nDefaultDependencies=no\n' >"/run/units/$target.target"
done
for target in basic default; do
    printf '[Unit]\nDefaultDependencies=no\n' >"/run/user-units/$target.target"
done
cp /lib/systemd/user/{exit.target,systemd-exit.service,shutdown.target} /run/user-units

# A user's own systemd, as logind would start it; there is no logind here, nor a bus.
cat >/run/units/user@.service <<EOF
[Service]
Type=notify
User=%i
ExecStartPre=+/usr/bin/install --directory --mode=0700 --owner=%i --group=%i /run/user/%i /var/lib/$user
Environment=HOME=/var/lib/$user XDG_RUNTIME_DIR=/run/user/%i
Environment=SYSTEMD_UNIT_PATH=/run/user-units:/var/lib/$user/.config/systemd/user
ExecStart=/lib/systemd/systemd --user --unit=default.target --log-target=null
KillMode=mixed
Delegate=yes
TimeoutStopSec=120s
EOF

exec env -i container=koboshi-tests PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    SYSTEMD_UNIT_PATH=/run/units:/etc/systemd/system SYSTEMD_GENERATOR_PATH=/run/none \
    /lib/systemd/systemd --system --unit=basic.target --log-target=null --show-status=no
