//! Weights that the client keeps encrypted: shares, bytes, and what is wrong with what was kept.

use std::thread;
use std::time::Instant;

use privet_bfv::PublicKey;
use privet_channel::pair;
use privet_linear::Error;
use privet_linear::kept::{Plan, Product, ServerKeys, multiply};
use privet_prg::{Prg, Seed};

fn prg(byte: u8) -> Prg {
    Prg::from_seed(&Seed::from_bytes([byte; 16]))
}

/// Weights of a product, and what the client keeps of them.
struct Kept {
    weights: Vec<Vec<i64>>,
    keys: ServerKeys,
    public: PublicKey,
    bytes: Vec<u8>,
}

impl Kept {
    fn new(plan: &Plan, bits: u32) -> Self {
        let (mut prg, product) = (prg(1), plan.product());
        let mut draw = |columns: usize| -> Vec<i64> {
            (0..product.inner * columns).map(|_| (prg.word() << (63 - bits)).cast_signed() >> (63 - bits)).collect()
        };
        let weights: Vec<Vec<i64>> = product.columns.iter().map(|&columns| draw(columns)).collect();
        let keys = ServerKeys::from_seed(plan.parameters(), &prg.seed());
        let public = PublicKey::from_bytes(plan.parameters(), &keys.public_key(&mut prg)).unwrap();
        let (mut bytes, slices) = (Vec::new(), weights.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let mut send = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok::<_, Error>(())
        };
        keys.encrypt(plan, &slices, &mut prg, &mut send).unwrap();
        assert_eq!(bytes.len() as u64, plan.kept_bytes());
        Self { weights, keys, public, bytes }
    }

    /// Both parties' shares for an input.
    fn run(&self, plan: &Plan, r: &[u64]) -> [Vec<Vec<u64>>; 2] {
        let (mut near, mut far) = pair();
        thread::scope(|scope| {
            let serving = scope.spawn(move || self.keys.open(&mut far, plan).unwrap());
            let mut rest = self.bytes.as_slice();
            let mut read = |out: &mut [u8]| {
                let (part, after) = rest.split_at(out.len());
                out.copy_from_slice(part);
                rest = after;
                Ok::<_, Error>(())
            };
            let before = near.cost();
            let client_shares = multiply(&mut near, plan, &self.public, &mut read, r, &mut prg(3)).unwrap();
            near.flush().unwrap();
            assert_eq!(near.cost() - before, plan.cost());
            assert!(rest.is_empty());
            [client_shares, serving.join().unwrap()]
        })
    }
}

fn uniform(len: usize, bits: u32) -> Vec<u64> {
    let mut prg = prg(2);
    (0..len).map(|_| prg.word() >> (64 - bits)).collect()
}

#[test]
fn shares_add_up_to_every_product_of_a_plan() {
    let (bits, guard) = (40, 2);
    let products = [
        Product { rows: 7, inner: 300, columns: vec![96, 96, 96] },
        Product { rows: 3, inner: 17, columns: vec![5000] },
        Product { rows: 20, inner: 1, columns: vec![1, 2] },
        Product { rows: 40, inner: 2000, columns: vec![10] },
    ];
    for plan in Plan::for_program(&products, bits, guard).unwrap() {
        let kept = Kept::new(&plan, 16);
        let Product { rows, inner, columns } = plan.product();
        let r = uniform(rows * inner, bits);
        let [client, server] = kept.run(&plan, &r);
        for (member, &columns) in columns.iter().enumerate() {
            for (at, (client, server)) in client[member].iter().zip(&server[member]).enumerate() {
                let (row, column) = (at / columns, at % columns);
                let product = (0..*inner).fold(0_u64, |sum, k| {
                    let weight = kept.weights[member][k * columns + column].cast_unsigned();
                    sum.wrapping_add(r[row * inner + k].wrapping_mul(weight))
                });
                let off = client.wrapping_add(*server).wrapping_sub(product << guard).wrapping_add(1);
                assert!(off << (64 - bits - guard) >> (64 - bits - guard) <= 2, "{:?}: {at}", plan.product());
            }
        }
    }
}

