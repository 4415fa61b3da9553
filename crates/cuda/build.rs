//! Compiles the shim, which runs the kernels on the CPU, if there is a C++ compiler; without one the crate
//! builds all the same.

use std::path::{Path, PathBuf};

fn main() {
    for folder in ["kernels", "shim"] {
        println!("cargo::rerun-if-changed={folder}");
    }
    println!("cargo::rerun-if-env-changed=ANYGRAM_SHIM_SANITIZE");
    let sanitize = std::env::var("ANYGRAM_SHIM_SANITIZE").is_ok_and(|value| value == "1");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").include("shim").warnings(true).extra_warnings(true);
    for file in ["shim.cpp", "kernels.cpp", "bulk.cpp", "wrong.cpp"] {
        build.file(Path::new("shim").join(file));
    }
    // The tests of a debug build would take minutes with kernels that are not optimised.
    build.opt_level(2);
    if sanitize {
        for flag in [
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined",
            "-fno-omit-frame-pointer",
            "-g",
        ] {
            build.flag(flag);
        }
    }
    let library = if sanitize { None } else { static_library() };
    if library.is_some() {
        build.cpp_link_stdlib(None);
    }
    match build.try_compile("anygram_shim") {
        Ok(()) => {
            if let Some(folder) = library {
                println!("cargo::rustc-link-search=native={}", folder.display());
                println!("cargo::rustc-link-lib=static:-bundle=stdc++");
            }
            println!("cargo::rustc-cfg=anygram_shim");
            if sanitize {
                println!("cargo::rustc-link-lib=dylib=asan");
                println!("cargo::rustc-link-lib=dylib=ubsan");
            }
        }
        Err(error) => {
            println!("cargo::warning=no shim of the CUDA kernels, their tests will say NOT TESTED: {error}")
        }
    }
}

/// Where the compiler's library for C++ is as an archive: with it, programs need no such library where they
/// run.
fn static_library() -> Option<PathBuf> {
    let mut command = cc::Build::new().cpp(true).try_get_compiler().ok()?.to_command();
    let output = command.arg("-print-file-name=libstdc++.a").output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.parent().filter(|folder| folder.is_absolute() && path.exists()).map(Path::to_owned)
}
