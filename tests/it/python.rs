//! Builds the Python package and runs pytest, mypy and stubtest on it, in a virtual environment under the target
//! folder.
//!
//! Invariant: the tests import the package with the layout that users install: the wheel that `TOWNSQUARE_WHEEL` names, or an
//! extension module that is built with this test's profile and features, so that cargo compiles nothing twice.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use townsquare_tests::{
    cargo::cargo,
    paths::workspace,
    postgres::{self, APP_ROLE},
    replica::ProgramPair,
    s3_server::S3Server,
    skip::skip,
};

/// The databases on PostgreSQL that the suite may use up.
const DATABASES: usize = 40;

/// The file name that Python imports. The crate's features select the stable ABI, `abi3`.
const MODULE: &str = if cfg!(windows) { "_native.pyd" } else { "_native.abi3.so" };

#[test]
fn the_python_package_passes_its_suite_its_types_and_its_stubs() {
    let build = CargoBuild::of_this_test();
    let Some(environment) = VirtualEnv::prepare(&build.target.join("python")) else { return };
    if let Some(wheel) = env::var_os("TOWNSQUARE_WHEEL") {
        let unpacked = build.target.join("python/unpacked");
        environment.unpack(&workspace().join(wheel), &unpacked);
        environment.check(&unpacked);
    } else {
        let staged = build.target.join("python/staged");
        stage(&build.extension_module(), &staged);
        environment.check(&staged);
    }
}

/// The folders and the profile of this test's build, from its path `TARGET/PROFILE/deps/it-…`.
struct CargoBuild {
    target: PathBuf,
    output: PathBuf,
    profile: String,
}

impl CargoBuild {
    fn of_this_test() -> CargoBuild {
        let program = env::current_exe().expect("a test can read its own path");
        let output = program.ancestors().nth(2).expect("cargo puts tests into TARGET/PROFILE/deps").to_owned();
        let target = output.parent().expect("cargo puts tests into TARGET/PROFILE/deps").to_owned();
        let folder = output.file_name().and_then(OsStr::to_str).expect("a profile's name is text");
        let profile = if folder == "debug" { "dev" } else { folder }.to_owned();
        CargoBuild { target, output, profile }
    }

    /// Builds the extension module. Selects the whole workspace, so that cargo unifies the features as for this test
    /// and compiles no dependency again.
    fn extension_module(&self) -> PathBuf {
        let mut cargo = cargo();
        cargo.args(["build", "--workspace", "--lib", "--profile", &self.profile]);
        run(cargo.arg("--target-dir").arg(&self.target));
        let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
        self.output.join(format!("{prefix}townsquare_native{suffix}"))
    }
}

/// Copies the package and its extension module into one folder, as in `site-packages`.
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
struct VirtualEnv {
    python: PathBuf,
}

impl VirtualEnv {
    /// Creates the environment, unless one with the same requirements exists. Returns `None`, which skips the test,
    /// without Python or a package index.
    fn prepare(folder: &Path) -> Option<VirtualEnv> {
        let requirements = workspace().join("tests/python/requirements.txt");
        let wanted = fs::read_to_string(&requirements).expect("tests/python/requirements.txt is there");
        let (venv, stamp) = (folder.join("venv"), folder.join("venv/requirements.txt"));
        let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
        let environment = VirtualEnv { python };
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
        // Writes no bytecode into the source tree and ignores the user's settings.
        python.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONHOME").env_remove("PYTHONPATH");
        python.env("VIRTUAL_ENV", self.python.ancestors().nth(2).unwrap_or(Path::new("")));
        python.args(arguments);
        python
    }

    /// Unpacks a wheel, as an installer does.
    fn unpack(&self, wheel: &Path, unpacked: &Path) {
        assert!(wheel.to_string_lossy().contains("cp310-abi3"), "{}: not abi3", wheel.display());
        let _ = fs::remove_dir_all(unpacked);
        run(self.python(&["-m", "zipfile", "-e"]).arg(wheel).arg(unpacked));
        let licences = format!("townsquare-{}.dist-info/licenses", env!("CARGO_PKG_VERSION"));
        for name in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES"] {
            let read = |path: PathBuf| fs::read(path).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                read(unpacked.join(&licences).join(name)),
                read(workspace().join("python").join(name)),
                "{name}"
            );
        }
    }

    /// Runs pytest, mypy on the suite, and stubtest on the package in the folder `site`.
    fn check(&self, site: &Path) {
        let cache = site.with_extension("mypy");
        let tests = workspace().join("tests/python");
        let remote = RemoteServices::start();
        let within = |mut command: Command| {
            if let Some(remote) = &remote {
                command.env("TOWNSQUARE_TEST_DATABASE_URLS", &remote.databases);
                command.env("TOWNSQUARE_TEST_STORAGE_URL", remote.storage.url("PREFIX"));
                let (database, replica) = remote.pair.urls();
                command.env("TOWNSQUARE_TEST_REPLICA", format!("{database} {replica}"));
            }
            run(command
                .current_dir(&tests)
                .env("PYTHONPATH", site)
                .env("MYPYPATH", site)
                .env("MYPY_CACHE_DIR", &cache));
        };
        within(self.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]));
        within(self.python(&["-m", "mypy", "--strict", "--no-error-summary", "."]));
        within(self.python(&["-m", "mypy.stubtest", "townsquare", "--allowlist", "stubtest.txt"]));
    }
}

/// Empty databases on PostgreSQL, an S3 server, and a database with a standby, whose replay tests pause.
struct RemoteServices {
    /// The URLs of the empty databases, separated by spaces. Each test takes one.
    databases: String,
    storage: S3Server,
    pair: ProgramPair,
}

impl RemoteServices {
    /// `None` if there is no PostgreSQL. The databases end with the server.
    fn start() -> Option<RemoteServices> {
        let server = postgres::server()?;
        let databases: Vec<String> = (0..DATABASES).map(|_| server.url(APP_ROLE, &server.new_database())).collect();
        let pair = ProgramPair::start()?;
        Some(RemoteServices { databases: databases.join(" "), storage: S3Server::start(), pair })
    }
}

/// # Panics
/// When the command fails, with its output.
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
}
