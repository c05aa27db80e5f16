//! `backfit data`.

use crate::args;
use crate::console::{Console, table};
use backfit::Result;
use backfit::datasets::public;
use serde_json::json;

/// The sets inside the program.
const BUNDLED: [(&str, &str); 3] = [
    ("digits", "10,000 handwritten digits 28×28, a part of MNIST; inside the program"),
    ("iris", "150 iris flowers of three species, four features; inside the program"),
    ("sine", "100 points of the sine from -π to π; inside the program"),
];

/// The set that no recipe takes.
const TEXT: &str = "tinyshakespeare";

/// Lists or fetches.
///
/// # Errors
/// As for [`public::fetch`].
pub fn run(args: &args::Data, console: Console) -> Result<()> {
    match args {
        args::Data::List => list(console),
        args::Data::Fetch { name, from, to } => {
            let files = public::fetch(name, to, from.as_deref())?;
            let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
            console.event(&json!({"event": "fetched", "name": name, "files": names}));
            console.say(format!("{name} is whole:\n  {}", names.join("\n  ")));
            if name != TEXT {
                console.say(format!("\nNext:\n  backfit train mnist --set data.name={name} --data {}", to.display()));
            }
        }
    }
    Ok(())
}

fn list(console: Console) {
    let public = public::catalog().iter().map(|set| (set.name, set.about));
    let rows: Vec<(&str, &str)> = BUNDLED.into_iter().chain(public).collect();
    for (name, about) in &rows {
        let bundled = BUNDLED.iter().any(|(n, _)| n == name);
        console.event(&json!({"event": "dataset", "name": name, "about": about, "bundled": bundled}));
    }
    let rows: Vec<Vec<String>> = rows.iter().map(|(name, about)| vec![format!("{name:<14} {about}")]).collect();
    console.say(table(&rows));
    console.say("\nbackfit data fetch NAME --to DIR brings a set that is not inside the program.");
}
