//! Windows that slide over images: which elements each output position of a pooling reads.

/// Geometry of a pooling over an image of `image` height and width with `positions` windows along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Output height and width.
    pub positions: [usize; 2],
    /// Window height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal step.
    pub stride: [usize; 2],
    /// Padding above and to the left.
    pub origin: [usize; 2],
    /// Distance between neighbouring elements of a window.
    pub dilation: [usize; 2],
}

impl Windows {
    /// For each output position in row-major order, the indices into one image plane of the elements that its window
    /// holds; positions on the padding hold none.
    pub fn elements(&self) -> Vec<Vec<usize>> {
        let [rows, columns] = [self.along(0), self.along(1)];
        rows.iter()
            .flat_map(|ys| columns.iter().map(move |xs| (ys, xs)))
            .map(|(ys, xs)| ys.iter().flat_map(|y| xs.iter().map(move |x| y * self.image[1] + x)).collect())
            .collect()
    }

    fn along(&self, axis: usize) -> Vec<Vec<usize>> {
        let inside = |at: usize| at.checked_sub(self.origin[axis]).filter(|at| *at < self.image[axis]);
        (0..self.positions[axis])
            .map(|position| {
                let start = position * self.stride[axis];
                (0..self.kernel[axis]).filter_map(|k| inside(start + k * self.dilation[axis])).collect()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_hold_fewer_elements() {
        let windows = Windows {
            image: [2, 3],
            positions: [1, 2],
            kernel: [3, 2],
            stride: [1, 2],
            origin: [1, 1],
            dilation: [1, 1],
        };
        assert_eq!(windows.elements(), [vec![0, 3], vec![1, 2, 4, 5]]);
    }
}
