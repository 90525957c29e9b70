//! Where elements lie by shape and strides.

/// How far each element lies from the first one, in elements, in row-major order.
///
/// ```
/// let offsets: Vec<i64> = oxmlx_sys::layout::offsets(&[2, 2], &[1, -3]).collect();
/// assert_eq!(offsets, [0, -3, 1, -2]);
/// ```
pub fn offsets<'a>(shape: &'a [i32], strides: &'a [i64]) -> impl Iterator<Item = i64> + 'a {
    let count: usize = shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).product();
    let mut index = vec![0i32; shape.len()];
    let mut at = 0i64;
    (0..count).map(move |_| {
        let here = at;
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            // One step past the last element may be further than 64 bits reach; the way back cancels it.
            at = at.wrapping_add(strides[axis]);
            if index[axis] < shape[axis] {
                break;
            }
            at = at.wrapping_sub(strides[axis].wrapping_mul(i64::from(shape[axis])));
            index[axis] = 0;
        }
        here
    })
}

/// The strides of a shape in row-major order without gaps, in elements.
///
/// ```
/// assert_eq!(oxmlx_sys::layout::row_major(&[2, 3, 4]), [12, 4, 1]);
/// ```
pub fn row_major(shape: &[i32]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].into());
    }
    strides
}
