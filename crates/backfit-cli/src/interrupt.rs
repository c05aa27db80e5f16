//! Ctrl-C.

use backfit::{Problem, Result};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The exit code after Ctrl-C, as shells have it.
pub const EXIT_CODE: i32 = 130;

/// From now on, the first Ctrl-C sets the flag that is returned, and the second ends the program at once: files are
/// replaced whole or not at all, so nothing is left half written.
///
/// The flag is set by the signal itself. A thread that waits for signals would allocate when it starts, perhaps in the
/// middle of a step whose allocations are counted.
///
/// # Errors
/// The operating system refuses the handler.
pub fn listen() -> Result<&'static AtomicBool> {
    if let Some(stop) = STOP.get() {
        return Ok(stop);
    }
    let stop = STOP.get_or_init(Arc::default);
    // In this order, and once: the signal that sets the flag does not find it set.
    flag::register_conditional_shutdown(SIGINT, EXIT_CODE, Arc::clone(stop))
        .and_then(|_| flag::register(SIGINT, Arc::clone(stop)))
        .map_err(|e| Problem::new("cannot listen to Ctrl-C").because(e.to_string()))?;
    Ok(stop)
}
