#!/bin/sh
# Take promtool out of Debian's package prometheus, which checks deploy/prometheus/alerts.yml in the tests, and put it into
# the folder that is given. The package itself is not installed: it would start a service.
if command -v promtool >/dev/null || [ -x "$1/promtool" ]; then
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fetch() {
    (cd "$folder" && timeout 120 apt-get download -qq prometheus)
}
if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
    chmod 755 "$folder"
    fetch >/dev/null 2>&1 || { [ "$(id -u)" = 0 ] && timeout 120 apt-get update -qq && fetch; }
    dpkg-deb --fsys-tarfile "$folder"/prometheus_*.deb | tar -x -C "$folder" ./usr/bin/promtool && mv "$folder/usr/bin/promtool" "$1" && exit 0
fi
echo "RULES NOT CHECKED: there is no promtool, and it could not be fetched; its test of the alerts is skipped" >&2
