//! Bringing the files of a public data set here: downloaded or copied, verified, then renamed into place.

use super::public::{Form, PublicFile, PublicSet, Sha256Of, find};
use crate::atomic_file::Draft;
use crate::reading::{io_error, open, unpacked};
use backfit_ir::{Problem, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Brings a data set into the folder of its name in `to` and returns the paths of its files. What is
/// there already and whole, in any form, is left alone.
///
/// With `from`, the files are copied from there, where they may lie in a folder of the set's name or
/// directly. Without, they are downloaded by the program `curl`.
///
/// # Errors
/// No such data set; files that are missing, cannot be copied or downloaded, or do not have the checksum
/// of the registry. No file is left behind that was not verified.
pub fn fetch(name: &str, to: &Path, from: Option<&Path>) -> Result<Vec<PathBuf>> {
    fetch_with("curl", find(name)?, to, from)
}

fn fetch_with(curl: &str, set: &'static PublicSet, to: &Path, from: Option<&Path>) -> Result<Vec<PathBuf>> {
    if let Some((form, paths)) = set.locate(to)
        && form.files.iter().zip(&paths).all(|(file, path)| verify(path, file).is_ok())
    {
        return Ok(paths);
    }
    let (form, sources) = match from {
        Some(dir) => set.locate(dir).map(|(form, paths)| (form, Some(paths))),
        None => downloadable(set).map(|form| (form, None)),
    }
    .ok_or_else(|| set.missing(from.unwrap_or(to)))?;
    let folder = to.join(set.name);
    fs::create_dir_all(&folder).map_err(|e| io_error(&folder, "cannot make the folder", &e))?;
    let mut fetched = Vec::new();
    for (i, file) in form.files.iter().enumerate() {
        let target = folder.join(file.name);
        let whole = target.is_file() && verify(&target, file).is_ok();
        match &sources {
            _ if whole => {}
            Some(paths) => copy(file, &paths[i], &target)?,
            None => download(curl, file, &target)?,
        }
        fetched.push(target);
    }
    Ok(fetched)
}

/// The first form all of whose files have an address.
fn downloadable(set: &'static PublicSet) -> Option<&'static Form> {
    set.forms.iter().find(|form| form.files.iter().all(|file| !file.addresses.is_empty()))
}

fn copy(file: &PublicFile, source: &Path, target: &Path) -> Result<()> {
    let failed = |e: io::Error| io_error(source, &format!("cannot copy the file to {}", target.display()), &e);
    let mut content = open(source)?;
    let mut draft = Draft::new(target).map_err(failed)?;
    io::copy(&mut content, draft.file()).map_err(failed)?;
    verify(draft.path(), file).map_err(|e| e.because(format!("copied from {}", source.display())))?;
    draft.publish().map_err(failed)
}

/// Downloads from the first address that gives the right file.
fn download(curl: &str, file: &PublicFile, target: &Path) -> Result<()> {
    let mut problem = Problem::new(format!("cannot download {}", file.name)).in_file(target);
    for address in file.addresses {
        match download_from(curl, address, file, target)? {
            Ok(()) => return Ok(()),
            Err(why) => problem = problem.because(format!("{address}: {why}")),
        }
    }
    let help = "check the connection, or fetch from a folder that has the file";
    Err(problem.help(help).into())
}

/// The inner result says why another address may be tried.
fn download_from(curl: &str, address: &str, file: &PublicFile, target: &Path) -> Result<Result<(), String>> {
    let failed = |e: io::Error| io_error(target, "cannot write the download", &e);
    let draft = Draft::new(target).map_err(failed)?;
    let ran = Command::new(curl)
        .args(["--fail", "--location", "--silent", "--show-error", "--proto", "=https"])
        .args(["--connect-timeout", "20", "--retry", "2", "--output"])
        .arg(draft.path())
        .arg(address)
        .output();
    let output = match ran {
        Ok(output) => output,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let problem = Problem::new(format!("cannot download {}", file.name)).in_file(target);
            let problem = problem.because(format!("the program '{curl}' is not installed"));
            return Err(problem.help("install curl, or fetch from a folder that has the file").into());
        }
        Err(e) => return Ok(Err(format!("cannot run {curl}: {e}"))),
    };
    if !output.status.success() {
        return Ok(Err(String::from_utf8_lossy(&output.stderr).trim().to_string()));
    }
    if let Err(e) = verify(draft.path(), file) {
        return Ok(Err(e.problems().first().map_or_else(String::new, |p| p.what.clone())));
    }
    draft.publish().map_err(failed).map(Ok)
}

/// Checks a file against the registry.
fn verify(path: &Path, file: &PublicFile) -> Result<()> {
    let unreadable = |e: io::Error| io_error(path, "cannot read the file to verify it", &e);
    let opened = BufReader::new(File::open(path).map_err(unreadable)?);
    let (found, expected) = match file.sha256 {
        Sha256Of::File(expected) => (sha256(opened), expected),
        Sha256Of::Content(expected) => (unpacked(opened).and_then(sha256), expected),
    };
    let found = found.map_err(unreadable)?;
    if found == expected {
        return Ok(());
    }
    let size = fs::metadata(path).map_or(0, |m| m.len());
    let problem = Problem::new(format!("{} ({size} bytes) has the wrong checksum", file.name)).in_file(path);
    let problem = problem.because(format!("SHA-256 is {found}")).because(format!("expected is {expected}"));
    Err(problem.help("the file is damaged or another version; fetch it from elsewhere").into())
}

fn sha256(mut content: impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match content.read(&mut buffer)? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::public::Loaded;

    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    fn read(_: &[PathBuf]) -> Result<Loaded> {
        unreachable!("only fetched")
    }

    /// A set of one file that says hello, at an address where nothing listens.
    fn hello() -> &'static PublicSet {
        let file = PublicFile {
            name: "hello.txt",
            also: &["hi.txt"],
            addresses: &["https://127.0.0.1:1/hello.txt", "https://127.0.0.1:2/hello.txt"],
            sha256: Sha256Of::Content(HELLO),
        };
        let form = Form::of_files(Box::leak(Box::new([file])), read);
        Box::leak(Box::new(PublicSet { name: "hello", about: "", forms: Box::leak(Box::new([form])) }))
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("backfit-fetch-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn files(&self) -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(self.0.join("hello"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn files_are_copied_from_flat_folders_and_by_other_names() {
        for (folder, name) in [("", "hello.txt"), ("hello", "hi.txt"), ("text", "hello.txt")] {
            let (from, to) = (Folder::new("from"), Folder::new("to"));
            fs::create_dir_all(from.0.join(folder)).unwrap();
            fs::write(from.0.join(folder).join(name), "hello").unwrap();
            let fetched = fetch_with("curl", hello(), &to.0, Some(&from.0)).unwrap();
            assert_eq!(fetched, [to.0.join("hello/hello.txt")]);
            assert_eq!(fs::read(&fetched[0]).unwrap(), b"hello");
            assert_eq!(to.files(), ["hello.txt"]);
        }
    }

    #[test]
    fn a_wrong_checksum_leaves_nothing_behind() {
        let (from, to) = (Folder::new("wrong"), Folder::new("empty"));
        fs::write(from.0.join("hello.txt"), "hullo").unwrap();
        let e = fetch_with("curl", hello(), &to.0, Some(&from.0)).unwrap_err().to_string();
        for part in ["wrong checksum", "5 bytes", HELLO, "hello.txt"] {
            assert!(e.contains(part), "{part} missing in: {e}");
        }
        assert!(to.files().is_empty());
    }

    #[test]
    fn a_damaged_file_is_replaced_and_a_whole_one_left_alone() {
        let (from, to) = (Folder::new("good"), Folder::new("damaged"));
        fs::create_dir_all(to.0.join("hello")).unwrap();
        fs::write(to.0.join("hello/hello.txt"), "hel").unwrap();
        fs::write(from.0.join("hello.txt"), "hello").unwrap();
        let fetched = fetch_with("curl", hello(), &to.0, Some(&from.0)).unwrap();
        assert_eq!(fs::read(&fetched[0]).unwrap(), b"hello");
        // Nothing is downloaded, so no program is needed.
        assert_eq!(fetch_with("no-such-program", hello(), &to.0, None).unwrap(), fetched);
    }

    #[test]
    fn without_curl_the_error_says_so() {
        let to = Folder::new("no-curl");
        let e = fetch_with("no-such-program", hello(), &to.0, None).unwrap_err().to_string();
        assert!(e.contains("'no-such-program' is not installed") && e.contains("install curl"), "{e}");
        assert!(to.files().is_empty());
    }

    #[test]
    fn where_nothing_answers_the_error_names_every_address() {
        let to = Folder::new("offline");
        // Stands in for curl without a network: fails at once whatever it is asked.
        let e = fetch_with("false", hello(), &to.0, None).unwrap_err().to_string();
        assert!(e.contains("127.0.0.1:1") && e.contains("127.0.0.1:2"), "{e}");
        assert!(to.files().is_empty());
    }

    #[test]
    fn a_folder_without_the_files_is_named() {
        let (from, to) = (Folder::new("nothing"), Folder::new("nowhere"));
        let e = fetch_with("curl", hello(), &to.0, Some(&from.0)).unwrap_err().to_string();
        assert!(e.contains("nothing") && e.contains("hello.txt"), "{e}");
    }
}
