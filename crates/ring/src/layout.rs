//! Moving the elements of row-major tensors: each operation acts alike on a plaintext and on a share.

/// Row-major strides of `shape`, in elements.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Gathers `shape` elements of `x`, where a step along output axis `i` moves `steps[i]` elements from `origin`.
fn gather<T: Copy>(x: &[T], shape: &[usize], origin: isize, steps: &[isize]) -> Vec<T> {
    let mut out = Vec::with_capacity(shape.iter().product());
    let Some((&row, outer)) = shape.split_last() else {
        return vec![x[origin as usize]];
    };
    let mut index = vec![0; outer.len()];
    let (mut at, step) = (origin, steps[outer.len()]);
    'rows: loop {
        match step {
            1 => out.extend_from_slice(&x[at as usize..][..row]),
            _ => out.extend((0..row as isize).map(|i| x[(at + i * step) as usize])),
        }
        for axis in (0..outer.len()).rev() {
            index[axis] += 1;
            at += steps[axis];
            if index[axis] < shape[axis] {
                continue 'rows;
            }
            at -= steps[axis] * shape[axis] as isize;
            index[axis] = 0;
        }
        return out;
    }
}

/// Output axis `i` is input axis `perm[i]`.
pub fn transpose<T: Copy>(x: &[T], shape: &[usize], perm: &[usize]) -> Vec<T> {
    let from = strides(shape);
    let out: Vec<usize> = perm.iter().map(|&axis| shape[axis]).collect();
    let steps: Vec<isize> = perm.iter().map(|&axis| from[axis] as isize).collect();
    gather(x, &out, 0, &steps)
}

/// Numpy broadcasting of `shape` to `target`.
pub fn broadcast<T: Copy>(x: &[T], shape: &[usize], target: &[usize]) -> Vec<T> {
    let from = strides(shape);
    let mut steps = vec![0; target.len()];
    let offset = target.len() - shape.len();
    for axis in 0..shape.len() {
        if shape[axis] == target[axis + offset] {
            steps[axis + offset] = from[axis] as isize;
        }
    }
    gather(x, target, 0, &steps)
}

/// Elements `starts[i] + j * steps[i]` along each axis `i`, for `j` up to the output's size `out[i]`.
pub fn slice<T: Copy>(x: &[T], shape: &[usize], starts: &[i64], steps: &[i64], out: &[usize]) -> Vec<T> {
    let from = strides(shape);
    let origin = starts.iter().zip(&from).map(|(start, stride)| *start as isize * *stride as isize).sum();
    let steps: Vec<isize> = steps.iter().zip(&from).map(|(step, stride)| *step as isize * *stride as isize).collect();
    gather(x, out, origin, &steps)
}

/// Joins tensors, given with their shapes, along `axis`.
pub fn concat<T: Copy>(parts: &[(&[T], &[usize])], axis: usize) -> Vec<T> {
    let outer: usize = parts[0].1[..axis].iter().product();
    let mut out = Vec::with_capacity(parts.iter().map(|(x, _)| x.len()).sum());
    for block in 0..outer {
        for (x, shape) in parts {
            let inner: usize = shape[axis..].iter().product();
            out.extend_from_slice(&x[block * inner..(block + 1) * inner]);
        }
    }
    out
}

/// `x` amid `fill`: `before` elements ahead of it on each axis, in a tensor of shape `out`.
pub fn pad<T: Copy>(x: &[T], shape: &[usize], before: &[usize], out: &[usize], fill: T) -> Vec<T> {
    let mut padded = vec![fill; out.iter().product()];
    let Some((&row, outer)) = shape.split_last() else {
        return x.to_vec();
    };
    let to = strides(out);
    let mut index = vec![0; outer.len()];
    for chunk in x.chunks(row) {
        let start: usize = (0..outer.len()).map(|axis| (index[axis] + before[axis]) * to[axis]).sum();
        let start = start + before[outer.len()];
        padded[start..start + row].copy_from_slice(chunk);
        for axis in (0..outer.len()).rev() {
            index[axis] += 1;
            if index[axis] < outer[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let x = [1, 2, 3, 4, 5, 6];
        assert_eq!(transpose(&x, &[2, 3], &[1, 0]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(transpose(&x, &[1, 2, 3], &[2, 0, 1]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(broadcast(&[1, 2], &[2, 1], &[2, 2, 2]), [1, 1, 2, 2, 1, 1, 2, 2]);
        assert_eq!(slice(&x, &[2, 3], &[1, 2], &[-1, -2], &[2, 2]), [6, 4, 3, 1]);
        assert_eq!(concat(&[(&x[..2], &[2, 1]), (&x[2..], &[2, 2])], 1), [1, 3, 4, 2, 5, 6]);
        assert_eq!(pad(&x[..4], &[2, 2], &[0, 1], &[3, 3], 0), [0, 1, 2, 0, 3, 4, 0, 0, 0]);
        assert_eq!(pad(&[7], &[], &[], &[], 0), [7]);
        assert_eq!(transpose(&[7], &[], &[]), [7]);
    }
}
