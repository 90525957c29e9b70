//! The calls that must fail: what is called, the kind of its error, and the operation that the error names.

use oxmlx::ErrorKind::{Axis, Dtype as WrongDtype, Group, Index, InvalidArgument, Shape, Unsupported};
use oxmlx::fast::{self, Attention, GatedDelta, Mask, Rope};
use oxmlx::fft::{self, FftNorm, Stft};
use oxmlx::linalg::{self, Order, Triangle};
use oxmlx::ops::{self, BlockMasks, Conv, ConvGeneral, PadMode, Scan, Side, Tolerance};
use oxmlx::quantize::{self, Operand, Picks};
use oxmlx::{Dtype, einsum, random};

use super::{Row, affine, broken, c, doubles, f, i, key, weights};

/// Every row.
pub(super) fn all() -> Vec<Row> {
    [
        elementwise(),
        reductions(),
        constructors(),
        shapes(),
        indexing(),
        products(),
        linear_algebra(),
        transforms(),
        draws(),
        fused(),
    ]
    .concat()
}

fn elementwise() -> Vec<Row> {
    rows! {
        ops::floor(&c(&[2])) => InvalidArgument, "floor";
        ops::ceil(&c(&[2])) => InvalidArgument, "ceil";
        ops::trunc(&c(&[2])) => InvalidArgument, "trunc";
        ops::expm1(&c(&[2])) => InvalidArgument, "expm1";
        ops::sigmoid(&c(&[2])) => InvalidArgument, "sigmoid";
        ops::erf(&c(&[2])) => InvalidArgument, "erf";
        ops::erfinv(&c(&[2])) => InvalidArgument, "erfinv";
        ops::bitwise_invert(&f(&[2])) => InvalidArgument, "bitwise_invert";
        ops::nan_to_num(&doubles(&[2]), 0.0, None, None) => InvalidArgument, "nan_to_num";
        ops::to_fp8(&i(&[2])) => InvalidArgument, "to_fp8";
        ops::from_fp8(&f(&[2]), Dtype::Float32) => WrongDtype, "from_fp8";
        ops::hadamard_transform(&f(&[3]), None) => InvalidArgument, "hadamard_transform";
        ops::softmax(&f(&[2]), 1, false) => Axis, "softmax";
        ops::softmax_axes(&f(&[2]), &[0, 0], false) => Axis, "softmax";
        ops::add(&f(&[2]), &f(&[3])) => InvalidArgument, "add";
        ops::subtract(&f(&[2]), &f(&[3])) => InvalidArgument, "subtract";
        ops::multiply(&f(&[2]), &f(&[3])) => InvalidArgument, "multiply";
        ops::divide(&f(&[2]), &f(&[3])) => InvalidArgument, "divide";
        ops::power(&f(&[2]), &f(&[3])) => InvalidArgument, "power";
        ops::maximum(&f(&[2]), &f(&[3])) => InvalidArgument, "maximum";
        ops::minimum(&f(&[2]), &f(&[3])) => InvalidArgument, "minimum";
        ops::arctan2(&f(&[2]), &f(&[3])) => InvalidArgument, "arctan2";
        ops::logaddexp(&f(&[2]), &f(&[3])) => InvalidArgument, "logaddexp";
        ops::floor_divide(&f(&[2]), &f(&[3])) => InvalidArgument, "floor_divide";
        ops::remainder(&f(&[2]), &f(&[3])) => InvalidArgument, "remainder";
        ops::divmod(&f(&[2]), &f(&[3])) => InvalidArgument, "divmod";
        ops::left_shift(&i(&[2]), &i(&[3])) => InvalidArgument, "left_shift";
        ops::right_shift(&i(&[2]), &i(&[3])) => InvalidArgument, "right_shift";
        ops::bitwise_and(&i(&[2]), &i(&[3])) => InvalidArgument, "bitwise_and";
        ops::bitwise_or(&i(&[2]), &i(&[3])) => InvalidArgument, "bitwise_or";
        ops::bitwise_xor(&i(&[2]), &i(&[3])) => InvalidArgument, "bitwise_xor";
        ops::logical_and(&f(&[2]), &f(&[3])) => InvalidArgument, "logical_and";
        ops::logical_or(&f(&[2]), &f(&[3])) => InvalidArgument, "logical_or";
        ops::logical_xor(&f(&[2]), &f(&[3])) => InvalidArgument, "logical_xor";
        ops::equal(&f(&[2]), &f(&[3])) => InvalidArgument, "equal";
        ops::not_equal(&f(&[2]), &f(&[3])) => InvalidArgument, "not_equal";
        ops::greater(&f(&[2]), &f(&[3])) => InvalidArgument, "greater";
        ops::greater_equal(&f(&[2]), &f(&[3])) => InvalidArgument, "greater_equal";
        ops::less(&f(&[2]), &f(&[3])) => InvalidArgument, "less";
        ops::less_equal(&f(&[2]), &f(&[3])) => InvalidArgument, "less_equal";
        ops::isclose(&f(&[2]), &f(&[3]), Tolerance::default()) => InvalidArgument, "isclose";
        ops::allclose(&f(&[2]), &f(&[3]), Tolerance::default()) => InvalidArgument, "allclose";
        ops::where_(&f(&[2]), &f(&[3]), &f(&[])) => InvalidArgument, "where";
        ops::clip(&f(&[2]), None, None) => InvalidArgument, "clip";
    }
}

