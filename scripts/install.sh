#!/bin/sh
# Install this package into a virtual environment, with the versions of constraints.txt: install.sh BIN '.[EXTRAS]'.
# uv takes a fifth of pip's time, and is told of the index that pip is told of. Where it cannot be had, or does not find
# what pip finds by its other settings, pip does it.
set -eu
bin=$1 package=$2
pip="$bin/python -m pip"
index=$($pip config list | sed -n "s/.*\.index-url='\(.*\)'/\1/p" | tail -n 1)

test -x "$bin/uv" || $pip install --quiet --disable-pip-version-check -c constraints.txt uv || true
if test -x "$bin/uv"; then
    if test -n "$index"; then
        export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX-$index}"
    fi
    if "$bin/uv" pip install --quiet --python "$bin/python" -c constraints.txt -e "$package"; then
        exit 0
    fi
    echo "uv could not install $package: pip is tried" >&2
fi
exec $pip install --quiet --disable-pip-version-check -c constraints.txt -e "$package"
