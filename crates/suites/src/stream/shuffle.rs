//! Shuffles of values that both parties share: the server knows the order, the client does not.
//!
//! A shuffle turns values that the client knows into sums of one part of each party, in an order that the server chose and
//! the client does not learn (Mohassel and Sadeghian, "How to Hide Circuits in MPC", EUROCRYPT 2013). It is a
//! [`Network`] whose switches the server sets. A switch on values `x` and `y` of the client adds `b (y - x)` to one and
//! takes it off the other, where `b` is the server's bit; the product of a bit of one party and a number of the other is
//! shared by an oblivious transfer. The server sends a bit for each product, the client a ring element; neither waits for
//! the other between switches, because a party's part of a product is known before the other's message.
//!
//! Windows of a pooling go as wholes, after a shuffle of the elements of each.

use privet_ot::{ProductsReceived, ProductsSent};
use privet_prg::Prg;
use privet_ring::{Bits, Modulus};

use super::arrangement::permutation;
use super::network::{Network, switches};

/// How many values are shuffled how: known to both parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Windows, or single elements.
    pub windows: usize,
    /// Elements of a window.
    pub length: usize,
}

/// The order of one shuffle, known to the server alone.
pub(super) struct Secret {
    /// The window that goes to each place.
    pub order: Vec<usize>,
    /// The element of each window that goes to each of its places, `[windows][length]`.
    pub members: Vec<usize>,
}

impl Shape {
    /// Values that go in.
    pub fn len(&self) -> usize {
        self.windows * self.length
    }

    /// Products that it takes to shuffle `[windows][length]` values.
    pub fn forward(&self) -> usize {
        self.windows * switches(self.length) + switches(self.windows) * self.length
    }

    /// Products that it takes to bring one value for each window back into the windows' own order.
    pub fn backward(&self) -> usize {
        switches(self.windows)
    }

    /// Both.
    pub fn products(&self) -> usize {
        self.forward() + self.backward()
    }

    fn walk(&self) -> Walk {
        Walk { shape: *self, members: Network::new(self.length), windows: Network::new(self.windows) }
    }
}

impl Secret {
    /// Uniform and independent permutations: of the windows, and of the elements of each.
    pub fn draw(shape: Shape, prg: &mut Prg) -> Self {
        let order = permutation(shape.windows, prg);
        let members = (0..shape.windows).flat_map(|_| permutation(shape.length, prg)).collect();
        Self { order, members }
    }

    /// For each place of what leaves a shuffle, the value that comes there.
    pub fn places(&self, shape: Shape) -> Vec<usize> {
        let length = shape.length;
        let window = |&window: &usize| (0..length).map(move |at| window * length + at);
        self.order.iter().flat_map(window).map(|at| at / length * length + self.members[at]).collect()
    }

    /// The server's bits for the products of both directions, in the order in which they are used.
    pub fn bits(&self, shape: Shape) -> [Bits; 2] {
        let walk = shape.walk();
        let members = self.members.chunks(shape.length.max(1)).flat_map(|order| walk.members.route(order));
        let windows = walk.windows.route(&self.order);
        let lanes = windows.iter().flat_map(|&bit| std::iter::repeat_n(bit, shape.length));
        let forward: Vec<bool> = members.chain(lanes).collect();
        let backward: Vec<bool> = windows.iter().rev().copied().collect();
        [Bits::from_bools(&forward), Bits::from_bools(&backward)]
    }
}

/// Both networks of a shape.
struct Walk {
    shape: Shape,
    members: Network,
    windows: Network,
}

/// Places of two values that meet in a switch.
type Pair = [usize; 2];

impl Walk {
    /// The pairs of a shuffle in the order of its products.
    fn forward(&self) -> impl Iterator<Item = Pair> {
        let Shape { windows, length } = self.shape;
        let inner = (0..windows).flat_map(move |window| {
            self.members.switches().iter().map(move |pair| pair.map(|at| window * length + at as usize))
        });
        let outer = self.windows.switches().iter();
        inner.chain(outer.flat_map(move |pair| (0..length).map(move |lane| pair.map(|at| at as usize * length + lane))))
    }

    /// The same for the way back, of one value for each window.
    fn backward(&self) -> impl Iterator<Item = Pair> {
        self.windows.switches().iter().rev().map(|pair| pair.map(|at| at as usize))
    }
}

/// The client's side: its values become its part of the shuffled ones; returns what it sends, an element a product.
///
/// `flips`: the server's bits, hidden by the choices of its transfers.
pub(super) fn forward_sent(shape: Shape, values: &mut [u64], flips: &Bits, products: &ProductsSent) -> Vec<u64> {
    sent(shape.walk().forward(), values, flips, products)
}

/// The client's side of the way back: as [`forward_sent`], one value for each window.
pub(super) fn backward_sent(shape: Shape, values: &mut [u64], flips: &Bits, products: &ProductsSent) -> Vec<u64> {
    sent(shape.walk().backward(), values, flips, products)
}

fn sent(pairs: impl Iterator<Item = Pair>, values: &mut [u64], flips: &Bits, products: &ProductsSent) -> Vec<u64> {
    let terms = products.rho.all().iter().zip(products.share.all().iter());
    pairs
        .zip(terms)
        .enumerate()
        .map(|(index, ([x, y], (rho, share)))| {
            let flip = u64::from(flips.get(index));
            let difference = values[y].wrapping_sub(values[x]);
            // b d = flip d + c d' for the choice c = b ^ flip and d' = d, or -d where flip is 1.
            let signed = (difference ^ flip.wrapping_neg()).wrapping_add(flip);
            let part = (difference & flip.wrapping_neg()).wrapping_add(share);
            values[x] = values[x].wrapping_add(part);
            values[y] = values[y].wrapping_sub(part);
            signed.wrapping_sub(rho)
        })
        .collect()
}