fn reductions() -> Vec<Row> {
    rows! {
        ops::sum_axis(&f(&[2]), 1, false) => Axis, "sum";
        ops::sum_axes(&f(&[2]), &[0, -1], false) => Axis, "sum";
        ops::prod_axis(&f(&[2]), 1, false) => Axis, "prod";
        ops::prod_axes(&f(&[2]), &[0, -1], false) => Axis, "prod";
        ops::mean_axis(&f(&[2]), 1, false) => Axis, "mean";
        ops::mean_axes(&f(&[2]), &[0, -1], false) => Axis, "mean";
        ops::median_axis(&f(&[2]), 1, false) => Axis, "median";
        ops::median_axes(&f(&[2]), &[0, -1], false) => Axis, "median";
        ops::max_axis(&f(&[2]), 1, false) => Axis, "max";
        ops::max_axes(&f(&[2]), &[0, -1], false) => Axis, "max";
        ops::min_axis(&f(&[2]), 1, false) => Axis, "min";
        ops::min_axes(&f(&[2]), &[0, -1], false) => Axis, "min";
        ops::all_axis(&f(&[2]), 1, false) => Axis, "all";
        ops::all_axes(&f(&[2]), &[0, -1], false) => Axis, "all";
        ops::any_axis(&f(&[2]), 1, false) => Axis, "any";
        ops::any_axes(&f(&[2]), &[0, -1], false) => Axis, "any";
        ops::count_nonzero_axis(&f(&[2]), 1, false) => Axis, "count_nonzero";
        ops::count_nonzero_axes(&f(&[2]), &[0, -1], false) => Axis, "count_nonzero";
        ops::logsumexp_axis(&f(&[2]), 1, false) => Axis, "logsumexp";
        ops::logsumexp_axes(&f(&[2]), &[0, -1], false) => Axis, "logsumexp";
        ops::minmax_axis(&f(&[2]), 1, false) => Axis, "minmax";
        ops::minmax_axes(&f(&[2]), &[0, -1], false) => Axis, "minmax";
        ops::argmax_axis(&f(&[2]), -2, false) => Axis, "argmax";
        ops::argmin_axis(&f(&[2]), -2, false) => Axis, "argmin";
        ops::max(&f(&[0])) => InvalidArgument, "max";
        ops::min(&f(&[0])) => InvalidArgument, "min";
        ops::median(&f(&[0])) => InvalidArgument, "median";
        ops::argmax(&f(&[0])) => InvalidArgument, "argmax";
        ops::argmin(&f(&[0])) => InvalidArgument, "argmin";
        ops::minmax(&f(&[0])) => InvalidArgument, "minmax";
        ops::logsumexp(&f(&[0])) => InvalidArgument, "logsumexp";
        ops::var_axis(&f(&[2]), 1, false, 0) => Axis, "var";
        ops::var_axes(&f(&[2]), &[0, 0], false, 0) => Axis, "var";
        ops::std_axis(&f(&[2]), 1, false, 0) => Axis, "std";
        ops::std_axes(&f(&[2]), &[0, 0], false, 0) => Axis, "std";
        ops::number_of_elements(&f(&[2]), &[1], false, Dtype::Int32) => Axis, "number_of_elements";
        ops::cumsum_axis(&f(&[2]), 1, Scan::new()) => Axis, "cumsum";
        ops::cumprod_axis(&f(&[2]), 1, Scan::new()) => Axis, "cumprod";
        ops::cummax_axis(&f(&[2]), 1, Scan::new()) => Axis, "cummax";
        ops::cummin_axis(&f(&[2]), 1, Scan::new()) => Axis, "cummin";
        ops::logcumsumexp_axis(&f(&[2]), 1, Scan::new()) => Axis, "logcumsumexp";
        ops::diff(&f(&[2]), -1, 0) => InvalidArgument, "diff";
        ops::sort_axis(&f(&[2]), 1) => Axis, "sort";
        ops::argsort_axis(&f(&[2]), 1) => Axis, "argsort";
        ops::partition_axis(&f(&[2]), 0, 1) => Axis, "partition";
        ops::partition(&f(&[2]), 2) => Index, "partition";
        ops::argpartition_axis(&f(&[2]), 0, 1) => Axis, "argpartition";
        ops::argpartition(&f(&[2]), 2) => Index, "argpartition";
        ops::topk_axis(&f(&[2]), 1, 1) => Axis, "topk";
        ops::topk(&f(&[2]), 3) => Index, "topk";
        ops::searchsorted(&f(&[2, 2]), &f(&[2]), Side::Left) => InvalidArgument, "searchsorted";
        ops::unique(&f(&[2]), -1, None) => InvalidArgument, "unique";
        ops::unique_values(&f(&[2]), -1, None) => InvalidArgument, "unique";
    }
}

