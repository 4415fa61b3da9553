//! JSONSchemaBench among the shared data: 7,570 real schemas with labelled instances.

use std::fs::File;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;

/// The lines of all splits, each a schema with its instances, in a fixed order; `None` without shared data.
///
/// # Panics
/// If a file cannot be read.
pub fn lines() -> Option<impl Iterator<Item = String>> {
    Some(splits()?.flatten())
}

/// The same split by split.
///
/// # Panics
/// If a file cannot be read.
pub fn splits() -> Option<impl Iterator<Item = Vec<String>>> {
    let folder = crate::shared::data()?.join("jsonschemabench");
    let entries = std::fs::read_dir(&folder).expect("the folder of JSONSchemaBench");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    files.sort();
    Some(files.into_iter().map(|path| {
        let mut text = String::new();
        let file = File::open(&path).expect("a split of JSONSchemaBench");
        MultiGzDecoder::new(file).read_to_string(&mut text).expect("lines of text");
        text.lines().map(str::to_owned).collect()
    }))
}
