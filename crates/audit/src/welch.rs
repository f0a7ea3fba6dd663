//! Whether the time of some code depends on its secret: the test of dudect (Reparaz, Balasch and Verbauwhede, DATE 2017).
//!
//! A fixed secret and random ones come in random order, so that whatever else the machine does falls on both alike.
//! Welch's t statistic of the two classes of times grows with the square root of their number if their means differ, and stays
//! small if not. Slow outliers are the machine's own, so the statistic is also taken of times below several quantiles.

/// Above this the means differ beyond doubt; dudect takes 10 for "definitely not constant time".
pub const LIMIT: f64 = 10.0;

/// Quantiles above which times are left out, in turn; the last leaves out none.
const QUANTILES: [f64; 5] = [0.5, 0.75, 0.9, 0.99, 1.0];

/// The largest |t| over the crops of times of the two classes, in any unit.
pub fn statistic(fixed: &[u64], random: &[u64]) -> f64 {
    let mut all: Vec<u64> = fixed.iter().chain(random).copied().collect();
    all.sort_unstable();
    let crop = |quantile: f64| {
        let limit = all[((all.len() - 1) as f64 * quantile) as usize];
        let below = |times: &[u64]| times.iter().copied().filter(|&time| time <= limit).collect::<Vec<_>>();
        t(&below(fixed), &below(random)).abs()
    };
    QUANTILES.into_iter().map(crop).fold(0.0, f64::max)
}

fn t(first: &[u64], second: &[u64]) -> f64 {
    let [(m1, v1), (m2, v2)] = [first, second].map(moments);
    let spread = (v1 / first.len() as f64 + v2 / second.len() as f64).sqrt();
    if spread > 0.0 { (m1 - m2) / spread } else { 0.0 }
}

/// Mean and sample variance; zero where there are too few values for either.
fn moments(values: &[u64]) -> (f64, f64) {
    let count = values.len() as f64;
    if values.len() < 2 {
        return (values.first().map_or(0.0, |x| *x as f64), 0.0);
    }
    let mean = values.iter().map(|x| *x as f64).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (*x as f64 - mean).powi(2)).sum();
    (mean, squares / (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_that_differ_are_told_from_means_that_do_not() {
        let noise = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let times = |shift: u64| (0..4000).map(|i| 1000 + noise(i + 17 * shift) + shift).collect::<Vec<u64>>();
        assert!(statistic(&times(0), &times(0)) < 1.0);
        assert!(statistic(&times(0), &times(5)) > LIMIT);
    }
}