fn constructors() -> Vec<Row> {
    rows! {
        ops::zeros([-1], Dtype::Float32) => Shape, "zeros";
        ops::ones([-1], Dtype::Float32) => Shape, "ones";
        ops::full([-1], &f(&[])) => Shape, "full";
        ops::full_like(&f(&[2]), &f(&[3])) => InvalidArgument, "full_like";
        ops::arange(0.0, 1.0, 0.0, Dtype::Float32) => InvalidArgument, "arange";
        ops::arange_i32(0, 1, 0) => InvalidArgument, "arange";
        ops::linspace(0.0, 1.0, -1, true, Dtype::Float32) => InvalidArgument, "linspace";
        ops::eye(-1, 2, 0, Dtype::Float32) => Shape, "eye";
        ops::identity(-1, Dtype::Float32) => Shape, "identity";
        ops::tri(-1, 2, 0, Dtype::Float32) => Shape, "tri";
        ops::tril(&f(&[2]), 0) => InvalidArgument, "tril";
        ops::triu(&f(&[2]), 0) => InvalidArgument, "triu";
        ops::diag(&f(&[1, 2, 3]), 0) => InvalidArgument, "diag";
        ops::hanning(-1) => Shape, "hanning";
        ops::hamming(-1) => Shape, "hamming";
        ops::bartlett(-1) => Shape, "bartlett";
        ops::blackman(-1) => Shape, "blackman";
        ops::view(&f(&[3]), Dtype::Complex64) => InvalidArgument, "view";
        ops::as_strided(&f(&[3]), [2], &[3], 0) => Index, "as_strided";
    }
}

