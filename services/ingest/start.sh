#!/bin/sh
# The container's start: take the first spool that no other container holds, and serve.

# Docker Engine before 25 joins a container to its networks one by one: where `up` was cut short, one may
# be missing, and a later `up` does not see it.
networks=0
for interface in /sys/class/net/eth*; do
    [ ! -e "$interface" ] || networks=$((networks + 1))
done
if [ "$networks" -lt "${NETWORKS:-0}" ]; then
    echo "a network is missing, since 'up' was cut short: docker compose up -d --force-recreate" >&2
    exit 1
fi

# Names of containers change when they are made anew; a spool that was left must find somebody to store
# it: the next container that starts, or one that runs and looks for locks that are free
# (recording/spools.py).
for number in $(seq 100); do
    exec 9>"/spool/$number.lock" # kept open by the service: the lock ends with the container
    if flock --nonblock 9; then
        SPOOL_FILE="/spool/$number.db" exec python3 -m ingest
    fi
done
echo "no free spool in /spool" >&2
exit 1
