//! What MLX leaves undefined and oxmlx does not: rows A05 to A15 and what is like them.

use oxmlx::{Array, Dtype, Error, ErrorKind, fft, linalg, ops, random, transforms};

const FAR: [i32; 2] = [100_000_000, -100_000_000];

fn matrix() -> Array {
    Array::matrix(&[[1i32, 2, 3], [4, 5, 6]]).unwrap()
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

/// Row A05.
#[test]
fn seeds_set_by_the_caller_reach_a_worker_thread() {
    let draw = |seed| {
        random::seed(seed);
        std::thread::spawn(|| random::uniform(4, Dtype::Float32, None).unwrap().to_vec::<f32>().unwrap())
            .join()
            .unwrap()
    };
    let first: Vec<_> = (1..=3).map(draw).collect();
    let again: Vec<_> = (1..=3).map(draw).collect();
    assert_eq!(first, again);
    assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
}

/// Row A07.
#[test]
fn cholesky_of_no_rows_has_no_rows() {
    let l = linalg::cholesky(&Array::zeros::<f32>((0, 0)).unwrap(), false).unwrap();
    assert!(l.to_vec::<f32>().unwrap().is_empty());
    assert_eq!(l.shape(), [0, 0]);
}

/// Row A11.
#[test]
fn an_axis_far_outside_is_an_error() {
    let (a, i) = (Array::zeros::<f32>((2, 3, 4)).unwrap(), Array::zeros::<i32>((2, 3, 4)).unwrap());
    assert_eq!(kind(ops::take_along_axis(&a, &i, -100)), ErrorKind::Axis);
    assert_eq!(kind(ops::take(&a, &i, i32::MIN)), ErrorKind::Axis);
    assert_eq!(kind(ops::put_along_axis(&a, &i, &a, 3)), ErrorKind::Axis);
}

/// Row A12.
#[test]
fn indices_far_outside_are_clamped() {
    let far = Array::vector(&FAR).unwrap();
    assert_eq!(ops::take(&matrix(), &far, 1).unwrap().to_vec::<i32>().unwrap(), [3, 1, 6, 4]);
    assert_eq!(ops::take_all(&matrix(), &far).unwrap().to_vec::<i32>().unwrap(), [6, 1]);
    let places = ops::broadcast_to(&far, (2, 2)).unwrap();
    assert_eq!(ops::take_along_axis(&matrix(), &places, 1).unwrap().to_vec::<i32>().unwrap(), [3, 1, 6, 4]);
    let nine = Array::scalar(9i32).unwrap();
    assert_eq!(ops::put_along_axis(&matrix(), &places, &nine, 1).unwrap().to_vec::<i32>().unwrap(), [9, 2, 9, 9, 5, 9]);
    assert_eq!(
        ops::scatter_add_axis(&matrix(), &places, &nine, 1).unwrap().to_vec::<i32>().unwrap(),
        [10, 2, 12, 13, 5, 15]
    );
    let rows = Array::from_slice(&[7i32; 6], (2, 1, 3)).unwrap();
    let scattered = ops::scatter(&matrix(), std::slice::from_ref(&far), &rows, &[0]).unwrap();
    assert_eq!(scattered.to_vec::<i32>().unwrap(), [7; 6]);
    let gathered = ops::gather(&matrix(), std::slice::from_ref(&far), &[1], &[2, 2]).unwrap();
    assert_eq!(gathered.to_vec::<i32>().unwrap(), [2, 3, 5, 6, 1, 2, 4, 5]);
    for narrow in [Dtype::Int64, Dtype::Uint32, Dtype::Uint64] {
        let up = ops::astype(&Array::vector(&[FAR[0]]).unwrap(), narrow).unwrap();
        assert_eq!(ops::take(&matrix(), &up, 1).unwrap().to_vec::<i32>().unwrap(), [3, 6]);
    }
    let narrow = Array::vector(&[127i8, -128]).unwrap();
    assert_eq!(ops::take(&matrix(), &narrow, 1).unwrap().to_vec::<i32>().unwrap(), [3, 1, 6, 4]);
}

/// Row A12.
#[test]
fn dynamic_slices_far_outside_are_clamped() {
    for (start, expected) in FAR.into_iter().zip([[2, 3], [1, 2]]) {
        let a = Array::vector(&[1i32, 2, 3]).unwrap();
        let start = Array::vector(&[start]).unwrap();
        assert_eq!(ops::slice_dynamic(&a, &start, &[0], &[2]).unwrap().to_vec::<i32>().unwrap(), expected);
        let written = ops::slice_update_dynamic(&a, &Array::vector(&[9i32, 9]).unwrap(), &start, &[0]).unwrap();
        let expected = if expected[0] == 2 { [1, 9, 9] } else { [9, 9, 3] };
        assert_eq!(written.to_vec::<i32>().unwrap(), expected);
    }
}

/// Row A12.
#[test]
fn strided_views_that_reach_outside_are_errors() {
    let a = matrix();
    assert_eq!(kind(ops::as_strided(&a, 2, &[100_000_000], 0)), ErrorKind::Index);
    assert_eq!(kind(ops::as_strided(&a, 2, &[-100_000_000], 0)), ErrorKind::Index);
    assert_eq!(kind(ops::as_strided(&a, 2, &[1], 5)), ErrorKind::Index);
    assert_eq!(kind(ops::as_strided(&a, i32::MAX, &[i64::MAX], usize::MAX)), ErrorKind::Index);
    assert_eq!(ops::as_strided(&a, 3, &[-2], 4).unwrap().to_vec::<i32>().unwrap(), [5, 3, 1]);
}

#[test]
fn an_index_into_nothing_is_an_error() {
    let (none, i) = (Array::zeros::<f32>((0, 3)).unwrap(), Array::vector(&[0i32]).unwrap());
    assert_eq!(kind(ops::take(&none, &i, 0)), ErrorKind::Index);
    assert_eq!(kind(ops::take_all(&none, &i)), ErrorKind::Index);
    assert_eq!(kind(ops::take_index(&matrix(), 2, 0)), ErrorKind::Index);
    assert_eq!(kind(ops::take(&matrix(), &Array::vector(&[0.0f32]).unwrap(), 0)), ErrorKind::Dtype);
}

/// Row A13.
#[test]
fn integer_division_without_a_value_has_one() {
    let a = Array::vector(&[i32::MIN, 7, -7, 0]).unwrap();
    let b = Array::vector(&[-1i32, 0, 0, 0]).unwrap();
    assert_eq!(ops::floor_divide(&a, &b).unwrap().to_vec::<i32>().unwrap(), [i32::MIN, 0, 0, 0]);
    assert_eq!(ops::remainder(&a, &b).unwrap().to_vec::<i32>().unwrap(), [0; 4]);
    let (a, b) = (Array::scalar(i64::MIN).unwrap(), Array::scalar(-1i64).unwrap());
    assert_eq!(ops::remainder(&a, &b).unwrap().item::<i64>().unwrap(), 0);
    assert_eq!(ops::floor_divide(&a, &b).unwrap().item::<i64>().unwrap(), i64::MIN);
    let (q, r) = ops::divmod(&a, &b).unwrap();
    assert_eq!((q.item::<i64>().unwrap(), r.item::<i64>().unwrap()), (i64::MIN, 0));
    for zero in [Dtype::Bool, Dtype::Uint8, Dtype::Int8, Dtype::Uint16, Dtype::Int16, Dtype::Uint32, Dtype::Uint64] {
        let (x, zero) = (Array::full(2, 5u8).unwrap().astype(zero).unwrap(), ops::zeros(2, zero).unwrap());
        for q in [ops::floor_divide(&x, &zero).unwrap(), ops::remainder(&x, &zero).unwrap()] {
            assert_eq!(q.astype(Dtype::Int32).unwrap().to_vec::<i32>().unwrap(), [0, 0], "{:?}", zero.dtype());
        }
    }
}

#[test]
fn integer_division_that_has_a_value_keeps_it() {
    let values: Vec<i32> = vec![-9, -7, -1, 0, 1, 7, 9];
    for b in [-4, -3, -1, 1, 2, 5] {
        let a = Array::vector(&values).unwrap();
        let by = |b: Array| ops::remainder(&a, &b).unwrap().to_vec::<i32>().unwrap();
        let expected: Vec<i32> = values.iter().map(|a| ((a % b) + b) % b).collect();
        // A constant and an array of the same value take different ways.
        assert_eq!(by(Array::scalar(b).unwrap()), expected, "modulo {b}");
        assert_eq!(by(Array::full(7, b).unwrap()), expected, "modulo {b}");
    }
}

#[test]
fn powers_and_shifts_without_a_value_have_one() {
    let (a, b) =
        (Array::vector(&[2i32, 1, -1, -1, 0, 3]).unwrap(), Array::vector(&[-1i32, -5, -2, -3, -1, 4]).unwrap());
    assert_eq!(ops::power(&a, &b).unwrap().to_vec::<i32>().unwrap(), [0, 1, 1, -1, 0, 81]);
    let one = Array::vector(&[1i32, 1, 1]).unwrap();
    let far = Array::vector(&[32i32, 33, -1]).unwrap();
    assert_eq!(ops::left_shift(&one, &far).unwrap().to_vec::<i32>().unwrap(), [1, 2, i32::MIN]);
}

/// Row A14.
#[test]
fn no_groups_are_an_error() {
    assert_eq!(kind(oxmlx::quantize::Affine::new(0, 4)), ErrorKind::Group);
    assert_eq!(kind(oxmlx::quantize::Affine::new(32, 0)), ErrorKind::Group);
    // There is no other way to say how an array is quantized, or is to be dequantized.
    assert_eq!(kind(oxmlx::quantize::Affine::new(0, 0)), ErrorKind::Group);
    let x = Array::zeros::<f32>((1, 4, 2)).unwrap();
    assert_eq!(kind(ops::conv1d(&x, &x, ops::Conv::new().groups(0))), ErrorKind::Group);
    assert_eq!(kind(ops::conv1d(&x, &x, ops::Conv::new().stride([0]))), ErrorKind::InvalidArgument);
    assert_eq!(kind(ops::conv_transpose1d(&x, &x, ops::Conv::new().dilation([0]))), ErrorKind::InvalidArgument);
    let general = ops::ConvGeneral { groups: Some(0), ..Default::default() };
    assert_eq!(kind(ops::conv_general(&x, &x, &general)), ErrorKind::Group);
}

/// Row A15.
#[test]
fn sizes_over_what_mlx_counts_are_errors() {
    let wide = ops::broadcast_to(&Array::scalar(0u8).unwrap(), (1 << 30, 2)).unwrap();
    assert_eq!(kind(ops::flatten(&wide, 0, -1)), ErrorKind::Shape);
    assert_eq!(kind(ops::tile(&wide, &[2, 1])), ErrorKind::Shape);
    assert_eq!(kind(ops::repeat(&wide, 2)), ErrorKind::Shape);
    assert_eq!(kind(ops::concatenate(&[wide.clone(), wide], 0)), ErrorKind::Shape);
    assert_eq!(kind(ops::pad(&matrix(), &[(i32::MAX, 1), (0, 0)], None, ops::PadMode::Constant)), ErrorKind::Shape);
    assert_eq!(kind(ops::reshape(&matrix(), [i32::MAX; 4])), ErrorKind::Shape);
    assert_eq!(kind(ops::zeros((-1, 2), Dtype::Float32)), ErrorKind::Shape);
}

/// Row A15.
#[test]
fn a_roll_by_any_number_is_defined() {
    let a = Array::vector(&[1i32, 2, 3]).unwrap();
    let expected = |shift: i64| -> Vec<i32> { (0..3).map(|i| 1 + (i - shift).rem_euclid(3) as i32).collect() };
    for shift in [i32::MIN, i32::MAX, -1, 0, 4] {
        assert_eq!(ops::roll(&a, shift).unwrap().to_vec::<i32>().unwrap(), expected(shift.into()));
        assert_eq!(ops::roll_axis(&a, shift, 0).unwrap().to_vec::<i32>().unwrap(), expected(shift.into()));
    }
}

#[test]
fn diagonals_far_outside_are_empty() {
    for k in [i32::MIN, i32::MAX] {
        assert_eq!(ops::diagonal(&matrix(), k, 0, 1).unwrap().size(), 0);
        assert_eq!(ops::sum(&ops::eye(3, 3, k, Dtype::Int32).unwrap()).unwrap().item::<i32>().unwrap(), 0);
        ops::tril(&matrix(), k).unwrap().eval().unwrap();
        ops::triu(&matrix(), k).unwrap().eval().unwrap();
        ops::tri(3, 3, k, Dtype::Int32).unwrap().eval().unwrap();
    }
}

#[test]
fn matrices_of_a_stack_are_chosen_inside_it() {
    let a = Array::from_slice(&[1.0f32, 2.0, 3.0], (3, 1, 1)).unwrap();
    let far = Array::vector(&FAR).unwrap();
    let picked = ops::gather_mm(&a, &a, Some(&far), None, false);
    if let Ok(picked) = picked {
        picked.eval().unwrap();
    }
    let both = ops::gather_mm(&a, &a, Some(&far), Some(&far), false).unwrap();
    assert_eq!(both.to_vec::<f32>().unwrap(), [9.0, 1.0]);
    let b = Array::ones::<f32>((1, 3)).unwrap();
    let segments = Array::matrix(&[[0i32, FAR[0]], [2, 1]]).unwrap();
    let sums = ops::segmented_mm(&b, &b.transpose().unwrap(), &segments).unwrap();
    assert_eq!(sums.to_vec::<f32>().unwrap(), [3.0, 0.0]);
}

#[test]
fn quantized_products_of_no_rows_have_none() {
    use oxmlx::quantize::{Format, Picks, gather_qmm, quantize, quantized_matmul, quantized_matmul_untransposed};
    for format in [Format::Mxfp4, oxmlx::quantize::Affine::new(32, 4).unwrap().into()] {
        let q = quantize(&Array::ones::<f32>((32, 32)).unwrap(), format).unwrap();
        let none = Array::ones::<f32>((0, 32)).unwrap();
        for product in [quantized_matmul(&none, &q), quantized_matmul_untransposed(&none, &q)] {
            let product = product.unwrap();
            product.eval().unwrap();
            assert_eq!(product.shape(), [0, 32]);
        }
        let stack = quantize(&Array::ones::<f32>((2, 32, 32)).unwrap(), format).unwrap();
        let none = Array::ones::<f32>((2, 0, 32)).unwrap();
        let picked = gather_qmm(&none, &stack, Picks::all()).unwrap();
        picked.eval().unwrap();
        assert_eq!(picked.shape(), [2, 0, 32]);
    }
}

#[test]
fn the_norm_of_a_view_without_elements_comes_to_an_end() {
    let none = ops::broadcast_to(&Array::ones::<f32>((1, 1)).unwrap(), (1 << 20, 0))
        .or_else(|_| Array::ones::<f32>((1 << 20, 0)));
    let norm =
        oxmlx::linalg::norm(&none.unwrap().transpose().unwrap(), oxmlx::linalg::Order::Number(2.0), Some(&[0]), false);
    assert!(norm.unwrap().to_vec::<f32>().unwrap().iter().all(|&x| x == 0.0));
}

#[test]
fn a_window_of_a_billion_samples_is_an_error_at_once() {
    let none = Array::zeros::<u32>((1, 0, 2, 4)).unwrap();
    assert_eq!(kind(fft::stft(&none, &fft::Stft::new(1 << 30).hop(3))), ErrorKind::Shape);
}

/// The gradient is a scatter of no elements, which MLX divides by.
#[test]
fn the_gradient_of_a_take_of_nothing_is_zero() {
    let taken = |x: &[Array]| ops::sum(&ops::take(&x[0], &Array::zeros::<i32>((0, 3))?, 0)?);
    let slope = transforms::grad(taken, &[0])(&[Array::ones::<f32>((2, 2)).unwrap()]).unwrap();
    assert_eq!(slope[0].to_vec::<f32>().unwrap(), [0.0; 4]);
    let none = |x: &[Array]| ops::sum(&ops::take(&x[0], &Array::vector(&[0i32, 1])?, 0)?);
    let slope = transforms::grad(none, &[0])(&[Array::ones::<f32>((2, 0)).unwrap()]).unwrap();
    assert_eq!(slope[0].shape(), [2, 0]);
    slope[0].eval().unwrap();
}

/// MLX's count wrapped around, and the matrix lost its columns.
#[test]
fn a_triangle_whose_diagonals_pass_32_bits_is_an_error() {
    assert_eq!(kind(ops::tri(1 << 30, i32::MAX, -3, Dtype::Int32)), ErrorKind::Shape);
    let wide = ops::broadcast_to(&Array::scalar(1i32).unwrap(), (3, i32::MAX)).unwrap();
    assert_eq!(kind(ops::tril(&wide, -2)), ErrorKind::Shape);
    assert_eq!(kind(ops::triu(&wide, i32::MIN)), ErrorKind::Shape);
}

/// MLX loops for ever over some views without elements.
#[test]
fn what_normalises_rows_of_no_elements_ends() {
    for axes in [[0, 1, 2, 3], [2, 0, 1, 3], [1, 2, 0, 3]] {
        let none = ops::transpose(&Array::zeros::<f32>((3, 1, 2, 0)).unwrap(), &axes).unwrap();
        let flipped = ops::flip(&none, 0).unwrap();
        for x in [none, flipped] {
            assert_eq!(oxmlx::fast::layer_norm(&x, None, None, 1e-5).unwrap().to_vec::<f32>().unwrap(), [0.0; 0]);
            let totals =
                transforms::vmap(|x| Ok(vec![ops::sum(&x[0])?, ops::prod(&x[0])?]), &[Some(0)], &[Some(0); 2])(
                    std::slice::from_ref(&x),
                )
                .unwrap();
            let rows = x.dim(0).unwrap() as usize;
            assert_eq!(totals[0].to_vec::<f32>().unwrap(), vec![0.0; rows]);
            assert_eq!(totals[1].to_vec::<f32>().unwrap(), vec![1.0; rows]);
        }
    }
}

/// MLX's own gradient gives the place -1, or the one past the end, where nothing equals the extreme: NaN does not.
#[test]
fn gradients_of_running_extremes_of_nan_stay_inside() -> oxmlx::Result<()> {
    type Extreme = fn(&Array, i32, ops::Scan) -> oxmlx::Result<Array>;
    let mut values = vec![1.0f32; 4 * 3000];
    values.iter_mut().step_by(7).for_each(|x| *x = f32::NAN);
    (values[0], values[11_999]) = (f32::NAN, f32::NAN);
    let x = Array::from_slice(&values, (4, 3000))?;
    for f in [ops::cummax_axis as Extreme, ops::cummin_axis] {
        for scan in [
            ops::Scan::new(),
            ops::Scan::new().reverse(),
            ops::Scan::new().exclusive(),
            ops::Scan::new().reverse().exclusive(),
        ] {
            for axis in [0, 1] {
                let slope = transforms::grad(move |x: &[Array]| ops::sum(&f(&x[0], axis, scan)?), &[0]);
                let slope = slope(std::slice::from_ref(&x))?.swap_remove(0);
                assert_eq!(slope.shape(), [4, 3000]);
                slope.eval()?;
            }
        }
    }
    // Without NaN each element's share goes to the one that was the largest so far.
    let slope = transforms::grad(|x: &[Array]| ops::sum(&ops::cummax(&x[0], ops::Scan::new())?), &[0]);
    assert_eq!(slope(&[Array::vector(&[2.0f32, 1.0, 3.0, 0.0])?])?[0].to_vec::<f32>()?, [2.0, 0.0, 2.0, 0.0]);
    Ok(())
}
