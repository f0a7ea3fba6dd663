//! An honest client that asks for one input again and again: what it learns of the weights by rounding errors.
//!
//! With [`Truncate::near`], inside a ReLU, a hidden unit comes out one higher in the runs in which the low bits of its opening
//! are below those of its value. The client sees the opening and exact outputs, so each run is one equation for the weights
//! behind the unit; the only unknown besides is one threshold for each unit. A greedy search over thresholds with least
//! squares finds everything. With [`Truncate::exact`] every run gives the same output, and there is nothing to solve.

use privet_ring::Modulus;
use privet_shark::{Gate, Hiding, Layer, Relu, Truncate};

use crate::support::{deal, hide, input, multiply, prg, random};

const RING: Modulus = Modulus::new(37);
const DROPPED: u32 = 12;
const INPUTS: usize = 16;
const HIDDEN: usize = 16;
const OUTPUTS: usize = 4;
const RUNS: usize = 120;

const FIRST: Layer = Layer::MatMul { rows: 1, inner: INPUTS, columns: HIDDEN };
const LAST: Layer = Layer::MatMul { rows: 1, inner: HIDDEN, columns: OUTPUTS };

/// What the client sees of a run.
struct Seen {
    /// The low bits of what was opened before the ReLUs.
    low: Vec<u64>,
    output: Vec<i64>,
}

/// Two dense layers with ReLUs between them, and an input.
struct Victim {
    weights: [Vec<i64>; 2],
    x: Vec<u64>,
}

impl Victim {
    fn new() -> Self {
        let mut source = prg(99);
        let mut signed =
            |count| random(count, 12, &mut source).iter().map(|x| *x as i64 - (1 << 11)).collect::<Vec<_>>();
        let weights = [signed(INPUTS * HIDDEN), signed(HIDDEN * OUTPUTS)];
        Self { weights, x: random(INPUTS, 12, &mut source) }
    }

    /// What goes into the ReLUs.
    fn hidden(&self) -> Vec<i64> {
        let unit = |j: usize| (0..INPUTS).map(|i| self.x[i] as i64 * self.weights[0][HIDDEN * i + j]).sum();
        (0..HIDDEN).map(unit).collect()
    }

    /// The output for hidden units that round down.
    fn expected(&self) -> Vec<i64> {
        let hidden: Vec<i64> = self.hidden().iter().map(|z| (z >> DROPPED).max(0)).collect();
        let output = |k: usize| (0..HIDDEN).map(|j| hidden[j] * self.weights[1][OUTPUTS * j + k]).sum();
        (0..OUTPUTS).map(output).collect()
    }

    /// One honest run on fresh material.
    fn run(&self, seed: u64, exact: bool) -> Seen {
        let truncate = Truncate::exact(RING.bits(), DROPPED);
        let relu = match exact {
            true => Relu::new(truncate.output().bits(), 0, RING.bits()),
            false => Relu::new(RING.bits(), DROPPED, RING.bits()),
        };
        let material = deal(seed, |dealer, setup| {
            let mut hiding = Hiding::new(setup);
            let [first, last] = self.weights.each_ref().map(|weights| hiding.next(RING, weights.len()));
            let masks = dealer.input_masks(INPUTS).expect("a vector takes everything");
            FIRST.deal(dealer, &first, &masks).expect("a vector takes everything");
            let mut masks = dealer.masks(HIDDEN).expect("a vector takes everything");
            if exact {
                truncate.deal(dealer, &masks).expect("a vector takes everything");
                masks = dealer.masks(HIDDEN).expect("a vector takes everything");
            }
            relu.deal(dealer, &masks).expect("a vector takes everything");
            let masks = dealer.masks(HIDDEN).expect("a vector takes everything");
            LAST.deal(dealer, &last, &masks).expect("a vector takes everything");
            dealer.output_masks(RING, OUTPUTS).expect("a vector takes everything");
        });
        let weights = hide(&material, RING, &self.weights.each_ref().map(Vec::as_slice));
        let [(view, _), _] = material.run(|mut party| {
            let [first, last] = &weights[party.role() as usize][..] else { panic!("two vectors") };
            let x = input(&mut party, &self.x, RING)?;
            let z = multiply(&mut party, &FIRST, first, &x)?;
            let mut z = party.mask(&z, RING)?;
            let low = z.opened().iter().map(|z| z & ((1 << DROPPED) - 1)).collect();
            if exact {
                let truncated = truncate.evaluate(&mut party, &z)?;
                z = party.mask(&truncated, truncate.output())?;
            }
            let y = relu.evaluate(&mut party, &z)?;
            let y = party.mask(&y, RING)?;
            let y = multiply(&mut party, &LAST, last, &y)?;
            let output = party.reveal(&y, RING)?;
            Ok(output.map(|output| Seen { low, output: output.iter().map(|y| RING.signed(*y)).collect() }))
        });
        view.expect("the client's view")
    }
}

