//! `valgrind --error-exitcode=0 branches`: marks secrets as undefined and counts what memcheck reports of each kernel.
//!
//! Exit code 1 if a kernel branches on its secret or reads at an address that depends on it, 2 if the control is not caught or
//! there is no valgrind.

use std::hint::black_box;
use std::process::ExitCode;

use privet_audit::kernels::{CONTROL, KERNELS, Kernel};
use privet_audit::memcheck;

fn main() -> ExitCode {
    if !memcheck::is_running() {
        eprintln!("run this under valgrind");
        return ExitCode::from(2);
    }
    println!("{:<28} {:>8}", "kernel", "reports");
    let caught = reports(&CONTROL);
    let followed = KERNELS.iter().filter(|kernel| kernel.followed);
    let leaks = followed.map(reports).filter(|&count| count > 0).count();
    match (caught, leaks) {
        (0, _) => ExitCode::from(2),
        (_, 0) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What memcheck reports while a kernel runs on a secret.
fn reports(kernel: &Kernel) -> u64 {
    let mut secret = vec![0x5a; kernel.secret_bytes];
    // What kernels share is made before anything is secret.
    black_box((kernel.run)(&secret));
    memcheck::hide(&mut secret);
    let before = memcheck::errors();
    let mut result = (kernel.run)(&secret);
    let count = memcheck::errors() - before;
    memcheck::reveal(&mut result);
    black_box(result);
    println!("{:<28} {count:>8}", kernel.name);
    count
}
