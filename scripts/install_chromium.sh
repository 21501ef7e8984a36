#!/bin/sh
# Install Debian's Chromium for the tests of the page where that is cheap: as root, with apt-get, within five minutes.
# A fresh machine has no lists of packages, or lists that name files which are gone: they are fetched, and it is tried again.
# Elsewhere say that those tests are skipped; LATECOMER_CHROMIUM names another browser of its kind.
if [ -n "$LATECOMER_CHROMIUM" ] || command -v chromium >/dev/null; then
    exit 0
fi
install() {
    DEBIAN_FRONTEND=noninteractive timeout 180 apt-get install -y -qq --no-install-recommends chromium
}
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    install >/dev/null 2>&1 && exit 0
    timeout 120 apt-get update -qq && install >/dev/null && exit 0
fi
echo "NO BROWSER TESTS: there is no chromium, and it could not be installed; the tests of the page in a browser are skipped" >&2
