# Shared by the scripts: what a fresh Debian or Ubuntu machine lacks is installed here.
# shellcheck shell=bash
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"
LOG="$ROOT/data" # not its folder log: there, root would follow a link of the stack's user
export PYTHONPATH="$ROOT" PIP_DISABLE_PIP_VERSION_CHECK=1

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# settings_file: prints which it is; Docker Compose reads the same.
settings_file() {
    [[ "${COMPOSE_ENV_FILES:-}" != *,* ]] || die "COMPOSE_ENV_FILES names several files: name one"
    printf '%s' "${COMPOSE_ENV_FILES:-$ROOT/.env}"
}

# load_env: takes what ./scripts/configure wrote, as Docker Compose does (but that it knows no `export`, no
# escapes, and no variables in values); the environment counts more.
load_env() {
    local line name value file
    local -A given=()
    file="$(settings_file)"
    [ -e "$file" ] || [ -n "${COMPOSE_ENV_FILES:-}" ] || return 0
    may_read "$file"
    for name in $(compgen -e); do given[$name]=1; done
    while read -r line || [ -n "$line" ]; do # the last one may lack its end
        line="${line%$'\r'}" name="${line%%=*}" value="${line#*=}"
        value="${value#"${value%%[![:blank:]]*}"}"
        # Quoted up to the next such quote; else without a comment.
        if [[ "$value" =~ ^([\"\'])(.*)$ && "${BASH_REMATCH[2]}" == *"${BASH_REMATCH[1]}"* ]]; then
            value="${BASH_REMATCH[2]%%"${BASH_REMATCH[1]}"*}"
        else
            value="${value%% #*}" value="${value%"${value##*[![:blank:]]}"}"
        fi
        if [[ "$line" =~ ^[A-Z][A-Z0-9_]*= ]] && [ -z "${given[$name]:-}" ]; then export "$name=$value"; fi
    done <"$file"
}

# warn_of_names: says which names in that file are no settings: one that is misspelt does nothing.
warn_of_names() {
    local file name known
    file="$(settings_file)"
    [ -r "$file" ] && [ -d "$ROOT/docs" ] || return 0
    known="$(grep -rhoE '\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b' "$ROOT"/docs/*.md "$ROOT"/docker-compose*.yml | sort -u)"
    while read -r name; do
        grep -qxF "$name" <<<"$known" ||
            echo "WARNING: $name in $file is no setting of Waymark, and does nothing: docs/configuration.md has all" >&2
    done < <(sed -nE 's/^([A-Z][A-Z0-9_]*)=.*/\1/p' "$file" | grep -vE '^(COMPOSE|DOCKER|BUILDKIT|BUILDX)_|_(PROXY|proxy)$|^(TZ|PATH)$')
}

# may_read FILE: one that sudo wrote may be root's alone.
may_read() {
    [ -e "$1" ] || die "there is no $1"
    [ -r "$1" ] || die "$1 may not be read: sudo chown $(id -un) $1"
}

# own_as WHAT FILE: by root, for whoever has the first; others have what they make.
own_as() { [ "$(id -u)" -ne 0 ] || chown --reference="$1" "$2"; }

# rewrite_env FILE NAMES LINE...: lines in place of those that set NAMES, an expression. All else in it
# stays, and whose it is.
rewrite_env() {
    local file="$1" names="$2" old=/dev/null owner
    owner="$(dirname "$file")"
    if [ -e "$file" ]; then
        [ -f "$file" ] || die "$file is no file of settings"
        may_read "$file"
        old="$file" owner="$file"
    fi
    umask 077
    rm -f "$file.new" # of one that was killed
    {
        grep -avE "^[[:blank:]]*($names)=" "$old" || [ $? -eq 1 ] # 1: nothing else is there
        printf '%s\n' "${@:3}"
    } >"$file.new"
    own_as "$owner" "$file.new"
    sync "$file.new"
    mv -f "$file.new" "$file"
}

# run_logged WHAT COMMAND...: says what happens, keeps the output for when it fails. Waits for a lock of
# apt, which a new machine's updates hold for minutes: DPkg::Lock::Timeout knows one of its three alone.
run_logged() {
    local what="$1" began=$SECONDS held log="$LOG/setup.$$.log" said=0 # a log of its own: two may run
    shift
    mkdir -p "$LOG"
    printf '  %s ... ' "$what"
    until "$@" >"$log" 2>&1 </dev/null; do
        held="$(sed -n 's/^E: Could not get lock //p;T;q' "$log")"
        if [ -n "$held" ] && ((SECONDS - began < ${WAYMARK_APT_SECONDS:-900})); then
            ((said++)) || printf 'waiting for the lock %s ... ' "$held"
            sleep 2
            continue
        fi
        printf 'failed\n'
        mv -f "$log" "$LOG/setup.log"
        die "$(grep -v '^[[:space:]]*$' "$LOG/setup.log" | tail -n 1) [$LOG/setup.log]"
    done
    mv -f "$log" "$LOG/setup.log"
    printf 'done (%d s)\n' $((SECONDS - began))
}

# as_root COMMAND...: sudo hides the way out of a network that has only a proxy.
as_root() {
    local names
    names="$(compgen -e | grep -ixE 'https?_proxy|no_proxy' | paste -sd ,)" || true
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n ${names:+"--preserve-env=$names"} "$@"; fi
}

# INSTALL: what root does, who removes the policy also where the script was killed. Debian starts what it
# installs, NGINX on every address: a policy of 101 forbids that, to us alone; left behind, it is without
# effect and goes when it is asked. An older checkout's stayed for ever, and looks as anybody's may: it is
# renamed (in a container it is the image's).
# shellcheck disable=SC2016 # root's shell fills these in
INSTALL='
policy=/usr/sbin/policy-rc.d
if [ -d /run/systemd/system ] && printf "#!/bin/sh\nexit 101\n" | cmp -s - $policy; then mv -f $policy $policy.found; fi
if [ ! -e $policy ] || grep -q WAYMARK_INSTALLS $policy; then
    trap "rm -f $policy" EXIT # also after Ctrl-C
    printf "%s\n" "#!/bin/sh" "[ -z \"\$WAYMARK_INSTALLS\" ] || exit 101" \
        "flock --nonblock --shared /var/lib/dpkg rm -f $policy" "exit 0" >$policy.new
    chmod 755 $policy.new && mv -f $policy.new $policy || exit
fi
WAYMARK_INSTALLS=1 apt-get install -y --no-install-recommends "$@"'

# apt_alone COMMAND...: as root, one such command on this machine at a time.
apt_alone() {
    local status=0
    as_root flock --close --nonblock --conflict-exit-code 75 /var/lib/dpkg \
        env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@" || status=$?
    [ $status -ne 75 ] || echo "E: Could not get lock /var/lib/dpkg. Another set-up installs"
    return $status
}

# MIRROR_SECONDS: how long a mirror of packages that does not answer is asked again.
MIRROR_SECONDS=180 MIRROR_PAUSE=5

# patiently COMMAND...: once more and once more, for what only a mirror can make fail; a status of 2 says
# that it would be the same.
patiently() {
    local until=$((SECONDS + MIRROR_SECONDS))
    until "$@"; do
        [ $? -ne 2 ] && ((SECONDS < until)) || return 1
        sleep $MIRROR_PAUSE
    done
}

# unanswered: in the last log, something of a mirror's is missing. Apt goes on with the lists that it has.
unanswered() { grep -q '^[EW]: Failed to fetch' "$LOG/setup.log"; }

# packaged PACKAGE: there is one of that name. Apt would also take another that provides it: on Ubuntu,
# for chromium, one that holds no browser but asks for a snap.
packaged() { [ -n "$(apt-cache show "$1" 2>/dev/null)" ]; }

# apt_install PACKAGE...: installs, or says exactly what to install; with EXACT set, none of another name.
apt_install() {
    local until=$((SECONDS + MIRROR_SECONDS)) missed
    command -v apt-get >/dev/null || die "please install first: $*"
    as_root true 2>/dev/null || die "please install first: sudo apt-get install $*"
    while :; do
        missed=""
        (run_logged "reading the package lists" apt_alone apt-get update) &&
            { ! unanswered || missed=1; } &&
            { [ -z "${EXACT:-}" ] || packaged "$1"; } &&
            (run_logged "installing $*" apt_alone bash -c "$INSTALL" bash "$@") && return
        ! unanswered || missed=1
        if [ -z "$missed" ] || ((SECONDS >= until)); then die "please install first: $*"; fi
        printf '  a mirror of packages does not answer; again in %d s\n' $MIRROR_PAUSE
        sleep $MIRROR_PAUSE
    done
}

ensure_program() {
    local program="$1" package="$2"
    PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$program" >/dev/null || apt_install "$package"
}

# ensure_library NAME PACKAGE: not by `grep -q`, which would end early: pipefail takes ldconfig's broken
# pipe for "missing".
ensure_library() { /sbin/ldconfig -p | grep -F "$1 " >/dev/null || apt_install "$2"; }

ensure_nginx() {
    PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v nginx >/dev/null && return
    apt_install nginx
    # The package would start one of its own, open to everybody, with the machine.
    [ ! -d /run/systemd/system ] || run_logged "keeping Debian's own nginx off" as_root systemctl disable nginx
}

# debian_mirror: the address of the Debian mirror that this machine uses; nothing where it uses none.
debian_mirror() {
    # shellcheck disable=SC2016 # apt fills these in
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(SUITE)' 'Created-By: Packages' |
        awk '$2 == "Debian" && $3 !~ /security|updates/ {print $1; exit}'
}

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$candidate"
            return
        fi
    done
    return 1
}

# one_set_up: wait for any other set-up of this checkout; `exec 9>&-` ends ours. ./scripts/test may be started
# while ./scripts/up still installs.
one_set_up() {
    exec 9<"$ROOT"
    flock -n 9 || { printf '  waiting for another set-up\n' && flock 9; }
}

# ensure_venv LOCKFILE...: one environment; a lock file is installed again only when it changed.
ensure_venv() {
    local python lock mark changed=()
    one_set_up
    # Without pip it was never finished, or the machine has another Python since.
    if ! "$VENV/bin/python" -c 'import pip' 2>/dev/null; then
        find_python >/dev/null || apt_install python3
        python="$(find_python)" || die "Waymark needs Python 3.11 or newer; this machine has an older one"
        "$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
        run_logged "making the virtual environment" "$python" -m venv --clear "$VENV"
    fi
    for lock in "$@"; do
        mark="$VENV/locked/${lock//\//_}"
        cmp -s "$ROOT/$lock" "$mark" || changed+=("$lock")
    done
    if [ ${#changed[@]} -gt 0 ]; then
        run_logged "installing ${changed[*]}" "$VENV/bin/python" -m pip install --require-hashes \
            "${changed[@]/#/--requirement=$ROOT/}"
        mkdir -p "$VENV/locked"
        for lock in "${changed[@]}"; do
            cp "$ROOT/$lock" "$VENV/locked/${lock//\//_}"
        done
    fi
    exec 9>&-
}

# ensure_packages FROM TO WHAT: node's packages by the lock in FROM; installed again when that changed.
ensure_packages() {
    local from="$ROOT/$1" to="$ROOT/.cache/$2" what="$3"
    ensure_program node nodejs
    one_set_up
    if [ ! -e "$to/node_modules" ] || ! cmp -s "$from/package-lock.json" "$to/installed.json"; then
        ensure_program npm npm
        mkdir -p "$to"
        rm -f "$to/installed.json"
        cp "$from/package.json" "$from/package-lock.json" "$to"
        run_logged "installing $what" npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund
        cp "$from/package-lock.json" "$to/installed.json"
    fi
    exec 9>&-
}

# ensure_typescript: what checks the types of the page's modules.
# shellcheck disable=SC2034 # scripts/lint runs it
TSC="$ROOT/.cache/typescript/node_modules/typescript/bin/tsc"
ensure_typescript() { ensure_packages services/monitoring typescript TypeScript; }

STACK_LOCKS=(services/ingest/requirements.txt services/monitoring/requirements.txt scripts/requirements.txt
    mongo/backup/requirements.txt)

# ensure_official PROGRAM...: MongoDB's own build, where the machine lacks one of these; where that cannot be
# had, say so.
ensure_official() {
    local said
    [ -z "${MONGODB_BIN:-}" ] && [ -n "${MONGODB_TARBALL-its own}" ] || return 0
    [ "$(command -v "$@" | wc -l)" -lt $# ] || return 0
    ensure_venv "${STACK_LOCKS[@]}"
    printf "  MongoDB's own build ... "
    if said="$("$VENV/bin/python" -m mongo.official 2>&1)"; then
        official="$said" && printf 'in %s\n' "$said"
    else
        printf 'not to be had: %s\n' "$(tail -n 1 <<<"$said")"
    fi
}

# ensure_stack: everything that ./scripts/up starts.
official="" # where ensure_official found it
ensure_stack() {
    local locks=("${STACK_LOCKS[@]}")
    if [ -n "$official" ]; then
        ensure_library libcurl.so.4 libcurl4 # mongod's
    elif [ -z "${MONGODB_BIN:-}" ] && ! command -v mongod >/dev/null; then
        [ "$(uname -m)" = x86_64 ] ||
            die "no mongod here: install MongoDB, or set MONGODB_BIN to the folder that has it"
        locks+=(mongo/requirements.txt)
        ensure_library libcurl.so.4 libcurl4
    fi
    ensure_nginx
    ensure_program setpriv util-linux
    [ -z "${GATEWAY_TLS_NAMES:-}" ] || ensure_program dehydrated dehydrated
    ensure_venv "${locks[@]}" "$@"
}

# ensure_user: whom root gives the stack to; where there is none, `up` runs as root and says so.
ensure_user() {
    [ "$(id -u)" -ne 0 ] || getent passwd waymark >/dev/null ||
        PATH="$PATH:/usr/sbin" useradd --system --user-group --no-create-home --home-dir /nonexistent \
            --shell /usr/sbin/nologin waymark 2>/dev/null || true
}

# ensure_sharded: mongod and mongos of one version; the packaged mongod has no mongos.
ensure_sharded() {
    [ -n "${MONGODB_BIN:-}$official" ] && return
    command -v mongod >/dev/null && command -v mongos >/dev/null && return
    "$ROOT/mongo/fetch-emulated" | sed '$d'
}

# require_stack MESSAGE: ends with the message where ./scripts/up has never got as far as running.
require_stack() {
    [ -e "$VENV/locked/scripts_requirements.txt" ] || die "$1"
}
