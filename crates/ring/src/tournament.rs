//! Knockout tournaments, in which pairs of neighbours meet level by level: how maxima of many values are found.

/// Which of several equal largest elements is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one with the lowest index.
    First,
    /// The one with the highest index.
    Last,
}

/// Number of pairs that meet at each level of tournaments between groups of these sizes, first level first.
pub fn matches(sizes: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut sizes: Vec<usize> = sizes.into_iter().collect();
    let mut levels = Vec::new();
    while sizes.iter().any(|&size| size > 1) {
        levels.push(sizes.iter().map(|size| size / 2).sum());
        sizes.iter_mut().for_each(|size| *size = size.div_ceil(2));
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_but_the_winners_loses_once() {
        assert_eq!(matches([]), []);
        assert_eq!(matches([1, 1]), []);
        assert_eq!(matches([9, 4, 1]), [6, 3, 1, 1]);
        for size in 1..70_usize {
            let levels = matches([size]);
            assert_eq!(levels.iter().sum::<usize>(), size - 1);
            assert_eq!(levels.len() as u32, size.next_power_of_two().ilog2());
        }
    }
}
