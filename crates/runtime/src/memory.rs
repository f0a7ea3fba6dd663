//! Resident memory of this process, where Linux's `/proc` tells it.

use std::fs;

/// Forgets the peak so far, so that the next reading is of what follows; a no-op where the system has no such thing.
pub(crate) fn reset_peak() {
    // Writing 5 resets VmHWM (proc(5)); without the permission the peak is the process's, which is still an upper bound.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The resident memory now, in bytes; 0 if unknown.
pub fn resident() -> u64 {
    field("VmRSS:").unwrap_or(0)
}

/// The largest resident memory since the last reset, in MB (10^6 bytes); 0 if unknown.
pub(crate) fn peak_mb() -> f64 {
    field("VmHWM:").map_or(0.0, |bytes| bytes as f64 / 1e6)
}

/// A field of the process's status, in bytes.
fn field(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| 1024 * kib)
}