fn shapes() -> Vec<Row> {
    rows! {
        ops::reshape(&f(&[3]), [2]) => InvalidArgument, "reshape";
        ops::flatten(&f(&[2]), 1, 1) => Axis, "flatten";
        ops::unflatten(&f(&[3]), 1, [3]) => Axis, "unflatten";
        ops::transpose(&f(&[2, 3]), &[0, 2]) => Axis, "transpose";
        ops::matrix_transpose(&f(&[2])) => Axis, "matrix_transpose";
        ops::swapaxes(&f(&[2]), 0, 1) => Axis, "swapaxes";
        ops::moveaxis(&f(&[2]), 0, 1) => Axis, "moveaxis";
        ops::expand_dims(&f(&[2]), 5) => Axis, "expand_dims";
        ops::expand_dims_axes(&f(&[2]), &[5, 0]) => Axis, "expand_dims";
        ops::squeeze(&f(&[2]), 0) => InvalidArgument, "squeeze";
        ops::squeeze_axes(&f(&[1]), &[1]) => Axis, "squeeze";
        ops::flip(&f(&[2]), 1) => Axis, "flip";
        ops::flip_axes(&f(&[2]), &[0, 0]) => Axis, "flip";
        ops::broadcast_to(&f(&[2]), [3]) => InvalidArgument, "broadcast_to";
        ops::broadcast_arrays(&[f(&[2]), f(&[3])]) => InvalidArgument, "broadcast_arrays";
        ops::concatenate(&[f(&[2]), f(&[2, 2])], 0) => InvalidArgument, "concatenate";
        ops::stack(&[f(&[2]), f(&[2])], 2) => Axis, "stack";
        ops::split(&f(&[3]), 2, 0) => Shape, "split";
        ops::split_at(&f(&[3]), &[1], 1) => Axis, "split";
        ops::unstack(&f(&[3]), 1) => Axis, "unstack";
        ops::repeat_axis(&f(&[3]), 2, 1) => Axis, "repeat";
        ops::repeat(&f(&[3]), -1) => Shape, "repeat";
        ops::tile(&f(&[3]), &[-1]) => Shape, "tile";
        ops::pad(&f(&[3]), &[], None, PadMode::Constant) => Shape, "pad";
        ops::pad_axes(&f(&[3]), &[1], &[(0, 0)], None, PadMode::Constant) => Axis, "pad";
        ops::roll_axis(&f(&[3]), 1, 1) => Axis, "roll";
        ops::roll_axes(&f(&[3]), &[1, 2], &[0]) => Shape, "roll";
    }
}

fn indexing() -> Vec<Row> {
    rows! {
        ops::take(&f(&[3]), &f(&[1]), 0) => WrongDtype, "take";
        ops::take_all(&f(&[0]), &i(&[1])) => Index, "take";
        ops::take_index(&f(&[3]), 3, 0) => Index, "take";
        ops::take_along_axis(&f(&[3]), &i(&[2, 2]), 0) => InvalidArgument, "take_along_axis";
        ops::put_along_axis(&f(&[3]), &i(&[1]), &f(&[1]), 1) => Axis, "put_along_axis";
        ops::scatter_add_axis(&f(&[3]), &f(&[1]), &f(&[1]), 0) => WrongDtype, "scatter_add_axis";
        ops::gather(&f(&[3]), &[i(&[1])], &[0], &[4]) => Shape, "gather";
        ops::scatter(&f(&[3]), &[i(&[2])], &f(&[2, 4]), &[0]) => Shape, "scatter";
        ops::scatter_add(&f(&[3]), &[i(&[2])], &f(&[2, 4]), &[0]) => Shape, "scatter_add";
        ops::scatter_prod(&f(&[3]), &[i(&[2])], &f(&[2, 4]), &[0]) => Shape, "scatter_prod";
        ops::scatter_max(&f(&[3]), &[i(&[2])], &f(&[2, 4]), &[0]) => Shape, "scatter_max";
        ops::scatter_min(&f(&[3]), &[i(&[2])], &f(&[2, 4]), &[0]) => Shape, "scatter_min";
        ops::masked_scatter(&f(&[3]), &i(&[3]), &f(&[3])) => WrongDtype, "masked_scatter";
        ops::slice(&f(&[3]), &[0], &[1], &[0]) => Shape, "slice";
        ops::slice_dynamic(&f(&[3]), &i(&[1]), &[0], &[4]) => Shape, "slice";
        ops::slice_update(&f(&[3]), &f(&[2]), &[0, 0], &[1], &[1]) => Shape, "slice_update";
        ops::slice_update_add(&f(&[3]), &f(&[2]), &[0, 0], &[1], &[1]) => Shape, "slice_update_add";
        ops::slice_update_prod(&f(&[3]), &f(&[2]), &[0, 0], &[1], &[1]) => Shape, "slice_update_prod";
        ops::slice_update_max(&f(&[3]), &f(&[2]), &[0, 0], &[1], &[1]) => Shape, "slice_update_max";
        ops::slice_update_min(&f(&[3]), &f(&[2]), &[0, 0], &[1], &[1]) => Shape, "slice_update_min";
        ops::slice_update_dynamic(&f(&[3]), &f(&[4]), &i(&[1]), &[0]) => Shape, "slice_update";
    }
}

