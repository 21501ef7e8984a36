#!/bin/sh
# Install Debian's Chromium for the tests of the page where that is cheap: as root, with apt-get, within three minutes.
# Elsewhere say that those tests are skipped; LATECOMER_CHROMIUM names another browser of its kind.
if [ -n "$LATECOMER_CHROMIUM" ] || command -v chromium >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive timeout 180 apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 && exit 0
fi
echo "NO BROWSER TESTS: there is no chromium, and it could not be installed; the tests of the page in a browser are skipped" >&2
