//! Known answers, made by `known.py`.

use super::*;

const PRIMES: [&str; 2] = [
    "cdee4e1693839b378c4f6aea9fdaf59dbc235495318935139b8421381a5c2113",
    "d7feab1c9a6fa0b2775b67f744c551a306c4e1aed4f88570825329367fe7032b",
];
const CIPHERTEXTS: [&str; 6] = [
    "5f057950f33c2f86bcc5eb48646bbdbaf9f0a4618481ade7a3fcc72e692096d1a025baa81e0d9134e98118f1b059756d\
     5da6ec8f9e7192158c1dba75727ff884ade8a753da799f8b6b2d689820e35065e96e2913752b7505b98e78e9a84aff55\
     c5c5cce05d6a463310632113bdf6dcedee05466cfc4b52a732262f1101c09e60",
    "0cd0249bc9817e5de84f7bc8bcb6062a7959e7b77d5710689253ffb5356b0890a6c1389eb6034af3cfd7f203a7847c5e\
     8f067726df6b9132b340696edfd1d7525f7e134e17ccd3d3c2e60867135e1b3a0583c895298928cb635d7ff50a91dbda\
     6b6f27eabde1c77ac4e8670f02e4bf7991ac7b50ca9aa4da1a2a194073e9999c",
    "0f634ad121f2b8f48059600b16e030205ec274ef24c280713c73c89b079b8e9086f54edb10f96287b2770392a9469848\
     c0aa02ec41ed5325c594b974f34a2accd7437ce64f02311a8f7489cd2427779d1ff93cad697cb04c25c8fa33cd64cccf\
     cd71492098109f4b16939ba7d40688e123cd735f15692cf0d5484314a300be04",
    "323a50e4fb43beda39ae6ef96f2f9958d74ee9b5fb99af9808025461be0e10e5dc9d28cc74cc1093bde029a20718cfd8\
     d2033e10a5908b54cfcb36c594d6a8c930dcb761bff569042da1de232e7d0737f3d0c75539d8a4bd91e72ae68185e023\
     e6e074b745f9cf23aaf2cc63c36320bd03fc35c5d69749ee3ac81818635ce9a2",
    "1138ca75d45b08841fecc014627136c73fc25a6a996e0aa63234d4f934b9ec5d1047f3b4dd7f2ba501b14fd1e9ea8e1b\
     aabffc7b5d21a2ee88de4da01c953f159de1d15015522a4930b4322b0231a6d52885e7ccf2f42d55d5e9feabf3ad2d1d\
     fcd0f11367624724f9632f3a1759f4eb921e60b28c04defe914f30283c723924",
    "359776ecea5648b8b07396af93fdd6792b0ddb755710a4ac78801ca240157dab2f97689c65b3065ba6fefd3361e76c48\
     7c6e387575b4d904e06a3da76dd9d156ded951b1d6fde79fcdc28c9863c659656e3c6de49dcf26ffd1cbbbc1833349a7\
     33eac925740b364a0a3d929e1fcde8b76110878d18e36ceafb04b643757eedba",
];
const DOT: [&str; 1] =
    ["04265abbbdd6595ecebe3b483695e0b13fcd6e95f8e474ce6900c542892ba42b890a963843a8ac806d64a77bcfba4a75\
     b5371b4f5d85d16d0f6d5ebaa22b62b130387ceeff1af9729d92f54564e4070904778f127b3147c0ae941dce378e3383\
     f4ac07e7b34387a85fd7bb2c64e49ec6492f70c65a4a0c27cc684d95dcde7bee"];

/// Little-endian bytes of a number in hexadecimal.
fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len() / 2).rev().map(|i| byte(2 * i)).collect()
}

#[test]
fn ciphertexts_made_elsewhere_are_decrypted_and_added_up_the_same() -> Result<(), Error> {
    let size = KeySize::Insecure512;
    let key = PrivateKey::from_bytes(size, &PRIMES.map(bytes).concat())?;
    let ciphertexts = Ciphertexts::from_bytes(key.public(), 6, &CIPHERTEXTS.map(bytes).concat())?;
    let values: Vec<_> = key.decrypt(&ciphertexts)?.iter().map(Plaintext::to_i64).collect();
    assert_eq!(values, [0, 1, -1, 1 << 62, i64::MIN, 123_456_789].map(Some));

    // The very same group element, whichever way it is computed.
    let weights = Weights::new(1, 4, 20, vec![5, -7, 524_287, 11])?;
    let windows = Windows::new(4, [0, 1, 2, 5].map(Some).to_vec())?;
    for plan in [Plan::Tables { run: 4, inputs: 2, bits: 3 }, Plan::Buckets { bits: 5, parts: 2 }] {
        let dot = ciphertexts.dot_by(&weights, &windows, plan)?;
        assert_eq!(dot.to_bytes(), bytes(DOT[0]), "{plan:?}");
    }
    Ok(())
}