fn products() -> Vec<Row> {
    rows! {
        ops::matmul(&f(&[2, 3]), &f(&[2, 3])) => InvalidArgument, "matmul";
        ops::addmm(&f(&[]), &f(&[2, 3]), &f(&[2, 3]), 1.0, 1.0) => InvalidArgument, "addmm";
        ops::inner(&f(&[2]), &f(&[3])) => InvalidArgument, "inner";
        ops::vecdot(&f(&[2]), &f(&[2]), 1) => Axis, "vecdot";
        ops::tensordot(&f(&[2]), &f(&[3]), 1) => InvalidArgument, "tensordot";
        ops::tensordot_axes(&f(&[2]), &f(&[2]), &[0], &[]) => InvalidArgument, "tensordot";
        ops::diagonal(&f(&[2]), 0, 0, 1) => Axis, "diagonal";
        ops::trace(&f(&[2, 2]), 0, 0, 0, None) => Axis, "trace";
        ops::gather_mm(&f(&[2, 2, 2]), &f(&[2, 3, 2]), None, None, false) => InvalidArgument, "gather_mm";
        ops::segmented_mm(&f(&[2, 3]), &f(&[2, 3]), &i(&[1, 2])) => Shape, "segmented_mm";
        ops::block_masked_mm(&f(&[2, 2]), &f(&[2, 2]), 32, BlockMasks { out: Some(&f(&[3, 3])), ..BlockMasks::default() }) => InvalidArgument, "block_masked_mm";
        einsum::einsum("ij,jk->ik", &[f(&[2, 3])]) => InvalidArgument, "einsum";
        einsum::einsum_path("ij,jk->ik", &[f(&[2, 3])]) => InvalidArgument, "einsum_path";
        ops::conv1d(&f(&[1, 3, 2]), &f(&[1, 3, 2]), Conv::new().groups(0)) => Group, "conv1d";
        ops::conv_transpose1d(&f(&[1, 3, 2]), &f(&[1, 3, 2]), Conv::new().groups(0)) => Group, "conv_transpose1d";
        ops::conv2d(&f(&[1, 3, 3, 2]), &f(&[1, 3, 3, 2]), Conv::new().groups(0)) => Group, "conv2d";
        ops::conv_transpose2d(&f(&[1, 3, 3, 2]), &f(&[1, 3, 3, 2]), Conv::new().groups(0)) => Group, "conv_transpose2d";
        ops::conv3d(&f(&[1, 3, 3, 3, 2]), &f(&[1, 3, 3, 3, 2]), Conv::new().groups(0)) => Group, "conv3d";
        ops::conv_transpose3d(&f(&[1, 3, 3, 3, 2]), &f(&[1, 3, 3, 3, 2]), Conv::new().groups(0)) => Group, "conv_transpose3d";
        ops::conv_general(&f(&[1, 3, 2]), &f(&[1, 3]), &ConvGeneral::default()) => Shape, "conv_general";
    }
}

