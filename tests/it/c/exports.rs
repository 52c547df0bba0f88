//! `install.sh` installs no library that exports other functions than those of the header.

#![cfg(target_os = "linux")]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use townsquare_tests::{paths::workspace, temp_dir};

use super::{
    install::{has, output, succeeds},
    toolchain::text,
};

/// A function of the header, and one of a dependency, which a program may define too.
const SOURCE: &str = "
__attribute__((visibility(\"default\"))) int tsq_one(void) { return 1; }
int crc_fast_update(void) { return 2; }
";

/// Builds a shared and a static library in a folder, as cargo names them. Without exceptions they export every function.
fn build(folder: &Path, flags: &[&str]) {
    fs::create_dir_all(folder).expect("a temporary folder can be written to");
    fs::write(folder.join("library.c"), SOURCE).expect("a temporary folder can be written to");
    let cc = |arguments: &[&str]| {
        succeeds(Command::new("cc").current_dir(folder).args(["-fPIC", "library.c"]).args(flags).args(arguments));
    };
    cc(&["-shared", "-o", "libtownsquare_ffi.so"]);
    cc(&["-c", "-o", "library.o"]);
    succeeds(Command::new("ar").current_dir(folder).args(["crs", "libtownsquare_ffi.a", "library.o"]));
}

fn script(built: &Path, prefix: &Path) -> Command {
    let mut command = Command::new(workspace().join("ffi/install.sh"));
    command.arg(prefix).env("BUILT", built);
    command
}

fn refuses(command: &mut Command) {
    let output = output(command);
    let text = text(&output);
    assert!(!output.status.success() && text.contains("exports symbols that are not of townsquare.h"), "{text}");
    assert!(text.contains("\ncrc_fast_update\n") && !text.contains("tsq_one"), "{text}");
}

#[test]
fn a_shared_library_with_a_function_of_a_dependency_is_not_installed() {
    if !["cc", "ar", "nm", "ld", "objcopy"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let (built, prefix) = (folder.path().join("built"), folder.path().join("usr"));
    build(&built, &[]);
    refuses(&mut script(&built, &prefix));
    assert!(!prefix.exists(), "a part is installed");
    build(&built, &["-fvisibility=hidden"]);
    succeeds(&mut script(&built, &prefix));
    // The shared library as before, when an update is refused.
    let library = prefix.join("lib/libtownsquare.so");
    let before = fs::read(&library).expect("installed");
    build(&built, &[]);
    refuses(&mut script(&built, &prefix));
    assert!(before == fs::read(&library).expect("installed"));
}

#[test]
fn a_static_library_with_a_function_of_a_dependency_is_not_installed() {
    if !["cc", "ar", "nm", "ld", "objcopy"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let (built, prefix) = (folder.path().join("built"), folder.path().join("usr"));
    build(&built, &["-fvisibility=hidden"]);
    // An objcopy that does without the options that make functions local.
    let objcopy = folder.path().join("objcopy");
    fs::write(&objcopy, "#!/bin/sh\nexec objcopy \"$5\" \"$6\"\n").expect("a file");
    fs::set_permissions(&objcopy, fs::Permissions::from_mode(0o755)).expect("a file");
    refuses(script(&built, &prefix).env("OBJCOPY", &objcopy));
    for file in ["libtownsquare.a", "libtownsquare.a.objects", "libtownsquare.so"] {
        assert!(!prefix.join("lib").join(file).exists(), "{file}");
    }
    succeeds(&mut script(&built, &prefix));
    assert!(prefix.join("lib/libtownsquare.a").is_file());
}
