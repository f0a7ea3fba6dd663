//! Peak resident memory of this process, where Linux's `/proc` tells it.

use std::fs;

/// Forgets the peak so far, so that the next reading is of what follows; a no-op where the system has no such thing.
pub(crate) fn reset_peak() {
    // Writing 5 resets VmHWM (proc(5)); without the permission the peak is the process's, which is still an upper bound.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The largest resident memory since the last reset, in MB (10^6 bytes); 0 if unknown.
pub(crate) fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.map_or(0.0, |kib| kib * 1024.0 / 1e6)
}
