//! The Python package: built, installed into a virtual environment under the target folder, and tested there.
//!
//! Invariant: what pytest, mypy and stubtest see is the package as users get it. The extension module is built by the same
//! cargo, profile and features as this very test, so that nothing is compiled twice; where everything must be shown
//! (`TOWNSQUARE_REQUIRE_ALL=1`), maturin builds the wheel besides and the suite runs against that too.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use townsquare_tests::{paths::workspace, skip::skip};

/// The name that Python looks for; `abi3` is the wheel's promise, kept by the crate's features.
const MODULE: &str = if cfg!(windows) { "_native.pyd" } else { "_native.abi3.so" };

#[test]
fn the_python_package_passes_its_suite_its_types_and_its_stubs() {
    let build = Build::of_this_test();
    let Some(environment) = Environment::ready(&build.target.join("python")) else { return };
    let staged = build.target.join("python/staged");
    stage(&build.extension_module(), &staged);
    environment.check(&staged);
    if env::var_os("TOWNSQUARE_REQUIRE_ALL").is_some_and(|all| all == "1") {
        let unpacked = build.target.join("python/unpacked");
        build.wheel(&environment, &unpacked);
        environment.check(&unpacked);
    }
}

/// How this test was built: `TARGET/PROFILE/deps/it-…`.
struct Build {
    target: PathBuf,
    output: PathBuf,
    profile: String,
}

impl Build {
    fn of_this_test() -> Build {
        let program = env::current_exe().expect("a test knows its own program");
        let output = program.ancestors().nth(2).expect("cargo puts tests into TARGET/PROFILE/deps").to_owned();
        let target = output.parent().expect("cargo puts tests into TARGET/PROFILE/deps").to_owned();
        let folder = output.file_name().and_then(OsStr::to_str).expect("a profile's name is text");
        let profile = if folder == "debug" { "dev" } else { folder }.to_owned();
        Build { target, output, profile }
    }

    /// The extension module, built with the whole workspace selected: then cargo unites the features of all crates as
    /// it did for this test, and only the module itself is left to build.
    fn extension_module(&self) -> PathBuf {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        as_from_a_shell(&mut cargo);
        cargo.current_dir(workspace()).args(["build", "--workspace", "--lib", "--profile", &self.profile]);
        run(cargo.arg("--target-dir").arg(&self.target));
        let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
        self.output.join(format!("{prefix}townsquare_native{suffix}"))
    }

    /// The wheel, unpacked, as an installer would leave it.
    fn wheel(&self, environment: &Environment, unpacked: &Path) {
        let wheels = self.target.join("python/wheels");
        let _ = fs::remove_dir_all(&wheels);
        let mut maturin = environment.python(&["-m", "maturin", "build", "--profile", &self.profile, "--out"]);
        as_from_a_shell(&mut maturin);
        maturin.arg(&wheels).arg("--target-dir").arg(&self.target);
        run(maturin.arg("--manifest-path").arg(workspace().join("python/Cargo.toml")));
        let wheel =
            fs::read_dir(&wheels).expect("maturin made the folder").flatten().next().expect("maturin made a wheel");
        assert!(wheel.file_name().to_string_lossy().contains("cp39-abi3"), "{}: not abi3", wheel.path().display());
        let _ = fs::remove_dir_all(unpacked);
        run(environment.python(&["-m", "zipfile", "-e"]).arg(wheel.path()).arg(unpacked));
    }
}

/// Takes away what cargo tells a test about its crate: build scripts look at it, and would run again each time it changes.
fn as_from_a_shell(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"]
                .iter()
                .any(|told| name.starts_with(told))
        });
        if told {
            command.env_remove(name);
        }
    }
}

/// The package's folder beside its extension module, as in `site-packages`.
fn stage(module: &Path, staged: &Path) {
    let _ = fs::remove_dir_all(staged);
    let package = staged.join("townsquare");
    fs::create_dir_all(&package).expect("the target folder can be written");
    for file in fs::read_dir(workspace().join("python/townsquare")).expect("the package is there").flatten() {
        if file.path().is_file() && file.path().extension().is_none_or(|kind| kind != "so" && kind != "pyd") {
            fs::copy(file.path(), package.join(file.file_name())).expect("the target folder can be written");
        }
    }
    fs::copy(module, package.join(MODULE)).expect("cargo built the extension module");
}

/// A virtual environment with the tools that `requirements.txt` pins.
struct Environment {
    python: PathBuf,
}

impl Environment {
    /// Makes it, or takes the one that was made for these very requirements.
    fn ready(folder: &Path) -> Option<Environment> {
        let requirements = workspace().join("tests/python/requirements.txt");
        let wanted = fs::read_to_string(&requirements).expect("tests/python/requirements.txt is there");
        let (venv, stamp) = (folder.join("venv"), folder.join("venv/requirements.txt"));
        let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
        let environment = Environment { python };
        let works = || environment.python(&["-c", ""]).status().is_ok_and(|status| status.success());
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && works() {
            return Some(environment);
        }
        let base = env::var_os("PYO3_PYTHON").unwrap_or_else(|| "python3".into());
        let created = Command::new(&base).args(["-m", "venv", "--clear"]).arg(&venv).output();
        if !created.is_ok_and(|output| output.status.success()) {
            skip("the Python package: there is no python3 with the module venv");
            return None;
        }
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        let installed = environment.python(&pip).arg(&requirements).output().expect("the environment has a Python");
        if !installed.status.success() {
            let reason = String::from_utf8_lossy(&installed.stderr);
            skip(&format!("the Python package: pip cannot install its test tools\n{reason}"));
            return None;
        }
        fs::write(&stamp, wanted).expect("the target folder can be written");
        Some(environment)
    }

    fn python(&self, arguments: &[&str]) -> Command {
        let mut python = Command::new(&self.python);
        // Without a trace in the source tree, and without what the person at this machine has set.
        python.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONHOME").env_remove("PYTHONPATH");
        python.env("VIRTUAL_ENV", self.python.ancestors().nth(2).unwrap_or(Path::new("")));
        python.args(arguments);
        python
    }

    /// Runs the suite, the type checker over suite and package, and the stubs against the package in `site`.
    fn check(&self, site: &Path) {
        let cache = site.with_extension("mypy");
        let tests = workspace().join("tests/python");
        let within = |mut command: Command| {
            run(command
                .current_dir(&tests)
                .env("PYTHONPATH", site)
                .env("MYPYPATH", site)
                .env("MYPY_CACHE_DIR", &cache));
        };
        within(self.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]));
        within(self.python(&["-m", "mypy", "--strict", "--no-error-summary", "."]));
        within(self.python(&["-m", "mypy.stubtest", "townsquare"]));
    }
}

/// # Panics
/// With everything it wrote, when the command fails.
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
}