/// The server's transfers and bits for one direction.
pub(super) struct Receiver {
    bits: Bits,
    products: ProductsReceived,
}

impl Receiver {
    /// With the bits of [`Secret::bits`].
    pub fn new(bits: Bits, products: ProductsReceived) -> Self {
        Self { bits, products }
    }

    /// What tells the client how the bits differ from the random choices of the transfers.
    pub fn flips(&self) -> Bits {
        self.bits.xor(&self.products.choice)
    }

    /// The server's part of the shuffled values, from what the client sent.
    pub fn forward(&self, shape: Shape, corrections: &[u64], ring: Modulus) -> Vec<u64> {
        self.receive(shape.walk().forward(), shape.len(), corrections, ring)
    }

    /// The server's part of the values that came back.
    pub fn backward(&self, shape: Shape, corrections: &[u64], ring: Modulus) -> Vec<u64> {
        self.receive(shape.walk().backward(), shape.windows, corrections, ring)
    }

    fn receive(&self, pairs: impl Iterator<Item = Pair>, count: usize, corrections: &[u64], ring: Modulus) -> Vec<u64> {
        let (mut values, share) = (vec![0_u64; count], self.products.share.all());
        for (index, ([x, y], correction)) in pairs.zip(corrections).enumerate() {
            let mask = |bit: bool| u64::from(bit).wrapping_neg();
            let swap = (values[x] ^ values[y]) & mask(self.bits.get(index));
            let chosen = correction & mask(self.products.choice.get(index));
            let part = share.get(index).wrapping_add(chosen);
            values[x] = (values[x] ^ swap).wrapping_add(part);
            values[y] = (values[y] ^ swap).wrapping_sub(part);
        }
        ring.reduce_all(&mut values);
        values
    }
}

#[cfg(test)]
mod tests {
    use privet_ot::{Packed, Width};
    use privet_prg::Seed;

    use super::*;

    /// Ideal transfers of both parties.
    fn products(count: usize, prg: &mut Prg) -> (ProductsSent, ProductsReceived) {
        let choices: Vec<bool> = (0..count).map(|_| prg.word() & 1 == 1).collect();
        let words = |prg: &mut Prg| (0..count).map(|_| prg.word()).collect::<Vec<_>>();
        let (rho, share) = (words(prg), words(prg));
        let chosen = choices.iter().zip(rho.iter().zip(&share));
        let theirs = chosen.map(|(&bit, (rho, share))| (rho * u64::from(bit)).wrapping_sub(*share)).collect();
        let [rho, share, theirs] = [rho, share, theirs].map(|words: Vec<u64>| Packed::of(Width::of(37), &words));
        (ProductsSent { rho, share }, ProductsReceived { choice: Bits::from_bools(&choices), share: theirs })
    }

    #[test]
    fn parts_sum_to_the_values_in_the_servers_order_and_back() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([5; 16]));
        let ring = Modulus::new(37);
        for (windows, length) in [(1, 1), (2, 1), (9, 1), (100, 1), (1, 4), (7, 4), (12, 9), (0, 1)] {
            let shape = Shape { windows, length };
            let secret = Secret::draw(shape, &mut prg);
            let [forward, backward] = secret.bits(shape);
            assert_eq!([forward.len(), backward.len()], [shape.forward(), shape.backward()]);

            let plain: Vec<u64> = (0..shape.len() as u64).collect();
            let (mut values, (mine, theirs)) = (plain.clone(), products(shape.forward(), &mut prg));
            let receiver = Receiver::new(forward, theirs);
            let message = forward_sent(shape, &mut values, &receiver.flips(), &mine);
            let sums = ring.add(&values, &receiver.forward(shape, &message, ring));
            assert_eq!(sums, secret.places(shape).iter().map(|&at| plain[at]).collect::<Vec<_>>());

            let returned: Vec<u64> = secret.order.iter().map(|&window| window as u64).collect();
            let (mut values, (mine, theirs)) = (returned, products(shape.backward(), &mut prg));
            let receiver = Receiver::new(backward, theirs);
            let message = backward_sent(shape, &mut values, &receiver.flips(), &mine);
            let sums = ring.add(&values, &receiver.backward(shape, &message, ring));
            assert_eq!(sums, (0..windows as u64).collect::<Vec<_>>());
        }
    }

    fn is_balanced(words: &[u64], bits: u32) -> bool {
        let ones: u32 = words.iter().map(|word| (word & ((1 << bits) - 1)).count_ones()).sum();
        let all = f64::from(bits) * words.len() as f64;
        (f64::from(ones) - all / 2.0).abs() < 3.0 * all.sqrt()
    }

    /// Values that are all the same, and an order that swaps nothing: what is not masked would be zero.
    #[test]
    fn neither_message_shows_anything() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([6; 16]));
        let shape = Shape { windows: 4096, length: 1 };
        let secret = Secret { order: (0..4096).collect(), members: vec![0; 4096] };
        let [forward, _] = secret.bits(shape);
        let (mine, theirs) = products(shape.forward(), &mut prg);
        let receiver = Receiver::new(forward, theirs);
        assert!(is_balanced(receiver.flips().words(), 63), "the server's bits");
        let message = forward_sent(shape, &mut vec![0; 4096], &receiver.flips(), &mine);
        // The first switches see the values themselves.
        assert!(is_balanced(&message[..2048], 37), "the client's elements");
    }
}
