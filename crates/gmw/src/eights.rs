//! Lookups in tables of eight entries of a bit, 64 of them at a time in registers.
//!
//! Planes hold a bit of 64 lookups in each word, as in [`crate::tables`].

/// A bit of 64 lookups for each number of three bits.
pub(crate) type Eight = [u64; 8];

/// Whether 0 to 7 and the number with these bits carry out of three bits.
pub(crate) fn first([low, middle, high]: [u64; 3]) -> Eight {
    let (both, either) = (middle & low, middle | low);
    [0, high & both, high & middle, high & either, high, high | both, high | middle, high | either]
}

/// Whether 0 to 3, the number with these bits and a carry carry out of two bits: first for the carry `carry`, then for its opposite.
pub(crate) fn next([low, high]: [u64; 2], carry: u64) -> Eight {
    let without = [0, high & low, high, high | low, !0];
    std::array::from_fn(|v| {
        let carry = if v < 4 { carry } else { !carry };
        without[v % 4] | carry & without[v % 4 + 1]
    })
}

/// Entry `v ^ by` of each lookup at `v`.
fn shifted(mut entries: Eight, by: [u64; 3]) -> Eight {
    for (bit, by) in by.into_iter().enumerate() {
        for v in (0..8).filter(|v| v >> bit & 1 == 0) {
            let other = v | 1 << bit;
            let swapped = (entries[v] ^ entries[other]) & by;
            entries[v] ^= swapped;
            entries[other] ^= swapped;
        }
    }
    entries
}

/// The answerer's shares of what is looked up, and the seven planes of its answer, one behind the other; `entries`: those of its tables,
/// `question`: what it was asked, `function`: the values of the function in a word.
pub(crate) fn answer(
    entries: [&[u64]; 8],
    question: [&[u64]; 3],
    function: impl Fn(usize) -> Eight,
) -> (Vec<u64>, Vec<u64>) {
    let words = entries[0].len();
    let (mut shares, mut answer) = (vec![0; words], vec![0; 7 * words]);
    for word in 0..words {
        let entries = shifted(entries.map(|plane| plane[word]), question.map(|plane| plane[word]));
        let function = function(word);
        shares[word] = entries[0] ^ function[0];
        for v in 1..8 {
            answer[(v - 1) * words + word] = entries[v] ^ function[v] ^ shares[word];
        }
    }
    (shares, answer)
}

/// The asker's shares of what is looked up: its entries, and those of the answer that it `wanted`.
pub(crate) fn take(received: &mut [u64], answer: [&[u64]; 7], wanted: [&[u64]; 3]) {
    for (word, received) in received.iter_mut().enumerate() {
        let entries = std::array::from_fn(|v| if v == 0 { 0 } else { answer[v - 1][word] });
        *received ^= shifted(entries, wanted.map(|plane| plane[word]))[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of a number in all lookups of a word.
    fn bits<const N: usize>(number: usize) -> [u64; N] {
        std::array::from_fn(|bit| ((number >> bit & 1) as u64).wrapping_neg())
    }

    #[test]
    fn functions_are_carries() {
        for x in 0..8 {
            for (v, carries) in first(bits(x)).into_iter().enumerate() {
                assert_eq!(carries, bits::<1>(usize::from(v + x >= 8))[0], "{v} + {x}");
            }
        }
        for (x, carry) in (0..4).flat_map(|x| [(x, 0), (x, 1)]) {
            for (v, carries) in next(bits(x), bits::<1>(carry)[0]).into_iter().enumerate() {
                let sum = v % 4 + x + (carry ^ (v / 4));
                assert_eq!(carries, bits::<1>(usize::from(sum >= 4))[0], "{v}, {x} and {carry}");
            }
        }
    }

    #[test]
    fn both_parties_shares_are_the_function_of_what_was_wanted() {
        // Of 64 lookups each has another number, choice and function.
        let plane = |seed: u64| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed).rotate_left(seed as u32) ^ seed << 40;
        let planes = |first: u64| std::array::from_fn::<u64, 8, _>(|i| plane(first + i as u64));
        let (entries, function) = (planes(3), planes(50));
        let (choice, wanted) = ([plane(91), plane(92), plane(93)], [plane(94), plane(95), plane(96)]);
        let question: [u64; 3] = std::array::from_fn(|i| choice[i] ^ wanted[i]);
        let mut received = [shifted(entries, choice)[0]];
        let (shares, answer) =
            answer(entries.each_ref().map(std::slice::from_ref), question.each_ref().map(std::slice::from_ref), |_| {
                function
            });
        let parts: [&[u64]; 7] = std::array::from_fn(|v| &answer[v..=v]);
        take(&mut received, parts, wanted.each_ref().map(std::slice::from_ref));
        assert_eq!(shares[0] ^ received[0], shifted(function, wanted)[0]);
    }
}
