//! Permutation networks: switches that each swap two wires or not, enough of them for every permutation.
//!
//! Waksman, "A Permutation Network" (Journal of the ACM 1968), for any number of wires as by Beauquier and Darrot, "On
//! Arbitrary Size Waksman Networks and Their Vulnerability" (2002): wires in pairs, a switch on each pair; the first
//! wires of all pairs through one network, the others through another; a switch on each pair again, but for one.
//! A network of `n` wires has the sum of `ceil(log2 i)` for `i` up to `n` switches, about `n log2 n - n`.

/// The switches of a network, first to last. Wires keep their places throughout.
pub(super) struct Network {
    wires: usize,
    switches: Vec<[u32; 2]>,
}

impl Network {
    /// The network on `wires` wires.
    pub fn new(wires: usize) -> Self {
        let mut switches = Vec::with_capacity(switches(wires));
        place(&(0..wires as u32).collect::<Vec<_>>(), &mut switches);
        Self { wires, switches }
    }

    /// The pairs of wires that are swapped or not, in this order; backwards for the inverse.
    pub fn switches(&self) -> &[[u32; 2]] {
        &self.switches
    }

    /// Which switches swap, so that wire `i` ends with what wire `order[i]` began with.
    ///
    /// # Panics
    /// If `order` is not a permutation of the wires.
    pub fn route(&self, order: &[usize]) -> Vec<bool> {
        assert_eq!(order.len(), self.wires, "an order of another number of wires");
        let mut settings = Vec::with_capacity(self.switches.len());
        append_settings(order, &mut settings);
        settings
    }
}

/// How many switches a network of so many wires has.
pub(super) fn switches(wires: usize) -> usize {
    let level = wires.next_power_of_two().trailing_zeros() as usize;
    // Sum of ceil(log2 i) for i up to `wires`.
    wires * level + 1 - wires.next_power_of_two().max(1)
}

fn place(wires: &[u32], switches: &mut Vec<[u32; 2]>) {
    if wires.len() < 2 {
        return;
    }
    let (pairs, rest) = wires.as_chunks::<2>();
    switches.extend(pairs);
    let upper: Vec<u32> = pairs.iter().map(|pair| pair[0]).collect();
    let lower: Vec<u32> = pairs.iter().map(|pair| pair[1]).chain(rest.iter().copied()).collect();
    place(&upper, switches);
    place(&lower, switches);
    switches.extend(&pairs[..output_switches(wires.len())]);
}

/// Switches behind the two inner networks: on every pair, but not on the last of an even number of wires.
fn output_switches(wires: usize) -> usize {
    (wires - 1) / 2
}

/// Appends the settings for `order` as [`place`] appends switches.
fn append_settings(order: &[usize], settings: &mut Vec<bool>) {
    let wires = order.len();
    if wires < 2 {
        return;
    }
    let pairs = wires / 2;
    let inverse = inverse(order);
    let lower = loops(order, &inverse);
    settings.extend((0..pairs).map(|pair| lower[inverse[2 * pair]]));
    let (mut above, mut below) = (Vec::with_capacity(pairs), Vec::with_capacity(wires - pairs));
    for pair in 0..pairs {
        let swapped = usize::from(lower[2 * pair]);
        above.push(order[2 * pair + swapped] / 2);
        below.push(order[2 * pair + 1 - swapped] / 2);
    }
    below.extend((wires % 2 == 1).then(|| order[wires - 1] / 2));
    append_settings(&above, settings);
    append_settings(&below, settings);
    settings.extend((0..output_switches(wires)).map(|pair| lower[2 * pair]));
}

/// For each output whether it comes through the lower network. The two outputs of a pair come through different ones, and
/// so do those that the two inputs of a pair go to: one choice decides a whole loop. The last output comes through the
/// lower one, as it has no switch behind it.
fn loops(order: &[usize], inverse: &[usize]) -> Vec<bool> {
    let paired = order.len() / 2 * 2;
    let mut lower: Vec<Option<bool>> = vec![None; order.len()];
    for start in (0..order.len()).rev() {
        let mut output = start;
        while lower[output].is_none() {
            lower[output] = Some(true);
            let input = order[output];
            if input >= paired {
                break;
            }
            let above = inverse[input ^ 1];
            lower[above] = Some(false);
            output = above ^ 1;
        }
    }
    lower.into_iter().map(|lower| lower == Some(true)).collect()
}

/// Where each element of a permutation is.
pub(super) fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &element)| inverse[element] = place);
    inverse
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};

    use super::super::arrangement::permutation;
    use super::*;

    fn check(order: &[usize]) {
        let network = Network::new(order.len());
        let settings = network.route(order);
        assert_eq!(network.switches().len(), switches(order.len()));
        assert_eq!(settings.len(), switches(order.len()));
        let mut wires: Vec<usize> = (0..order.len()).collect();
        for (&[a, b], _) in network.switches().iter().zip(&settings).filter(|(_, swaps)| **swaps) {
            wires.swap(a as usize, b as usize);
        }
        assert_eq!(wires, order);
    }

    /// All permutations of `left` behind `order`.
    fn all(order: &mut Vec<usize>, left: &mut Vec<usize>) {
        if left.is_empty() {
            check(order);
        }
        for at in 0..left.len() {
            order.push(left.remove(at));
            all(order, left);
            left.insert(at, order.pop().expect("just pushed"));
        }
    }

    #[test]
    fn every_permutation_of_up_to_seven_wires_has_its_settings() {
        (0..8).for_each(|wires| all(&mut Vec::new(), &mut (0..wires).collect()));
    }

    #[test]
    fn larger_networks_permute_as_asked() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([3; 16]));
        for wires in [8, 9, 31, 64, 100, 1000, 4097] {
            check(&permutation(wires, &mut prg));
        }
    }

    #[test]
    fn there_are_as_few_switches_as_waksman_says() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 16].map(switches), [0, 0, 1, 3, 5, 8, 17, 49]);
    }
}