/// The weights behind each hidden unit that explain the differences between the outputs of all runs.
fn solve(runs: &[Seen]) -> Vec<[f64; OUTPUTS]> {
    let outputs: Vec<[f64; OUTPUTS]> =
        runs.iter().map(|run| std::array::from_fn(|k| (run.output[k] - runs[0].output[k]) as f64)).collect();
    // For each unit, in which runs it rounds up by the threshold found so far.
    let mut carries = vec![vec![0.0; runs.len()]; HIDDEN];
    let mut units: Vec<usize> = Vec::new();
    for _ in 0..40 {
        for unit in 0..HIDDEN {
            let others: Vec<usize> = units.iter().copied().filter(|other| *other != unit).collect();
            let (_, rest) = fit(&carries, &others, &outputs);
            if largest(&rest) < 1e-6 {
                continue;
            }
            let (threshold, gain) = best_threshold(runs, unit, &rest);
            carries[unit] = runs.iter().map(|run| f64::from(run.low[unit] < threshold)).collect();
            if gain > 0.0 && !units.contains(&unit) {
                units.push(unit);
            }
        }
        if largest(&fit(&carries, &units, &outputs).1) < 0.4 {
            break;
        }
    }
    let (factors, _) = fit(&carries, &units, &outputs);
    let mut weights = vec![[0.0; OUTPUTS]; HIDDEN];
    units.iter().zip(factors).for_each(|(unit, factor)| weights[*unit] = factor);
    weights
}

/// Where to cut a unit's low bits so that `rest` differs most between the two sides, and by how much.
fn best_threshold(runs: &[Seen], unit: usize, rest: &[[f64; OUTPUTS]]) -> (u64, f64) {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|run| runs[*run].low[unit]);
    let (count, mut sums) = (runs.len() as f64, [0.0; OUTPUTS]);
    let gains = order.iter().enumerate().take(runs.len() - 1).map(|(place, run)| {
        let below = (place + 1) as f64;
        (0..OUTPUTS).for_each(|k| sums[k] += rest[*run][k]);
        let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
        (runs[*run].low[unit] + 1, squares * count / (below * (count - below)))
    });
    gains.max_by(|one, other| one.1.total_cmp(&other.1)).expect("more than one run")
}

/// Least squares: factors of these units besides a constant, and what they leave of the outputs.
fn fit(
    carries: &[Vec<f64>],
    units: &[usize],
    outputs: &[[f64; OUTPUTS]],
) -> (Vec<[f64; OUTPUTS]>, Vec<[f64; OUTPUTS]>) {
    let ones = vec![1.0; outputs.len()];
    let columns: Vec<&Vec<f64>> = units.iter().map(|unit| &carries[*unit]).chain([&ones]).collect();
    let size = columns.len();
    let dot = |a: &[f64], b: &dyn Fn(usize) -> f64| a.iter().enumerate().map(|(i, a)| a * b(i)).sum::<f64>();
    // Normal equations beside their right sides, reduced to the identity.
    let mut rows: Vec<Vec<f64>> = columns
        .iter()
        .map(|a| {
            let left = columns.iter().map(|b| dot(a, &|i| b[i]));
            left.chain((0..OUTPUTS).map(|k| dot(a, &|i| outputs[i][k]))).collect()
        })
        .collect();
    for pivot in 0..size {
        let best = (pivot..size).max_by(|i, j| rows[*i][pivot].abs().total_cmp(&rows[*j][pivot].abs()));
        rows.swap(pivot, best.expect("a row"));
        if rows[pivot][pivot].abs() < 1e-6 {
            // A unit that carries in all runs or in none says nothing.
            rows[pivot].iter_mut().for_each(|entry| *entry = 0.0);
            continue;
        }
        let scale = rows[pivot][pivot];
        rows[pivot].iter_mut().for_each(|entry| *entry /= scale);
        let row = rows[pivot].clone();
        for (i, other) in rows.iter_mut().enumerate().filter(|(i, _)| *i != pivot) {
            let factor = if i == pivot { 0.0 } else { other[pivot] };
            other.iter_mut().zip(&row).for_each(|(entry, above)| *entry -= factor * above);
        }
    }
    let factors: Vec<[f64; OUTPUTS]> = rows.iter().map(|row| std::array::from_fn(|k| row[size + k])).collect();
    let left = |(i, output): (usize, &[f64; OUTPUTS])| {
        std::array::from_fn(|k| output[k] - columns.iter().zip(&factors).map(|(a, f)| a[i] * f[k]).sum::<f64>())
    };
    let rest = outputs.iter().enumerate().map(left).collect();
    (factors, rest)
}

fn largest(rest: &[[f64; OUTPUTS]]) -> f64 {
    rest.as_flattened().iter().fold(0.0, |largest, x| largest.max(x.abs()))
}

/// How many of the units that pass their ReLU have all their weights found, and how many there are.
fn recovered(victim: &Victim, runs: &[Seen]) -> (usize, usize) {
    let weights = solve(runs);
    let active: Vec<usize> = (0..HIDDEN).filter(|j| victim.hidden()[*j] >> DROPPED > 0).collect();
    let right =
        |j: &&usize| (0..OUTPUTS).all(|k| weights[**j][k].round() as i64 == victim.weights[1][OUTPUTS * **j + k]);
    (active.iter().filter(right).count(), active.len())
}

#[test]
fn exact_truncation_gives_every_run_the_same_output_and_the_solver_nothing() {
    let victim = Victim::new();
    let runs: Vec<Seen> = (0..RUNS as u64).map(|run| victim.run(run, true)).collect();
    assert!(runs.iter().all(|run| run.output == victim.expected()));
    assert_eq!(recovered(&victim, &runs).0, 0);
}

#[test]
fn one_bit_truncation_gives_away_the_weights_of_all_active_units() {
    let victim = Victim::new();
    let runs: Vec<Seen> = (0..RUNS as u64).map(|run| victim.run(run, false)).collect();
    let (right, active) = recovered(&victim, &runs);
    assert!(active >= 8 && right == active, "{right} of {active}");
}
