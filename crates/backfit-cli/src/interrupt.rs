//! Ctrl-C.

use backfit::{Problem, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// The exit code after Ctrl-C, as shells have it.
pub const EXIT_CODE: i32 = 130;

/// From now on, the first Ctrl-C sets the flag that is returned, and the second ends the program at once.
///
/// # Errors
/// The operating system refuses the handler.
pub fn listen() -> Result<&'static AtomicBool> {
    let handler = || {
        if STOP.swap(true, Ordering::SeqCst) {
            // Files are replaced whole or not at all, so nothing is left half written.
            std::process::exit(EXIT_CODE);
        }
        eprintln!("\nstopping after this step; press Ctrl-C again to stop at once");
    };
    ctrlc::set_handler(handler).map_err(|e| Problem::new("cannot listen to Ctrl-C").because(e.to_string()))?;
    Ok(&STOP)
}
