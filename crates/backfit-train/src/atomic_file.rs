//! Files that appear whole or not at all.

use backfit_ir::{Problem, Result};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long nobody must have written to a draft of another process before it counts as abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// Replaces a file by what `write` writes. Whatever fails, and whenever the process is killed, the file
/// is the old one or the new one, whole; after success it also survives a power failure.
///
/// The content goes to a draft in the same folder, named `.NAME.PROCESS.COUNT.partial`, is synced to the
/// disk and then renamed. A killed process leaves its draft behind; drafts of the same file that nobody
/// has written to for an hour are removed.
///
/// ```
/// let file = std::env::temp_dir().join(format!("backfit-doc-{}.txt", std::process::id()));
/// backfit_train::atomic_file::replace(&file, |out| out.write_all(b"whole"))?;
/// assert_eq!(std::fs::read(&file).unwrap(), b"whole");
/// # std::fs::remove_file(&file).unwrap();
/// # Ok::<(), backfit_ir::Error>(())
/// ```
///
/// # Errors
/// What the operating system says, with the file.
pub fn replace(file: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let attempt = || {
        let mut draft = Draft::new(file)?;
        let mut out = BufWriter::with_capacity(1 << 20, draft.file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        draft.publish()
    };
    attempt().map_err(|e: io::Error| {
        let problem = Problem::new("cannot write the file").in_file(file).because(e.to_string());
        problem.help("check the folder, its permissions and the space on the disk").into()
    })
}

/// A file on its way to its name. Dropped without [`Draft::publish`], it is removed.
pub(crate) struct Draft {
    path: PathBuf,
    target: PathBuf,
    file: File,
    published: bool,
}

impl Draft {
    /// An empty draft beside its target.
    pub(crate) fn new(target: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
        };
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        remove_abandoned(folder_of(target), &prefix);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut name = prefix.clone();
            name.push(format!("{}.{count}.partial", std::process::id()));
            let path = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    return Ok(Draft { path, target: target.into(), file: opened?, published: false });
                }
            }
        }
    }

    /// Where the draft lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The draft, open for writing.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts the draft in the place of its target.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, &self.target)?;
        self.published = true;
        sync_folder(folder_of(&self.target))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a rename last. Only on Unix can a folder be synced.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Removes drafts that killed processes have left. That it fails is no reason not to write.
fn remove_abandoned(folder: &Path, prefix: &OsString) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        let is_draft = bytes.starts_with(prefix.as_encoded_bytes()) && bytes.ends_with(b".partial");
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_draft && age().is_some_and(|age| age > ABANDONED_AFTER) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn folder(test: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("backfit-atomic-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = folder("failed");
        let file = folder.join("a");
        replace(&file, |out| out.write_all(b"old")).unwrap();
        let failed = replace(&file, |out| {
            out.write_all(b"half of the n")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(failed.unwrap_err().to_string().contains("the disk is full"));
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn abandoned_drafts_are_removed_and_live_ones_kept() {
        let folder = folder("abandoned");
        let names = [".a.1.0.partial", ".a.2.0.partial", ".b.1.0.partial"];
        let files = names.map(|name| File::create(folder.join(name)).unwrap());
        let old = SystemTime::now() - 2 * ABANDONED_AFTER;
        files[0].set_modified(old).unwrap();
        files[2].set_modified(old).unwrap();
        replace(&folder.join("a"), |out| out.write_all(b"new")).unwrap();
        let left = names.map(|name| folder.join(name).exists());
        assert_eq!(left, [false, true, true]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn paths_that_cannot_be_written_are_errors() {
        assert!(replace(Path::new("no/such/folder/a"), |_| Ok(())).is_err());
        assert!(replace(Path::new(".."), |_| Ok(())).is_err());
        assert!(replace(Path::new(""), |_| Ok(())).is_err());
    }
}
