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

/// The choice between the `Kernels` that a crate's `portable` and `x86` have.
#[macro_export]
macro_rules! choice_of_kernels {
    () => {
        static KERNELS: ::std::sync::LazyLock<Kernels> =
            ::std::sync::LazyLock::new(|| $crate::choose(every_kernels()).unwrap_or(portable::KERNELS));

        /// The fastest kernels of this machine, or the portable ones under `PRIVET_PORTABLE=1`.
        pub(crate) fn kernels() -> &'static Kernels {
            &KERNELS
        }

        /// The kernels that this machine can run, the portable ones first and the fastest last.
        pub(crate) fn every_kernels() -> Vec<Kernels> {
            let mut every = vec![portable::KERNELS];
            #[cfg(target_arch = "x86_64")]
            every.extend(x86::kernels());
            every
        }
    };
}

/// The kernels of a level of acceleration, if this processor has its features: each is a call of a function that takes no other
/// features. `else` gives kernels from which those come that are not named.
#[macro_export]
macro_rules! kernels {
    ($kernels:ident $name:literal, [$($feature:tt),+ $(,)?], {
        $($field:ident: |$($argument:ident),+| $call:expr,)+
    } $(else $rest:expr)?) => {
        ($(::std::arch::is_x86_feature_detected!($feature))&&+).then_some($kernels {
            name: $name,
            $($field: |$($argument),+| {
                // SAFETY: the kernels exist only where the processor has all features that they take.
                unsafe { $call }
            },)+
            $(..$rest)?
        })
    };
}
