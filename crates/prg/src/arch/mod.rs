//! The choice between accelerated and portable code, made once.

use std::sync::LazyLock;

use crate::Block;

pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// `rows` and `out` have equal lengths, a multiple of 128.
type Columns = fn(rows: &[Block], out: &mut [Block]);

static COLUMNS: LazyLock<Columns> = LazyLock::new(|| {
    if std::env::var_os("PRIVET_PORTABLE").is_some_and(|value| value == "1") {
        portable::columns
    } else {
        every_columns().last().map_or(portable::columns, |&(_, columns)| columns)
    }
});

/// The fastest transpose of this machine, or the portable one under `PRIVET_PORTABLE=1`.
pub(crate) fn columns(rows: &[Block], out: &mut [Block]) {
    COLUMNS(rows, out);
}

/// Every implementation that this machine can run, slowest first.
pub(crate) fn every_columns() -> Vec<(&'static str, Columns)> {
    let mut found: Vec<(&'static str, Columns)> = vec![("portable", portable::columns)];
    #[cfg(target_arch = "x86_64")]
    found.extend(x86::detected());
    found
}
