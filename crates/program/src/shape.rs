//! Shapes of results, and limits on what a program may ask for.

use crate::operation::Window;

type Shape = Vec<usize>;

/// Longest kernel along an axis, of a convolution or a pooling: planning takes time by it.
const MAX_KERNEL: usize = 1 << 10;

/// Highest degree of a polynomial that a program may have.
const MAX_DEGREE: usize = 1 << 10;

/// Binary logarithms of the fewest and most lines of a function.
const MIN_INDEX_BITS: u32 = 6;
const MAX_INDEX_BITS: u32 = 12;

/// Beyond the smallest argument of a function of lines.
const MAX_LOW: u64 = 1 << 50;

/// Most levels of a complete tree.
const MAX_DEPTH: u32 = 16;

/// Most elements that all windows of one pooling may read together, so that a program from a peer cannot keep a client
/// busy for long; ImageNet models read some millions.
const MAX_READS: usize = 1 << 28;

/// Most multiplications of one product of two values, which both parties compute; attention over 2048 tokens with 32 heads
/// takes a fourth.
const MAX_TERMS: usize = 1 << 36;

pub(crate) fn convolution(x: &[usize], weights: &[usize; 4], window: &Window, groups: usize) -> Result<Shape, String> {
    let [n, c, h, w] = image(x)?;
    let [out, per_group, ..] = *weights;
    if groups == 0 || per_group.checked_mul(groups) != Some(c) || !out.is_multiple_of(groups) || out == 0 {
        return Err(format!("weights {weights:?} in {groups} groups do not fit {c} channels"));
    }
    let [oh, ow] = slide(window, [h, w])?;
    Ok(vec![n, out, oh, ow])
}

/// The shape of a product with weights `[inner, columns]`.
pub(crate) fn dense(x: &[usize], [inner, columns]: [usize; 2]) -> Result<Shape, String> {
    match x {
        &[rows, k] if k == inner && columns > 0 => Ok(vec![rows, columns]),
        _ => Err(format!("weights [{inner}, {columns}] do not fit an input of shape {x:?}")),
    }
}

/// Whether a polynomial may have this degree.
pub(crate) fn polynomial(degree: usize) -> Result<(), String> {
    match degree {
        1..=MAX_DEGREE => Ok(()),
        _ => Err(format!("a polynomial of degree {degree}")),
    }
}

/// Whether a function of lines may have such a table.
pub(crate) fn lines(low: i64, [bits, index_bits]: [u32; 2]) -> Result<(), String> {
    let fits = (MIN_INDEX_BITS..=MAX_INDEX_BITS).contains(&index_bits) && index_bits < bits;
    match fits && low.unsigned_abs() < MAX_LOW {
        true => Ok(()),
        false => Err(format!("a table of 2^{index_bits} lines over {bits} bits from {low} on")),
    }
}

/// The shape of a pooling. A window that hangs over the edge is fine as long as it has an element on the image, so the number of
/// positions is the file's choice (ONNX's ceil_mode); each is checked to hold an element.
pub(crate) fn pooling(x: &[usize], window: &Window, declared: &[usize]) -> Result<Shape, String> {
    let [n, c, h, w] = image(x)?;
    let [out_n, out_c, oh, ow] = image(declared)?;
    let reads = declared.iter().chain(&window.kernel).try_fold(1usize, |product, &size| product.checked_mul(size));
    if reads.is_none_or(|reads| reads > MAX_READS) {
        return Err(format!("windows of {:?} at {declared:?} positions are too many to read", window.kernel));
    }
    for (axis, (size, count)) in [(h, oh), (w, ow)].into_iter().enumerate() {
        covered(window, axis, size, count)?;
    }
    same(&[out_n, out_c], &[n, c]).map(|_| declared.to_vec())
}

/// Whether an average has one factor, or one for each position.
pub(crate) fn factors(count: usize, declared: &[usize]) -> Result<(), String> {
    let [_, _, oh, ow] = image(declared)?;
    match count == 1 || Some(count) == oh.checked_mul(ow) {
        true => Ok(()),
        false => Err(format!("{count} factors for {oh} x {ow} positions")),
    }
}

/// The declared shape, if it has as many elements.
pub(crate) fn reshape(x: &[usize], declared: &[usize]) -> Result<Shape, String> {
    match x.iter().product::<usize>() == declared.iter().product::<usize>() {
        true => Ok(declared.to_vec()),
        false => Err(format!("{x:?} has another number of elements than {declared:?}")),
    }
}

/// The shape with its axes permuted.
pub(crate) fn transpose(x: &[usize], perm: &[usize]) -> Result<Shape, String> {
    let mut sorted = perm.to_vec();
    sorted.sort_unstable();
    match sorted.into_iter().eq(0..x.len()) {
        true => Ok(perm.iter().map(|&axis| x[axis]).collect()),
        false => Err(format!("{perm:?} is no permutation of {} axes", x.len())),
    }
}

/// The shape with elements around each axis.
pub(crate) fn pad(x: &[usize], before: &[usize], after: &[usize]) -> Result<Shape, String> {
    if before.len() != x.len() || after.len() != x.len() {
        return Err("padding of another rank".into());
    }
    x.iter()
        .zip(before.iter().zip(after))
        .map(|(size, (b, a))| size.checked_add(*b)?.checked_add(*a))
        .collect::<Option<_>>()
        .ok_or_else(|| "padding overflows".into())
}

/// The shape of positions along an axis.
pub(crate) fn argmax(x: &[usize], axis: usize, keepdims: bool) -> Result<Shape, String> {
    let mut shape = x.to_vec();
    if axis >= shape.len() {
        return Err(format!("axis {axis} of {} axes", shape.len()));
    }
    shape[axis] = 1;
    if !keepdims {
        shape.remove(axis);
    }
    Ok(shape)
}

