//! Many ciphertexts that are multiplied by the same few polynomials: by polynomials in `X^B`, for a number of sums at once.
//!
//! A ciphertext is cut into `n = N / B` blocks of `B` coefficients. A polynomial in `X^B` has `n` coefficients, and its transform has `n`
//! different values only, each for `B` neighbouring points (Nimbus, Li et al., NeurIPS 2024, has `n` = 1). So a product is `n` products of a number with
//! `B` values and takes no transform of length `N`, and many sums of many products are a product of matrices for each block
//! ([`arch::tile`]).

use crate::arch::tile::{self, ROWS, TERMS, WIDTH};
use crate::arch::{Montgomery, kernels};
use crate::error::{Error, Misuse};
use crate::ntt::Ntt;
use crate::parameters::Parameters;
use crate::polynomial::Polynomial;
use crate::product::Sum;

/// How rows of a matrix lie in a ciphertext's blocks: one behind the other, `width` blocks each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Blocks of a ciphertext: a power of two.
    pub count: usize,
    /// Blocks of a row.
    pub width: usize,
}

impl Blocks {
    /// Rows in a ciphertext.
    pub fn rows(&self) -> usize {
        self.count / self.width
    }

    /// Coefficients of a block.
    pub fn block(&self, degree: usize) -> usize {
        degree / self.count
    }

    /// The first coefficient of the sum over a ciphertext's rows, each times its factor: where the last row lies.
    pub fn result(&self, degree: usize) -> usize {
        (self.rows() - 1) * self.width * self.block(degree)
    }

    /// The power of `X^B` that a row's factor is multiplied by, so that its product lies where the last row does. Products with the
    /// other rows' blocks come to lie elsewhere: `width` times as many blocks away as rows, of which all fit.
    fn power(&self, row: usize) -> usize {
        (self.rows() - 1 - row) * self.width
    }
}

/// Ciphertexts as products take them. Its memory serves for one set of ciphertexts after the other.
pub struct Panel {
    parameters: Parameters,
    groups: Vec<Group>,
}

/// Some of a panel's ciphertexts: for each of both parts and each prime `[N / WIDTH][ciphertexts][WIDTH]`.
pub struct Group {
    terms: usize,
    parts: [[Vec<[u64; WIDTH]>; 2]; 2],
}

impl Group {
    /// Most ciphertexts of a group.
    pub const MOST: usize = 32;

    /// Reads what [`crate::SecretKey::encrypt`] wrote, some ciphertexts one after the other, in place of what was here.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] for more than [`Group::MOST`]; [`crate::PeerMisbehaved`] for a wrong length or a residue that is not reduced.
    pub fn read(&mut self, parameters: &Parameters, bytes: &[u8]) -> Result<(), Error> {
        let (degree, each) = (parameters.degree(), parameters.ciphertext_bytes());
        let terms = bytes.len().div_ceil(each);
        Misuse::check_most("group", Self::MOST, terms)?;
        self.terms = terms;
        for (term, bytes) in bytes.chunks(each).enumerate() {
            let read = Polynomial::read_masked(parameters.ntts(), degree, "ciphertext", bytes)?;
            for (packed, read) in self.parts.iter_mut().flatten().zip(read.iter().flat_map(|part| &part.0)) {
                packed.resize(degree / WIDTH * terms, [0; WIDTH]);
                let places = packed[term..].iter_mut().step_by(terms);
                places.zip(read.as_chunks().0).for_each(|(place, values)| *place = *values);
            }
        }
        Ok(())
    }

    /// What is here of `WIDTH` values of all ciphertexts.
    fn columns(&self, part: usize, prime: usize, at: usize) -> &[[u64; WIDTH]] {
        &self.parts[part][prime][at * self.terms..][..self.terms]
    }
}

impl Panel {
    /// Most ciphertexts of a panel: what a tile reads of them stays in the nearest cache.
    pub const MOST: usize = 256;

    /// Sums that grow side by side: for a multiple of so many, no place in a tile is left over.
    pub const SIDE_BY_SIDE: usize = ROWS;

    /// Whether there are panels for these parameters: for primes of up to 52 bits.
    pub fn takes(parameters: &Parameters) -> bool {
        parameters.prime_bits().iter().all(|&bits| bits <= tile::WIDEST_PRIME_BITS)
    }

    /// A panel without ciphertexts.
    pub fn new(parameters: &Parameters) -> Self {
        Self { parameters: parameters.clone(), groups: Vec::new() }
    }

    /// The groups for so many ciphertexts, each full but the last, which the caller fills.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`] for more than [`Panel::MOST`].
    pub fn groups(&mut self, terms: usize) -> Result<&mut [Group], Error> {
        Misuse::check_most("panel", Self::MOST, terms)?;
        self.groups.resize_with(terms.div_ceil(Group::MOST), || Group { terms: 0, parts: Default::default() });
        Ok(&mut self.groups)
    }

    fn terms(&self) -> usize {
        self.groups.iter().map(|group| group.terms).sum()
    }

