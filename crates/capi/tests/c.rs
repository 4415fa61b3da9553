//! The programs in C and C++, compiled with the warnings of careful people, and run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where cargo put the libraries that this test was built with.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program.parent().expect("its folder").to_owned()
}

/// What a command prints; it has to succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{printed}{errors}", output.status);
    printed.into_owned()
}

/// Compiles a program against the library, shared or static. Each call has its own file: tests run at once.
fn compile(source: &str, is_static: bool) -> PathBuf {
    static N_PROGRAMS: AtomicUsize = AtomicUsize::new(0);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_cpp = source.ends_with(".cpp");
    let compiler = std::env::var(if is_cpp { "CXX" } else { "CC" });
    let compiler = compiler.unwrap_or_else(|_| if is_cpp { "c++" } else { "cc" }.to_owned());
    let name = Path::new(source).file_stem().expect("a name").to_string_lossy();
    let number = N_PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{number}"));
    let library = if is_static { "libanygram_c.a" } else { "libanygram_c.so" };
    output(
        Command::new(compiler)
            .arg(if is_cpp { "-std=c++17" } else { "-std=c99" })
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-I"])
            .arg(folder.join("include"))
            .arg(folder.join(source))
            .arg(libraries().join(library))
            .arg(format!("-Wl,-rpath,{}", libraries().display()))
            .args(["-lm", "-lpthread", "-ldl", "-o"])
            .arg(&program),
    );
    program
}

/// What a compiled program prints.
fn printed_by(program: &Path) -> String {
    // Such as "valgrind --quiet --error-exitcode=9".
    let checker = std::env::var("ANYGRAM_RUN_WITH").unwrap_or_default();
    let mut words = checker.split_whitespace().map(Into::into).chain([program.as_os_str().to_owned()]);
    output(Command::new(words.next().expect("the program")).args(words))
}

/// Compiles a program and runs it.
fn run(source: &str, is_static: bool) -> String {
    printed_by(&compile(source, is_static))
}

#[test]
fn json_by_a_schema() {
    let printed = run("examples/json.c", false);
    assert!(printed.starts_with("written: {\"") && printed.contains("\"year\":1"), "{printed}");
    assert!(printed.contains("is viable up to byte 9\n"), "{printed}");
    assert_eq!(printed, run("examples/json.c", true));
}

#[test]
fn a_canvas() {
    let printed = run("examples/canvas.cpp", false);
    assert_eq!(
        printed,
        "hole 0: ( x+\nhole 1: x\nhole 2: ) + EOS\nhole 3: x EOS\nlikeliest (-10.0): ( x+ x ) EOS EOS\n"
    );
}

/// Where the system refuses memory, the program ends as any Rust program does, by `abort` with a message that
/// says so: never with another signal, and never with another answer.
#[test]
#[cfg(target_os = "linux")]
fn refused_memory_ends_the_process() {
    use std::os::unix::process::ExitStatusExt as _;

    const ABORTED: i32 = 6;
    const KILLED: [i32; 2] = [9, 11];
    let program = compile("examples/json.c", true);
    let expected = printed_by(&program);
    let (mut n_refused, mut n_written) = (0, 0);
    // From where the program cannot be loaded to where it has enough: some 17 MB.
    for kib in (10_000..30_000).step_by(100) {
        let limited = format!("ulimit -v {kib}; exec '{}'", program.display());
        let mut command = Command::new("sh");
        let output = command.args(["-c", &limited]).env_remove("RUST_BACKTRACE").output().expect("a shell");
        let errors = String::from_utf8_lossy(&output.stderr);
        let (code, signal) = (output.status.code(), output.status.signal());
        let has_begun = n_refused + n_written > 0;
        if code == Some(0) {
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{kib} KiB");
            n_written += 1;
        } else if signal == Some(ABORTED) && errors.contains("memory allocation of") {
            n_refused += 1;
        } else {
            // The kernel, or the loader of programs, has no room for the program itself.
            let is_loading = code == Some(127) || signal.is_some_and(|signal| KILLED.contains(&signal));
            assert!(is_loading && !has_begun, "{kib} KiB: {code:?}, signal {signal:?}: {errors}");
        }
    }
    assert!(n_refused > 2 && n_written > 2, "{n_refused} refused, {n_written} written");
}

/// Wrong handles, pointers, lengths and options, twice freed objects, and threads.
#[test]
fn misuse_is_an_error() {
    assert_eq!(run("tests/misuse.c", false), "ok\n");
}
