//! The program `anygram`; all of it is in the library, where fuzzers reach it too.

fn main() -> std::process::ExitCode {
    anygram_cli::main()
}