fn linear_algebra() -> Vec<Row> {
    rows! {
        linalg::inv(&f(&[2, 3])) => Shape, "inv";
        linalg::det(&f(&[2, 3])) => Shape, "det";
        linalg::cholesky(&f(&[2, 3]), false) => Shape, "cholesky";
        linalg::tri_inv(&f(&[2, 3]), false) => Shape, "tri_inv";
        linalg::cholesky_inv(&f(&[2, 3]), false) => Shape, "cholesky_inv";
        linalg::eigvals(&f(&[2, 3])) => Shape, "eigvals";
        linalg::slogdet(&f(&[2, 3])) => Shape, "slogdet";
        linalg::eig(&f(&[2, 3])) => Shape, "eig";
        linalg::pinv(&f(&[2])) => Shape, "pinv";
        linalg::qr(&f(&[2])) => Shape, "qr";
        linalg::lu_factor(&f(&[2])) => Shape, "lu_factor";
        linalg::lu(&f(&[2])) => Shape, "lu";
        linalg::svd(&f(&[2])) => Shape, "svd";
        linalg::singular_values(&f(&[2])) => Shape, "svd";
        linalg::eigvalsh(&f(&[2, 3]), Triangle::Lower) => Shape, "eigvalsh";
        linalg::eigh(&f(&[2, 3]), Triangle::Lower) => Shape, "eigh";
        linalg::solve(&f(&[2, 3]), &f(&[2])) => Shape, "solve";
        linalg::solve_triangular(&f(&[2, 3]), &f(&[2]), true) => Shape, "solve_triangular";
        linalg::cross(&f(&[3]), &f(&[3]), 1) => Axis, "cross";
        linalg::norm(&f(&[3]), Order::Default, Some(&[1]), false) => Axis, "norm";
    }
}

fn transforms() -> Vec<Row> {
    rows! {
        fft::fft(&f(&[3]), None, 1, FftNorm::Backward) => Axis, "fft";
        fft::fft2(&f(&[3, 3]), Some([0, 1]), [0, 1], FftNorm::Backward) => Shape, "fft2";
        fft::fftn(&f(&[3]), Some(&[2, 2]), Some(&[0]), FftNorm::Backward) => Shape, "fftn";
        fft::ifft(&f(&[3]), None, 1, FftNorm::Backward) => Axis, "ifft";
        fft::ifft2(&f(&[3, 3]), Some([0, 1]), [0, 1], FftNorm::Backward) => Shape, "ifft2";
        fft::ifftn(&f(&[3]), Some(&[2, 2]), Some(&[0]), FftNorm::Backward) => Shape, "ifftn";
        fft::rfft(&f(&[3]), None, 1, FftNorm::Backward) => Axis, "rfft";
        fft::rfft2(&f(&[3, 3]), Some([0, 1]), [0, 1], FftNorm::Backward) => Shape, "rfft2";
        fft::rfftn(&f(&[3]), Some(&[2, 2]), Some(&[0]), FftNorm::Backward) => Shape, "rfftn";
        fft::irfft(&f(&[3]), None, 1, FftNorm::Backward) => Axis, "irfft";
        fft::irfft2(&f(&[3, 3]), Some([0, 1]), [0, 1], FftNorm::Backward) => Shape, "irfft2";
        fft::irfftn(&f(&[3]), Some(&[2, 2]), Some(&[0]), FftNorm::Backward) => Shape, "irfftn";
        fft::fftfreq(0, 1.0) => Shape, "fftfreq";
        fft::rfftfreq(0, 1.0) => Shape, "rfftfreq";
        fft::fftshift(&f(&[3]), Some(&[1])) => Axis, "fftshift";
        fft::ifftshift(&f(&[3]), Some(&[1])) => Axis, "ifftshift";
        fft::stft(&f(&[8]), &Stft::new(0)) => Shape, "stft";
        fft::istft(&c(&[8]), &Stft::new(4), None) => Shape, "istft";
    }
}