/// What the server reads of a product: its replies.
fn replies(kept: &Kept, plan: &Plan, r: &[u64], seed: u8) -> Vec<Vec<u8>> {
    let (mut near, mut far) = pair();
    let mut rest = kept.bytes.as_slice();
    let mut read = |out: &mut [u8]| {
        let (part, after) = rest.split_at(out.len());
        out.copy_from_slice(part);
        rest = after;
        Ok::<_, Error>(())
    };
    multiply(&mut near, plan, &kept.public, &mut read, r, &mut prg(seed)).unwrap();
    near.flush().unwrap();
    let each = plan.parameters().reply_bytes(plan.product().columns[0]);
    let lengths = [16 * each, (plan.product().rows - 16) * each];
    lengths
        .into_iter()
        .flat_map(|len| far.recv(len).unwrap().chunks(each).map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect()
}

#[test]
fn no_ciphertext_and_no_reply_has_the_randomness_of_another() {
    let products = [Product { rows: 20, inner: 40, columns: vec![900] }];
    let plan = Plan::for_program(&products, 40, 2).unwrap().remove(0);
    // Twice to the same client, whose weights and key are the same.
    let kept = Kept::new(&plan, 16);
    let (mut prg, mut second_bytes) = (prg(9), Vec::new());
    let mut send = |part: &[u8]| {
        second_bytes.extend_from_slice(part);
        Ok::<_, Error>(())
    };
    kept.keys.encrypt(&plan, &[&kept.weights[0]], &mut prg, &mut send).unwrap();
    let keys = [(); 2].map(|()| kept.keys.public_key(&mut prg));
    let ciphertexts =
        [&kept.bytes, &second_bytes].into_iter().flat_map(|bytes| bytes.chunks(plan.parameters().ciphertext_bytes()));
    let parts: Vec<&[u8]> = ciphertexts.chain(keys.iter().map(Vec::as_slice)).collect();
    assert_eq!(parts.len(), 2 * plan.ciphertexts() + 2);
    for (at, one) in parts.iter().enumerate() {
        assert!(parts[..at].iter().all(|other| other[..16] != one[..16] && other[16..] != one[16..]));
    }
    // Masks of zero, which replies do not show.
    let zeros = vec![0; 20 * 40];
    let replies = [replies(&kept, &plan, &zeros, 4), replies(&kept, &plan, &zeros, 5)].concat();
    for (at, one) in replies.iter().enumerate() {
        for other in &replies[..at] {
            let equal = one.iter().zip(other).filter(|(one, other)| one == other).count();
            // One byte in 256 is equal by chance.
            assert!(equal < one.len() / 128, "{equal} of {} bytes", one.len());
        }
    }
}

#[test]
fn what_no_honest_party_sends_is_refused_or_opened_and_stops_nobody() {
    let products = [Product { rows: 3, inner: 40, columns: vec![90] }];
    let plan = Plan::for_program(&products, 40, 2).unwrap().remove(0);
    let kept = Kept::new(&plan, 16);
    // A client that has other bytes: of the lowest residues all bits, of any the last one, and of all of them.
    let each = plan.parameters().ciphertext_bytes();
    for changed in [16..24, each - 8..each, 0..kept.bytes.len()] {
        let mut bytes = kept.bytes.clone();
        bytes[changed].fill(0xff);
        let mut rest = bytes.as_slice();
        let mut read = |out: &mut [u8]| {
            let (part, after) = rest.split_at(out.len());
            out.copy_from_slice(part);
            rest = after;
            Ok::<_, Error>(())
        };
        let (mut near, _far) = pair();
        let result = multiply(&mut near, &plan, &kept.public, &mut read, &uniform(3 * 40, 40), &mut prg(3));
        assert!(matches!(result, Err(Error::PeerMisbehaved(_))), "{result:?}");
    }
    // A server that is sent other replies: any bits are a reply, of another length none is.
    let reply = 3 * plan.parameters().reply_bytes(90);
    let mut noise = vec![0; reply];
    prg(4).fill(&mut noise);
    for (bytes, is_reply) in
        [(vec![0; reply], true), (noise, true), (vec![0; reply - 1], false), (vec![0; reply + 1], false)]
    {
        let (mut near, mut far) = pair();
        near.send(&bytes).unwrap();
        near.flush().unwrap();
        let opened = kept.keys.open(&mut far, &plan);
        match opened {
            Ok(shares) => assert!(is_reply && shares[0].len() == 3 * 90),
            Err(error) => assert!(!is_reply || matches!(error, Error::PeerMisbehaved(_)), "{error}"),
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn how_long_a_layer_of_bert_base_takes() {
    let product = |inner, columns| Product { rows: 128, inner, columns };
    let products =
        [product(768, vec![768; 3]), product(768, vec![768]), product(768, vec![3072]), product(3072, vec![768])];
    for plan in Plan::for_program(&products, 40, 2).unwrap() {
        println!("{plan}, {:.3} s expected", plan.price() as f64 / 1e9);
        let start = Instant::now();
        let kept = Kept::new(&plan, 16);
        println!("  encrypted in {:?}", start.elapsed());
        let r = uniform(plan.product().rows * plan.product().inner, 40);
        for _ in 0..2 {
            let start = Instant::now();
            kept.run(&plan, &r);
            println!("  multiplied in {:?}", start.elapsed());
        }
    }
}
