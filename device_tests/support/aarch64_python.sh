#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An AArch64 Python from Debian's or Ubuntu's packages, unpacked into a folder: aarch64_python.sh FOLDER
# Nothing is installed, and the lists and the state of this machine's apt stay as they are. qemu-aarch64 runs it.
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$root"
: >"$work/status"

arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" \
        -o Dir::Cache::archives="$work/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
        -o Debug::NoLocking=1 "$@"
}
arm64 update
arm64 install -y --download-only --no-install-recommends python3-minimal libpython3-stdlib libstdc++6 >/dev/null
for package in "$work"/archives/*.deb; do
    dpkg-deb --extract "$package" "$root"
done