fn draws() -> Vec<Row> {
    rows! {
        random::split(&f(&[2])) => InvalidArgument, "split";
        random::split_many(&key(), -1) => Shape, "split";
        random::bits([2], 3, &key()) => InvalidArgument, "bits";
        random::uniform([2], Dtype::Int32, &key()) => WrongDtype, "uniform";
        random::uniform_between(&f(&[2]), &f(&[2]), [3], Dtype::Float32, &key()) => InvalidArgument, "uniform";
        random::normal([2], Dtype::Int32, &key()) => WrongDtype, "normal";
        random::normal_with([-1], Dtype::Float32, None, None, &key()) => Shape, "normal";
        random::multivariate_normal(&f(&[3]), &f(&[2, 2]), [2], Dtype::Float32, &key()) => InvalidArgument, "multivariate_normal";
        random::randint(&i(&[]), &i(&[]), [2], Dtype::Float32, &key()) => WrongDtype, "randint";
        random::bernoulli(&f(&[2]), [3], &key()) => InvalidArgument, "bernoulli";
        random::truncated_normal(&f(&[]), &f(&[]), [2], Dtype::Int32, &key()) => WrongDtype, "truncated_normal";
        random::gumbel([2], Dtype::Int32, &key()) => WrongDtype, "gumbel";
        random::laplace([2], Dtype::Int32, 0.0, 1.0, &key()) => WrongDtype, "laplace";
        random::categorical(&f(&[2]), 1, &key()) => Axis, "categorical";
        random::categorical_many(&f(&[2]), 0, -1, &key()) => Shape, "categorical";
        random::categorical_shape(&f(&[2, 3]), 0, [2], &key()) => InvalidArgument, "categorical";
        random::permutation(&f(&[2]), 1, &key()) => Axis, "permutation";
        random::permutation_of(-1, &key()) => Shape, "permutation";
    }
}

fn fused() -> Vec<Row> {
    rows! {
        fast::rms_norm(&f(&[2, 4]), Some(&f(&[3])), 1e-5) => InvalidArgument, "rms_norm";
        fast::layer_norm(&f(&[2, 4]), Some(&f(&[3])), None, 1e-5) => Shape, "layer_norm";
        fast::swiglu(&f(&[2]), &f(&[3])) => InvalidArgument, "multiply";
        fast::cross_entropy(&f(&[2, 3]), &f(&[2])) => WrongDtype, "cross_entropy";
        fast::rope(&f(&[1, 2, 4]), &Rope::new(3, 10.0), 0) => InvalidArgument, "rope";
        fast::rope_offsets(&f(&[1, 2, 4]), &Rope::new(4, 10.0), &f(&[1])) => WrongDtype, "rope";
        fast::scaled_dot_product_attention(&f(&[1, 2, 3, 4]), &f(&[1, 2, 3, 5]), &f(&[1, 2, 3, 5]), 1.0, Mask::None) => InvalidArgument, "scaled_dot_product_attention";
        fast::attention(&f(&[2, 3, 4]), &f(&[2, 3, 4]), &f(&[2, 3, 4]), Attention::new(1.0)) => InvalidArgument, "scaled_dot_product_attention";
        fast::gated_delta_update(&f(&[1, 2, 1, 4]), &f(&[1, 2, 1, 4]), &f(&[1, 2, 1, 4]), GatedDelta::new(&f(&[1, 2, 2]), &f(&[1, 2, 1]))) => Shape, "gated_delta_update";
        quantize::quantize(&f(&[2, 33]), affine()) => Shape, "quantize";
        quantize::quantize_scaled(&i(&[2, 32]), &f(&[])) => WrongDtype, "quantize";
        quantize::dequantize(&broken()) => Shape, "dequantize";
        quantize::dequantize_as(&broken(), Dtype::Float16) => Shape, "dequantize";
        quantize::quantized_matmul(&f(&[2, 33]), &weights()) => InvalidArgument, "quantized_matmul";
        quantize::quantized_matmul_untransposed(&f(&[2, 33]), &weights()) => InvalidArgument, "quantized_matmul";
        quantize::gather_qmm(&f(&[2, 33]), &weights(), Picks::all()) => InvalidArgument, "gather_qmm";
        quantize::qqmm(&f(&[2, 32]), Operand::Quantized(&weights()), None) => Unsupported, "qqmm";
        quantize::gather_qqmm(&f(&[2, 32]), Operand::Quantized(&weights()), Picks::all(), None) => Unsupported, "gather_qqmm";
    }
}
