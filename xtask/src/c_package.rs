//! The C API as other build systems want it: a header, libraries, and a file for pkg-config.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{cargo, root, run, target};

/// Builds the libraries and puts `include`, `lib` and `lib/pkgconfig` below a folder.
pub fn install(prefix: &Path) -> Result<()> {
    run(cargo().args(["build", "--release", "--package", "anygram-capi"]))?;
    let prefix = std::path::absolute(prefix)?;
    let libraries = prefix.join("lib");
    for folder in [prefix.join("include"), libraries.join("pkgconfig")] {
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let built = target().join("release");
    let names = ["libanygram_c.a", "libanygram_c.so", "libanygram_c.dylib", "anygram_c.dll", "anygram_c.lib"];
    let found: Vec<_> = names.into_iter().filter(|name| built.join(name).exists()).collect();
    ensure!(!found.is_empty(), "cargo left no library in {}", built.display());
    for name in found {
        copy(&built.join(name), &libraries.join(name))?;
    }
    copy(&root().join("crates/capi/include/anygram.h"), &prefix.join("include/anygram.h"))?;
    let file = libraries.join("pkgconfig/anygram_c.pc");
    std::fs::write(&file, description(&prefix)).with_context(|| file.display().to_string())?;
    println!("installed below {}", prefix.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// What pkg-config reads. Private are those that a static library needs.
fn description(prefix: &Path) -> String {
    let (prefix, version) = (prefix.display(), env!("CARGO_PKG_VERSION"));
    format!(
        "prefix={prefix}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\nName: anygram_c\n\
         Description: constrained decoding for any context-free grammar\nVersion: {version}\n\
         Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -lanygram_c\nLibs.private: -lm -lpthread -ldl\n"
    )
}