    /// Adds to each sum the products of the ciphertexts' rows with its factors: `factors[sum]` has one for each row of each ciphertext. The
    /// result is where [`Blocks::result`] says; whatever lies elsewhere is none.
    ///
    /// # Errors
    /// [`Misuse::ParametersDiffer`]; [`Misuse::WrongLength`] unless there are as many factors as rows for each sum, or for blocks that do not fit.
    pub fn multiply_add(&self, blocks: Blocks, sums: &mut [Sum], factors: &[&[i64]]) -> Result<(), Error> {
        let (degree, terms) = (self.parameters.degree(), self.terms());
        let fits = blocks.count.is_power_of_two() && (1..=blocks.count).contains(&blocks.width);
        if !fits || blocks.block(degree) < WIDTH {
            return Err(Misuse::WrongLength { what: "blocks", expected: degree / WIDTH, actual: blocks.count }.into());
        }
        Misuse::check_length("factors", sums.len(), factors.len())?;
        for factors in factors {
            Misuse::check_length("factors", terms * blocks.rows(), factors.len())?;
        }
        Misuse::check_parameters(sums.iter().all(|sum| self.parameters.agrees_with(&sum.parameters)))?;
        let segment = blocks.block(degree) / WIDTH;
        for (prime, ntt) in self.parameters.ntts().iter().enumerate() {
            let product = Product::new(ntt);
            let tiles = self.transformed(&product, blocks, factors);
            let mut spare = [[0; WIDTH]; ROWS];
            for part in 0..2 {
                for at in 0..degree / WIDTH {
                    let right: Vec<&[[u64; WIDTH]]> =
                        self.groups.iter().map(|group| group.columns(part, prime, at)).collect();
                    for (sums, tile) in sums.chunks_mut(ROWS).zip(&tiles) {
                        let left = &tile[at / segment * terms..][..terms];
                        let mut spare = spare.iter_mut();
                        let mut sums = sums.iter_mut();
                        let rows: [&mut [u64; WIDTH]; ROWS] = std::array::from_fn(|_| match sums.next() {
                            Some(sum) => {
                                let part = if part == 0 { &mut sum.c0 } else { &mut sum.c1 };
                                part.0[prime][at * WIDTH..].first_chunk_mut().expect("a part of the polynomial")
                            }
                            None => spare.next().expect("a row to spare"),
                        });
                        product.add(left, &right, rows);
                    }
                }
            }
        }
        Ok(())
    }

    /// For each tile of sums the values of their factors' polynomials, multipliers: `[blocks][ciphertexts][ROWS]`.
    fn transformed(&self, product: &Product<'_>, blocks: Blocks, factors: &[&[i64]]) -> Vec<Vec<[u64; ROWS]>> {
        let (rows, count, terms) = (blocks.rows(), blocks.count, self.terms());
        let mut tiles = vec![vec![[0; ROWS]; count * terms]; factors.len().div_ceil(ROWS)];
        let powers = self.powers(product, blocks);
        for (group, factors) in factors.chunks(WIDTH).enumerate() {
            let residues: Vec<Vec<u64>> =
                factors.iter().map(|factors| product.ntt.prime().reduce_signed(factors)).collect();
            for term in 0..terms {
                let right: Vec<[u64; WIDTH]> = (0..rows)
                    .map(|row| {
                        let residue = |sum: usize| residues.get(sum).map_or(0, |of| of[term * rows + row]);
                        std::array::from_fn(residue)
                    })
                    .collect();
                for (part, left) in powers.iter().enumerate() {
                    let mut values = [[0; WIDTH]; ROWS];
                    product.add(left, &[&right], values.each_mut());
                    for (block, values) in (part * ROWS..count).zip(&values) {
                        for (sum, value) in (group * WIDTH..).zip(values).take(factors.len()) {
                            tiles[sum / ROWS][block * terms + term][sum % ROWS] = *value;
                        }
                    }
                }
            }
        }
        tiles
    }

    /// The powers of `X^B` of all rows at the points of each block, for [`ROWS`] blocks at a time, twice as multipliers.
    fn powers(&self, product: &Product<'_>, blocks: Blocks) -> Vec<Vec<[u64; ROWS]>> {
        let degree = self.parameters.degree();
        let block = blocks.block(degree);
        let mut monomial = vec![0; degree];
        // All of one block is a number.
        monomial[if blocks.count > 1 { block } else { 0 }] = 1;
        product.ntt.forward(&mut monomial);
        let first: Vec<u64> = monomial.into_iter().step_by(block).collect();
        let mut powers = vec![vec![1; blocks.count]];
        for power in 0..blocks.power(0) {
            let next = |(&point, &first): (&u64, &u64)| product.ntt.prime().multiply(point, first);
            powers.push(powers[power].iter().zip(&first).map(next).collect());
        }
        // A factor's product with a power is multiplied by ciphertexts.
        let points = |row: usize| -> Vec<u64> {
            powers[blocks.power(row)].iter().map(|&point| product.prepare(product.prepare(point))).collect()
        };
        let points: Vec<Vec<u64>> = (0..blocks.rows()).map(points).collect();
        let part = |part: usize| {
            let values = points
                .iter()
                .map(|points| std::array::from_fn(|at| points.get(part * ROWS + at).copied().unwrap_or(0)));
            values.collect()
        };
        (0..blocks.count.div_ceil(ROWS)).map(part).collect()
    }
}

const _: () = assert!(Panel::MOST <= TERMS);

/// Products of matrices modulo a prime, on the fastest code that there is.
struct Product<'a> {
    ntt: &'a Ntt,
    accelerated: Option<(Montgomery, tile::Accelerated)>,
}

impl<'a> Product<'a> {
    fn new(ntt: &'a Ntt) -> Self {
        let allowed = tile::accelerated().filter(|_| kernels().is_some());
        Self { ntt, accelerated: Montgomery::wide(ntt.prime().value()).zip(allowed) }
    }

    /// What one factor of each product must be.
    fn prepare(&self, x: u64) -> u64 {
        self.accelerated.as_ref().map_or(x, |(montgomery, _)| self.ntt.prime().multiply(x, montgomery.radix))
    }

    /// [`tile`]: one of both sides is prepared.
    fn add(&self, left: &[[u64; ROWS]], right: &[&[[u64; WIDTH]]], sums: tile::Sums<'_>) {
        match &self.accelerated {
            Some((montgomery, add)) => add(montgomery, left, right, sums),
            None => tile::portable(self.ntt.prime(), left, right, sums),
        }
    }
}
