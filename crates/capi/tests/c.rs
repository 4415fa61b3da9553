//! The programs in C and C++, compiled with the warnings of careful people, and run.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Compiles a program against the library, shared or static, and runs it.
fn run(source: &str, is_static: bool) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_cpp = source.ends_with(".cpp");
    let compiler = std::env::var(if is_cpp { "CXX" } else { "CC" });
    let compiler = compiler.unwrap_or_else(|_| if is_cpp { "c++" } else { "cc" }.to_owned());
    let name = Path::new(source).file_stem().expect("a name").to_string_lossy();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{is_static}"));
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
    // Such as "valgrind --quiet --error-exitcode=9".
    let checker = std::env::var("ANYGRAM_RUN_WITH").unwrap_or_default();
    let mut words = checker.split_whitespace().map(Into::into).chain([program.into_os_string()]);
    output(Command::new(words.next().expect("the program")).args(words))
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

/// Wrong handles, pointers, lengths and options, twice freed objects, and threads.
#[test]
fn misuse_is_an_error() {
    assert_eq!(run("tests/misuse.c", false), "ok\n");
}
