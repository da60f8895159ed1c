# Sourced by the scripts beside this one: where things are kept, and folders that are complete or absent.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hybrid-runner-ci"
mkdir -p "$cache"

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

give_up() { say "$*"; exit 1; }

# Sets $unfinished, a folder on the cache's own disk that goes when the script ends.
work_aside() {
    unfinished=$(mktemp -d "$cache/unfinished.XXXXXX")
    trap 'rm -rf "$unfinished"' EXIT
}

# place SOURCE TARGET: in one step, readable for the account that servers run as. Of several at once, the first wins.
place() {
    chmod -R go+rX "$1"
    mkdir -p "$(dirname "$2")"
    [ ! -d "$2" ] || mv -T "$2" "$(mktemp -d "$unfinished/before.XXXXXX")" 2>/dev/null || true # another took it away
    mv -T "$1" "$2" 2>/dev/null && return
    [ -d "$1" ] && [ -d "$2" ] || give_up "$2 cannot be put in its place"
    say "another has just placed ${2##*/}"
}

# unpack FOLDER PACKAGE…: Debian packages, unpacked and not installed: that would start services.
unpack() {
    local folder=$1 archive
    shift
    command -v apt-get >/dev/null || give_up "there is no apt-get to get $* with"
    mkdir "$unfinished/packages"
    (
        cd "$unfinished/packages"
        apt-get download -qq -o APT::Sandbox::User=root "$@" || { apt-get update -qq && apt-get download -qq -o APT::Sandbox::User=root "$@"; }
    ) </dev/null >&2 || give_up "$* cannot be fetched"
    for archive in "$unfinished"/packages/*.deb; do
        dpkg -x "$archive" "$folder"
    done
}
