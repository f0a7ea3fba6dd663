//! `timing [RUNS]`: times every kernel on a fixed secret and on random ones, and says whether the two differ.
//!
//! Exit code 1 if a kernel's time depends on its secret, 2 if the control's does not seem to.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use privet_audit::kernels::{CONTROL, KERNELS, Kernel};
use privet_audit::welch::{LIMIT, statistic};
use privet_prg::Prg;

/// No kernel is timed for longer.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let runs: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(20_000);
    let Ok(mut prg) = Prg::from_os() else { return ExitCode::from(2) };
    println!("{:<28} {:>8} {:>8}", "kernel", "runs", "|t|");
    let mut measure = |kernel: &Kernel| {
        let (times, largest) = time(kernel, runs, &mut prg);
        println!("{:<28} {times:>8} {largest:>8.1}", kernel.name);
        largest
    };
    let leaking = measure(&CONTROL);
    let leaks: Vec<&str> = KERNELS.iter().filter(|kernel| measure(kernel) > LIMIT).map(|kernel| kernel.name).collect();
    for name in &leaks {
        println!("the time of '{name}' depends on its secret: |t| > {LIMIT}");
    }
    if leaking <= LIMIT {
        println!("the control was not caught: this machine is too noisy for so few runs");
        return ExitCode::from(2);
    }
    if leaks.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many runs were timed, and the statistic of their times.
fn time(kernel: &Kernel, runs: usize, prg: &mut Prg) -> (usize, f64) {
    let mut times: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
    let mut secret = vec![0; kernel.secret_bytes];
    let start = Instant::now();
    // The first few warm caches up and build what kernels share.
    for run in 0..runs + 16 {
        let class = (prg.word() & 1) as usize;
        prg.fill(&mut secret);
        // Both classes draw a secret and write one, so that only its value differs.
        let mask = (class as u8).wrapping_neg();
        secret.iter_mut().for_each(|byte| *byte &= mask);
        let began = Instant::now();
        black_box((kernel.run)(black_box(&secret)));
        let took = began.elapsed().as_nanos() as u64;
        if run >= 16 {
            times[class].push(took);
        }
        if start.elapsed() > PATIENCE {
            break;
        }
    }
    (times[0].len() + times[1].len(), statistic(&times[0], &times[1]))
}
