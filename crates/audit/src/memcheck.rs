//! Valgrind's requests, as far as the check of branches takes them: secrets are marked as undefined bytes, and memcheck
//! reports every branch and every address that depends on one (Langley's ctgrind).
//!
//! A request is a sequence of instructions that changes nothing on a processor, and that valgrind recognises.

#![allow(unsafe_code)]

const RUNNING_ON_VALGRIND: u64 = 0x1001;
const COUNT_ERRORS: u64 = 0x1201;
const MAKE_UNDEFINED: u64 = 0x4d43_0001;
const MAKE_DEFINED: u64 = 0x4d43_0002;

/// Whether this process runs under valgrind.
pub fn is_running() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0) != 0
}

/// Errors that valgrind has reported so far.
pub fn errors() -> u64 {
    request(COUNT_ERRORS, 0, 0)
}

/// Marks bytes as secret.
pub fn hide(bytes: &mut [u8]) {
    request(MAKE_UNDEFINED, bytes.as_ptr() as u64, bytes.len() as u64);
}

/// Marks a word as public again.
pub fn reveal(word: &mut u64) {
    request(MAKE_DEFINED, std::ptr::from_mut(word) as u64, 8);
}

#[cfg(target_arch = "x86_64")]
fn request(code: u64, first: u64, second: u64) -> u64 {
    let arguments: [u64; 6] = [code, first, second, 0, 0, 0];
    let mut result = 0_u64;
    // SAFETY: on a processor the rotations add up to whole turns of rdi and the exchange changes nothing; under valgrind the
    // sequence reads `arguments`, which outlives it, and sets rdx.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            inout("rdi") 0_u64 => _,
            in("rax") arguments.as_ptr(),
            inout("rdx") result,
        );
    }
    result
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_code: u64, _first: u64, _second: u64) -> u64 {
    0
}
