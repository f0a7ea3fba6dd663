//! One decoder under LLVM's fuzzer; `PRIVET_DECODER` names it. `python -m scripts.audit` builds and runs this.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use privet_audit::decoders::{self, Decoder};

static DECODER: LazyLock<&Decoder> = LazyLock::new(|| {
    let name = std::env::var("PRIVET_DECODER").expect("PRIVET_DECODER names a decoder");
    decoders::named(&name).expect("there is such a decoder")
});

fuzz_target!(|bytes: &[u8]| {
    (DECODER.run)(bytes);
});
