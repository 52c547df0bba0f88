#!/bin/sh
# Makes two Debian packages of the C library: deb.sh FOLDER
#
# libtownsquare0.1 has the shared library, libtownsquare-dev the rest. BUILT is that of install.sh.
set -eu

[ $# -eq 1 ] || { echo "usage: deb.sh FOLDER" >&2; exit 2; }
ffi=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
target=$(cd "$1" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$ffi")/Cargo.toml" | head -n 1)
runtime=libtownsquare${version%.*}
arch=$(dpkg --print-architecture)
libdir=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || cc -print-multiarch)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

DESTDIR=$work/dev LIBDIR=$libdir "$ffi/install.sh" /usr
mkdir -p "$work/run/usr/$libdir" "$work/run/DEBIAN" "$work/dev/DEBIAN"
mv "$work/dev/usr/$libdir"/libtownsquare.so.* "$work/run/usr/$libdir"
strip --strip-unneeded "$work/run/usr/$libdir/libtownsquare.so.$version"
chmod 644 "$work/run/usr/$libdir/libtownsquare.so.$version"
for names in "run:$runtime" dev:libtownsquare-dev; do
    doc=$work/${names%%:*}/usr/share/doc/${names#*:}
    mkdir -p "$doc"
    cat "$(dirname "$ffi")"/LICENSE-* >"$doc/copyright"
done

control() {
    cat <<CONTROL
Package: $1
Version: $version
Architecture: $arch
Multi-Arch: same
Section: $2
Priority: optional
Maintainer: The townsquare authors <townsquare@localhost>
Depends: $3
Description: community backend and mini app directory as a library
 $4
CONTROL
}
# The C library's version: the newest that a symbol of the shared library names.
libc=$(objdump -T "$work/run/usr/$libdir/libtownsquare.so.$version" | sed -n 's/.*(\{0,1\}GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
control "$runtime" libs "libc6 (>= $libc), libgcc-s1" "The shared library." >"$work/run/DEBIAN/control"
echo "activate-noawait ldconfig" >"$work/run/DEBIAN/triggers"
control libtownsquare-dev libdevel "$runtime (= $version), libc6-dev" \
    "The headers, the static library, the packages of pkg-config and CMake, and suppressions for race detectors." >"$work/dev/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/run" "$target/${runtime}_${version}_$arch.deb" >/dev/null
dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/dev" "$target/libtownsquare-dev_${version}_$arch.deb" >/dev/null
