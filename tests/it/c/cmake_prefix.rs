//! The CMake package: it takes the libraries of its own prefix.

use std::{fs, path::Path, process::Command};

use townsquare_tests::{paths::workspace, temp_dir};

use super::{
    install::{has, output, outside},
    toolchain::text,
};

#[test]
#[cfg(target_os = "linux")]
fn cmake_takes_the_libraries_of_the_prefix_of_the_package() {
    if !["cmake", "make", "cc", "c++"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    // Nothing is linked, so files without content do for libraries.
    for prefix in [&first, &second] {
        let package = prefix.join("share/cmake/townsquare");
        for folder in [&package, &prefix.join("lib"), &prefix.join("include")] {
            fs::create_dir_all(folder).expect("a temporary folder can be written to");
        }
        for file in ["townsquare-config.cmake", "townsquare-config-version.cmake"] {
            fs::copy(workspace().join("ffi/cmake").join(file), package.join(file)).expect("a copy");
        }
        for library in ["libtownsquare.so", "libtownsquare.a"] {
            fs::write(prefix.join("lib").join(library), "").expect("a temporary folder can be written to");
        }
    }
    let build = folder.path().join("build");
    let configure = |prefix: &Path| {
        let mut configure = Command::new("cmake");
        configure.args(["-G", "Unix Makefiles", "-S"]).arg(outside()).arg("-B").arg(&build);
        output(configure.arg(format!("-Dtownsquare_DIR={}", prefix.join("share/cmake/townsquare").display())))
    };
    // The same build, one prefix after the other.
    for (prefix, other) in [(&first, &second), (&second, &first), (&first, &second)] {
        let configured = configure(prefix);
        assert!(configured.status.success(), "{}", text(&configured));
        for (program, library) in [("c99-shared", "libtownsquare.so"), ("c99-static", "libtownsquare.a")] {
            let link = build.join(format!("CMakeFiles/{program}.dir/link.txt"));
            let command = fs::read_to_string(link).expect("CMake writes the command");
            let library = prefix.join("lib").join(library);
            assert!(command.contains(&*library.to_string_lossy()), "{command}");
            assert!(!command.contains(&*other.to_string_lossy()), "{command}");
        }
    }
    fs::remove_file(first.join("lib/libtownsquare.a")).expect("a file");
    let configured = configure(&first);
    // CMake breaks its messages into lines.
    let printed = text(&configured).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!configured.status.success() && printed.contains("has no library for townsquare::static"), "{printed}");
}