/// The shape of products of matrices, a pair for each index of the first axis.
pub(crate) fn matmul(x: &[usize], y: &[usize]) -> Result<Shape, String> {
    let misfit = || format!("{x:?} and {y:?} are no pairs of matrices that multiply");
    let (&[batch, rows, inner], &[other_batch, depth, columns]) = (x, y) else { return Err(misfit()) };
    let terms = [batch, rows, inner, columns].iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    match terms {
        _ if batch != other_batch || inner != depth => Err(misfit()),
        Some(..=MAX_TERMS) => Ok(vec![batch, rows, columns]),
        _ => Err(format!("the products of {x:?} with {y:?} take more than {MAX_TERMS} multiplications")),
    }
}

/// One leaf more for each tree than it has nodes.
pub(crate) fn leaves(x: &[usize], depth: u32) -> Result<Shape, String> {
    match x {
        [rows, nodes] if (1..=MAX_DEPTH).contains(&depth) && nodes.is_multiple_of((1 << depth) - 1) => {
            Ok(vec![*rows, nodes + nodes / ((1 << depth) - 1)])
        }
        _ => Err(format!("{x:?} is no row of complete trees of depth {depth}")),
    }
}

fn image(shape: &[usize]) -> Result<[usize; 4], String> {
    shape.try_into().map_err(|_| format!("an image has 4 axes, not {shape:?}"))
}

pub(crate) fn same(a: &[usize], b: &[usize]) -> Result<Shape, String> {
    if a == b { Ok(a.to_vec()) } else { Err(format!("shapes {a:?} and {b:?} differ")) }
}

pub(crate) fn broadcasts(from: &[usize], to: &[usize]) -> Result<(), String> {
    let fits = from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(|(f, t)| *f == 1 || f == t);
    if fits { Ok(()) } else { Err(format!("{from:?} does not broadcast to {to:?}")) }
}

/// Output positions of a convolution along height and width.
fn slide(window: &Window, size: [usize; 2]) -> Result<[usize; 2], String> {
    let mut positions = [0; 2];
    for axis in 0..2 {
        let reach = reach(window, axis)?;
        let padded = size[axis]
            .checked_add(window.padding[axis])
            .and_then(|sum| sum.checked_add(window.padding[axis + 2]))
            .ok_or("padding overflows")?;
        let free = padded.checked_sub(reach).ok_or("the kernel is larger than the padded image")?;
        positions[axis] = free / window.stride[axis] + 1;
    }
    Ok(positions)
}

/// Elements from the first to the last of the window along `axis`.
fn reach(window: &Window, axis: usize) -> Result<usize, String> {
    let (kernel, dilation) = (window.kernel[axis], window.dilation[axis]);
    if kernel == 0 || dilation == 0 || window.stride[axis] == 0 {
        return Err("kernel, stride and dilation are at least 1".into());
    }
    if kernel > MAX_KERNEL {
        return Err(format!("a kernel of {kernel}, more than {MAX_KERNEL}"));
    }
    (kernel - 1).checked_mul(dilation).and_then(|span| span.checked_add(1)).ok_or_else(|| "the kernel overflows".into())
}

/// Checks that each of `count` window positions along `axis` holds at least one of `size` elements, in closed form.
fn covered(window: &Window, axis: usize, size: usize, count: usize) -> Result<(), String> {
    reach(window, axis)?;
    let (kernel, dilation, padding) = (window.kernel[axis], window.dilation[axis], window.padding[axis]);
    let beside = |position: usize| Err(format!("window {position} of axis {axis} holds no element of the image"));
    // The first window has most of its elements on the padding before the image. The others have an element on the image,
    // too, if elements are no further apart than the image is long.
    if padding.div_ceil(dilation) >= kernel {
        return beside(0);
    }
    if padding > 0 && dilation > size {
        return Err(format!("a dilation of {dilation} steps over an image of {size} on axis {axis} with padding"));
    }
    // The last window begins furthest behind the image's end.
    let last = count.saturating_sub(1);
    let start = last.checked_mul(window.stride[axis]).ok_or("the stride overflows")?;
    if start.saturating_sub(padding) >= size { beside(last) } else { Ok(()) }
}

pub(crate) fn slice(x: &[usize], starts: &[i64], ends: &[i64], steps: &[i64]) -> Result<Shape, String> {
    if [starts.len(), ends.len(), steps.len()] != [x.len(); 3] {
        return Err("a slice of another rank".into());
    }
    let axis = |i: usize| -> Option<usize> {
        let (size, start, end, step) = (x[i] as i64, starts[i], ends[i], steps[i]);
        let inside = (0..size).contains(&start) && (-1..=size).contains(&end);
        let span = if step > 0 { end - start } else { start - end };
        let count = (inside && step != 0 && step != i64::MIN && span > 0).then(|| (span - 1) / step.abs() + 1)?;
        usize::try_from(count).ok()
    };
    (0..x.len()).map(axis).collect::<Option<_>>().ok_or_else(|| format!("the slice leaves the tensor {x:?}"))
}

pub(crate) fn concat(inputs: &[&[usize]], axis: usize) -> Result<Shape, String> {
    let mut shape = inputs[0].to_vec();
    if axis >= shape.len() {
        return Err(format!("axis {axis} of {} axes", shape.len()));
    }
    for other in &inputs[1..] {
        let agrees = other.len() == shape.len() && (0..shape.len()).all(|i| i == axis || other[i] == shape[i]);
        if !agrees {
            return Err(format!("{other:?} cannot be joined to {shape:?} along axis {axis}"));
        }
        shape[axis] = shape[axis].checked_add(other[axis]).ok_or("the sizes overflow")?;
    }
    Ok(shape)
}
