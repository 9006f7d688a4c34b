#!/bin/sh
# Makes the project's environment: .venv, with the packages that requirements.txt pins and the project itself (editable).
#
# Every make target calls this, so it is quick when there is nothing to do: the environment carries a stamp, the
# hash of requirements.txt, pyproject.toml, this file and the folder of the project.  Nothing is installed outside of .venv;
# if the machine has no uv, this puts one into .venv first.  The stamp is written last, so that an interrupted run
# is done again.
#
# requirements.txt is uv.lock as versions and hashes (make lock writes both): uv.lock names addresses of one registry,
# and `uv sync` asks for those whatever mirror is configured.
set -eu
cd "$(dirname "$0")/.."

say() {
    printf 'env: %s\n' "$*" >&2
}

fail() {
    say "$@"
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

hash=$({ cat requirements.txt pyproject.toml local/env.sh; pwd -P; } | sha256sum)
stamp=.venv/.stamp
is_made() {
    [ -x .venv/bin/python ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$hash" ]
}
if is_made; then
    exit 0
fi

# --- one at a time: of two makes at once the second waits for the first, and finds its work done
if command -v flock >/dev/null 2>&1; then
    exec 9<local/env.sh
    if ! flock -n 9; then
        say "another make is making .venv: waiting for it"
        flock 9
    fi
    if is_made; then
        exit 0
    fi
fi

# --- a Python
python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if is_new_enough "$candidate"; then
        python=$("$candidate" -c 'import sys; print(sys.executable)')
        break
    fi
done
if [ -z "$python" ]; then
    found=$("${PYTHON:-python3}" -V 2>&1) || found="no ${PYTHON:-python3}"
    fail "Python 3.11 or newer is needed, and here is $found: install the package python3.11 (or newer), or name one: make PYTHON=/path/to/python"
fi

# --- an empty .venv, and uv
uv=
if uv --version >/dev/null 2>&1; then
    uv=uv
fi
export UV_PYTHON_DOWNLOADS=never
# Only two kinds of .venv are made again: one whose Python is gone, and one that says it was made elsewhere (the
# project was moved or copied).  Any other that works may be in use: it is kept and completed.
place=$(cat .venv/.place 2>/dev/null || pwd -P)
if ! is_new_enough .venv/bin/python || [ "$place" != "$(pwd -P)" ]; then
    if [ -e .venv ] && [ ! -f .venv/pyvenv.cfg ]; then
        fail ".venv is in the way: it is not a Python environment; move it away"
    fi
    rm -rf .venv
    say "making .venv for $("$python" -V)"
    if [ -n "$uv" ]; then
        uv venv --quiet --python "$python" .venv || fail "uv could not make .venv"
    elif ! said=$("$python" -m venv .venv 2>&1); then
        rm -rf .venv
        case $said in
        *ensurepip*) ;; # a Python without venv's other half, as Debian's: what it says is longer, not more
        *) printf '%s\n' "$said" >&2 ;;
        esac
        fail "$python cannot make an environment: install the package python3-venv (apt install python3-venv), or uv"
    fi
fi
pwd -P >.venv/.place
if [ -z "$uv" ]; then
    uv=.venv/bin/uv
    if ! "$uv" --version >/dev/null 2>&1; then
        .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null 2>&1 || true
        say "fetching uv, which installs the packages"
        pinned=$(sed -n 's/.*"\(uv==[^"]*\)".*/\1/p' pyproject.toml)
        .venv/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check "$pinned" ||
            fail "uv could not be fetched: is a package registry in reach?"
    fi
    # What it downloads is kept inside .venv too, until all is installed: a run that was interrupted goes on with it.
    if [ -z "${UV_CACHE_DIR:-}" ]; then
        export UV_CACHE_DIR="$PWD/.venv/.downloads"
    fi
fi
# uv does not read pip's settings; if uv has none of its own, it gets those.  An index beside the first one counts as
# pip counts it (the best version of all); the hashes of the lock say which file is meant.
if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}${UV_INDEX:-}${UV_EXTRA_INDEX_URL:-}" ]; then
    settings=$(.venv/bin/python -m pip config list 2>/dev/null || true)
    of_pip() { # the value of a setting in pip's files, its lines as words
        printf '%s\n' "$settings" | sed -n "s/^global\.$1='\(.*\)'\$/\1/p" | sed 's/\\n/ /g; s/^ *//'
    }
    index=${PIP_INDEX_URL:-$(of_pip index-url)}
    more=${PIP_EXTRA_INDEX_URL:-$(of_pip extra-index-url)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
    [ -z "$more" ] || export UV_INDEX="$more" UV_INDEX_STRATEGY="${UV_INDEX_STRATEGY:-unsafe-best-match}"
fi
if [ -n "${PIP_CERT:-}" ] && [ -z "${SSL_CERT_FILE:-}" ]; then
    export SSL_CERT_FILE="$PIP_CERT"
fi

# --- what requirements.txt pins, and the project
begun=$(date +%s)
if [ -f "$stamp" ]; then
    say "what .venv is made of has changed: completing it"
else
    say "installing the packages of requirements.txt into .venv (about 2 GB, 4 GB meanwhile; two to four minutes)"
fi
rm -f "$stamp"
# On a terminal uv shows how far it is; a log is spared that.
quiet=--quiet
[ ! -t 2 ] || quiet=
# Compiled at once: if PYTHONDONTWRITEBYTECODE is set (many containers do), each of the many processes of Airflow and
# Spark would otherwise compile all that it imports again.
"$uv" pip install $quiet --compile-bytecode --python .venv/bin/python -r requirements.txt ||
    fail "the packages of requirements.txt could not be installed (see above); run make again to go on"
# The locked packages hold the project's build backend, so that nothing is fetched here that the lock does not name.
"$uv" pip install $quiet --offline --no-deps --no-build-isolation --python .venv/bin/python --editable . ||
    fail "the project could not be installed into .venv (see above)"
rm -rf .venv/.downloads
printf '%s\n' "$hash" >"$stamp"
say "done, in $(($(date +%s) - begun)) s"
