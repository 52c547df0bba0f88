#!/bin/sh
# Installs the C library: install.sh PREFIX
#
# Builds it with cargo and installs into PREFIX the shared library with its links, the static library, the headers,
# townsquare.pc, the CMake package, and the suppressions for race detectors. Needs cargo, and the ld, objcopy, ar and nm that come with a C compiler. `cargo cinstall`
# installs the same files, but its static library also defines the functions of SQLite and of other dependencies.
#
#   BUILT=FOLDER   installs the libraries of this folder instead of building them (target/debug)
#   PROFILE=dev    builds with this profile of cargo; otherwise dist-c, which is small and fast
#   EMBEDDED=1     builds without PostgreSQL and S3: SQLite and files in a folder alone, in less time and space
#   DESTDIR=FOLDER installs into FOLDER/PREFIX, for packages
#   LIBDIR=lib64   the folder of the libraries in PREFIX; otherwise lib
#   CARGO_BUILD_TARGET=TRIPLE, LD, OBJCOPY, AR, NM  the target and its tools, for a library of another architecture
set -eu

[ $# -eq 1 ] || { echo "usage: install.sh PREFIX" >&2; exit 2; }
case $1 in
    /*) prefix=$1 ;;
    *) prefix=$PWD/$1 ;;
esac
ffi=$(cd "$(dirname "$0")" && pwd)
workspace=$(dirname "$ffi")
libdir=${LIBDIR:-lib}
ld=${LD:-ld} objcopy=${OBJCOPY:-objcopy} ar=${AR:-ar} nm=${NM:-nm}
if [ "$(uname)" != Darwin ]; then
    for tool in "$ld" "$objcopy" "$ar" "$nm"; do
        command -v "$tool" >/dev/null || { echo "install.sh: $tool is missing (package binutils)" >&2; exit 1; }
    done
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$workspace/Cargo.toml" | head -n 1)
soname=libtownsquare.so.${version%.*}

if [ -z "${BUILT:-}" ]; then
    profile=${PROFILE:-dist-c}
    cargo build --manifest-path "$ffi/Cargo.toml" --lib --profile "$profile" --locked \
        ${EMBEDDED:+--no-default-features}
    case $profile in
        dev) folder=debug ;;
        *) folder=$profile ;;
    esac
    BUILT=${CARGO_TARGET_DIR:-$workspace/target}/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$folder
fi

# Copies SOURCE to TARGET in one step: a program that has the old library loaded keeps it. The time is that of SOURCE, so that a
# build that depends on TARGET does not start again.
place() {
    cp -p "$1" "$2.new"
    mv -f "$2.new" "$2"
}

# exports_the_header_alone LIBRARY OPTION FILE: fails if FILE, which becomes LIBRARY, exports symbols that are not of the header. nm
# lists them with OPTION. A program may have its own functions with the names of a dependency.
exports_the_header_alone() {
    symbols=$("$nm" "$2" --defined-only --format=posix "$3")
    # A debug build has a function that panics, for the tests.
    others=$(printf '%s\n' "$symbols" | sed -e 's/ .*//' -e '/^tsq_/d' -e '/^townsquare_test_panic$/d')
    if [ -n "$others" ]; then
        echo "install.sh: $1 exports symbols that are not of townsquare.h:" >&2
        printf '%s\n' "$others" >&2
        exit 1
    fi
}

# Writes the static library SOURCE to TARGET as one object. Its functions are local, except those of the header: a program may
# have its own SQLite, and other libraries that are written in Rust.
place_static() {
    # A target with the time of its source is made of it.
    if [ -e "$2" ] && ! [ "$1" -nt "$2" ] && ! [ "$1" -ot "$2" ] && [ "$("$ar" t "$2")" = townsquare.o ]; then
        return
    fi
    objects=$2.objects
    trap 'rm -rf "$objects"' EXIT
    mkdir -p "$objects"
    "$ld" -r -o "$objects/all.o" --whole-archive "$1"
    # Rust's standard library has sections of bitcode, which are not valid when they are joined.
    "$objcopy" --wildcard --keep-global-symbol='tsq_*' --remove-section=.llvmbc --remove-section=.llvmcmd \
        "$objects/all.o" "$objects/townsquare.o"
    exports_the_header_alone "$1" -g "$objects/townsquare.o"
    "$ar" crs "$objects/all.a" "$objects/townsquare.o"
    touch -r "$1" "$objects/all.a"
    mv -f "$objects/all.a" "$2"
}

lib=${DESTDIR:-}$prefix/$libdir
include=${DESTDIR:-}$prefix/include
cmake=${DESTDIR:-}$prefix/share/cmake/townsquare
data=${DESTDIR:-}$prefix/share/townsquare
[ "$(uname)" = Darwin ] || exports_the_header_alone "$BUILT/libtownsquare_ffi.so" -D "$BUILT/libtownsquare_ffi.so"
mkdir -p "$lib/pkgconfig" "$include/townsquare" "$cmake" "$data"

if [ "$(uname)" = Darwin ]; then
    # Not tested.
    place "$BUILT/libtownsquare_ffi.dylib" "$lib/libtownsquare.dylib"
    install_name_tool -id "$prefix/$libdir/libtownsquare.dylib" "$lib/libtownsquare.dylib"
    place "$BUILT/libtownsquare_ffi.a" "$lib/libtownsquare.a"
else
    # First the one that may fail.
    place_static "$BUILT/libtownsquare_ffi.a" "$lib/libtownsquare.a"
    place "$BUILT/libtownsquare_ffi.so" "$lib/libtownsquare.so.$version"
    ln -sf "libtownsquare.so.$version" "$lib/$soname"
    ln -sf "$soname" "$lib/libtownsquare.so"
fi
for header in townsquare.h townsquare.hpp; do
    place "$workspace/include/$header" "$include/$header"
done
for header in "$workspace"/include/townsquare/*.hpp; do
    place "$header" "$include/townsquare/${header##*/}"
done
for script in "$ffi"/cmake/*.cmake; do
    place "$script" "$cmake/${script##*/}"
done
for suppressions in "$ffi"/races/*.supp; do
    place "$suppressions" "$data/${suppressions##*/}"
done
# Libs.private: what `rustc --print native-static-libs` names for Linux.
cat >"$lib/pkgconfig/townsquare.pc" <<PC
prefix=$prefix
exec_prefix=\${prefix}
libdir=\${exec_prefix}/$libdir
includedir=\${prefix}/include

Name: townsquare
Description: The community backend and mini app directory as a library
Version: $version
Libs: -L"\${libdir}" -ltownsquare
Libs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
Cflags: -I"\${includedir}"
PC
