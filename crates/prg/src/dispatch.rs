//! The choice between accelerated and portable code, for every crate that has both.

use std::sync::LazyLock;

/// Of the forms of something that this machine can run, the portable one first and the fastest last, the one to use:
/// the last, or the first if the environment says `PRIVET_PORTABLE=1`. `None` if there is no form.
pub fn choose<T>(mut forms: Vec<T>) -> Option<T> {
    if is_portable_forced() {
        forms.truncate(1);
    }
    forms.pop()
}

/// Whether the environment forces portable code; read once.
pub fn is_portable_forced() -> bool {
    static FORCED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("PRIVET_PORTABLE").is_some_and(|value| value == "1"));
    *FORCED
}
