//! Every function of the safe API that makes arrays, each with hostile arguments. A function that the bridge has and this table has
//! not fails `every_function_of_the_bridge_is_fuzzed`.

use oxmlx::fast::{Attention, GatedDelta, Mask, Rope};
use oxmlx::fft::Stft;
use oxmlx::linalg::Triangle;
use oxmlx::ops::{BlockMasks, Conv, Indexing, Scan, Tolerance, Unique};
use oxmlx::quantize::{Picks, Quantized};
use oxmlx::{Array, Result, einsum, fast, fft, linalg, ops, quantize, random};

use crate::draw::Draw;

/// What a function returns, as the arrays in it.
trait Outputs {
    fn arrays(self) -> Vec<Array>;
}

impl Outputs for Array {
    fn arrays(self) -> Vec<Array> {
        vec![self]
    }
}

impl Outputs for Vec<Array> {
    fn arrays(self) -> Vec<Array> {
        self
    }
}

impl Outputs for (Array, Array) {
    fn arrays(self) -> Vec<Array> {
        vec![self.0, self.1]
    }
}

impl Outputs for (Array, Array, Array) {
    fn arrays(self) -> Vec<Array> {
        vec![self.0, self.1, self.2]
    }
}

impl Outputs for Unique {
    fn arrays(self) -> Vec<Array> {
        vec![self.values, self.index, self.inverse, self.counts]
    }
}

impl Outputs for Quantized {
    fn arrays(self) -> Vec<Array> {
        let mut arrays = vec![self.weight, self.scales];
        arrays.extend(self.biases);
        arrays
    }
}

impl Outputs for einsum::Contraction {
    fn arrays(self) -> Vec<Array> {
        vec![]
    }
}

/// A function's name and a call of it with drawn arguments.
pub(crate) type Entry = (&'static str, fn(&mut Draw) -> Result<Vec<Array>>);

macro_rules! table {
    ($d:ident; $($module:ident::$name:ident($($argument:expr),*);)+) => {
        /// All of them.
        pub(crate) const ENTRIES: &[Entry] = &[$(
            (
                concat!(stringify!($module), "::", stringify!($name)),
                |$d: &mut Draw| Ok($module::$name($($argument),*)?.arrays()),
            )
        ),+];
    };
}

table! { d;
    einsum::einsum(d.one_of(&["ij,jk->ik", "i,i->", "ii->i", "...ij->...ji", "ij->", "a,b,c->abc", "i->ij", "", "->", "ij,jk", "é->é"]), &d.arrays());
    einsum::einsum_path(d.one_of(&["ij,jk->ik", "i->ij", ""]), &d.arrays());
    fast::attention(&d.image(2), &d.image(2), &d.image(2), Attention::new(d.float32()).mask(Mask::Array(&d.array())).sinks(&d.array()));
    fast::cross_entropy(&d.array(), &d.indices());
    fast::gated_delta_update(&d.image(2), &d.image(2), &d.image(2), GatedDelta::new(&d.array(), &d.array()));
    fast::layer_norm(&d.array(), d.maybe(Draw::array).as_ref(), d.maybe(Draw::array).as_ref(), d.float32());
    fast::rms_norm(&d.array(), d.maybe(Draw::array).as_ref(), d.float32());
    fast::rope(&d.array(), &Rope::new(d.int(), d.float32()).traditional(d.flag()).scale(d.float32()), d.int());
    fast::rope_offsets(&d.array(), &Rope::new(d.int(), d.float32()).traditional(d.flag()), &d.indices());
    fast::scaled_dot_product_attention(&d.image(2), &d.image(2), &d.image(2), d.float32(), d.one_of(&[Mask::None, Mask::Causal]));
    fast::swiglu(&d.array(), &d.array());
    fft::fft(&d.array(), d.maybe(Draw::int), d.int(), d.fft_norm());
    fft::fft2(&d.array(), d.maybe(Draw::pair), d.pair(), d.fft_norm());
    fft::fftfreq(d.int(), d.float());
    fft::fftn(&d.array(), d.maybe(Draw::ints).as_deref(), d.maybe(Draw::ints).as_deref(), d.fft_norm());
    fft::fftshift(&d.array(), d.maybe(Draw::ints).as_deref());
    fft::ifft(&d.array(), d.maybe(Draw::int), d.int(), d.fft_norm());
    fft::ifft2(&d.array(), d.maybe(Draw::pair), d.pair(), d.fft_norm());
    fft::ifftn(&d.array(), d.maybe(Draw::ints).as_deref(), d.maybe(Draw::ints).as_deref(), d.fft_norm());
    fft::ifftshift(&d.array(), d.maybe(Draw::ints).as_deref());
    fft::irfft(&d.array(), d.maybe(Draw::int), d.int(), d.fft_norm());
    fft::irfft2(&d.array(), d.maybe(Draw::pair), d.pair(), d.fft_norm());
    fft::irfftn(&d.array(), d.maybe(Draw::ints).as_deref(), d.maybe(Draw::ints).as_deref(), d.fft_norm());
    fft::istft(&d.image(1), &Stft::new(d.int()).hop(d.int()), d.maybe(Draw::int));
    fft::rfft(&d.array(), d.maybe(Draw::int), d.int(), d.fft_norm());
    fft::rfft2(&d.array(), d.maybe(Draw::pair), d.pair(), d.fft_norm());
    fft::rfftfreq(d.int(), d.float());
    fft::rfftn(&d.array(), d.maybe(Draw::ints).as_deref(), d.maybe(Draw::ints).as_deref(), d.fft_norm());
    fft::stft(&d.array(), &Stft::new(d.int()).hop(d.int()).window_length(d.int()).center(d.flag()).pad_mode(d.pad_mode()));
    linalg::cholesky(&d.square(), d.flag());
    linalg::cholesky_inv(&d.square(), d.flag());
    linalg::cross(&d.square(), &d.array(), d.int());
    linalg::det(&d.square());
    linalg::eig(&d.square());
    linalg::eigh(&d.square(), d.one_of(&[Triangle::Lower, Triangle::Upper]));
    linalg::eigvals(&d.square());
    linalg::eigvalsh(&d.square(), d.one_of(&[Triangle::Lower, Triangle::Upper]));
    linalg::inv(&d.square());
    linalg::lu(&d.square());
    linalg::lu_factor(&d.square());
    linalg::norm(&d.array(), d.order(), d.maybe(Draw::ints).as_deref(), d.flag());
    linalg::pinv(&d.square());
    linalg::qr(&d.square());
    linalg::singular_values(&d.square());
    linalg::slogdet(&d.square());
    linalg::solve(&d.square(), &d.array());
    linalg::solve_triangular(&d.square(), &d.array(), d.flag());
    linalg::svd(&d.square());
    linalg::tri_inv(&d.square(), d.flag());
    ops::abs(&d.array());
    ops::add(&d.array(), &d.array());
    ops::addmm(&d.array(), &d.array(), &d.array(), d.float32(), d.float32());
    ops::all(&d.array());
    ops::all_axes(&d.array(), &d.ints(), d.flag());
    ops::all_axis(&d.array(), d.int(), d.flag());
    ops::allclose(&d.array(), &d.array(), Tolerance::default());
    ops::any(&d.array());
    ops::any_axes(&d.array(), &d.ints(), d.flag());
    ops::any_axis(&d.array(), d.int(), d.flag());
    ops::arange(d.float(), d.float(), d.float(), d.dtype());
    ops::arange_i32(d.int(), d.int(), d.int());
    ops::arccos(&d.array());
    ops::arccosh(&d.array());
    ops::arcsin(&d.array());
    ops::arcsinh(&d.array());
    ops::arctan(&d.array());
    ops::arctan2(&d.array(), &d.array());
    ops::arctanh(&d.array());
    ops::argmax(&d.array());
    ops::argmax_axis(&d.array(), d.int(), d.flag());
    ops::argmin(&d.array());
    ops::argmin_axis(&d.array(), d.int(), d.flag());
    ops::argpartition(&d.array(), d.int());
    ops::argpartition_axis(&d.array(), d.int(), d.int());
    ops::argsort(&d.array());
    ops::argsort_axis(&d.array(), d.int());
    ops::array_equal(&d.array(), &d.array(), d.flag());
    ops::as_strided(&d.array(), &d.shape(), &d.longs(), d.below(100));
    ops::astype(&d.array(), d.dtype());
    ops::atleast_1d(&d.array());
    ops::atleast_1d_each(&d.arrays());
    ops::atleast_2d(&d.array());
    ops::atleast_2d_each(&d.arrays());
    ops::atleast_3d(&d.array());
    ops::atleast_3d_each(&d.arrays());
    ops::bartlett(d.int());
    ops::bitwise_and(&d.array(), &d.array());
    ops::bitwise_invert(&d.array());
    ops::bitwise_or(&d.array(), &d.array());
    ops::bitwise_xor(&d.array(), &d.array());
    ops::blackman(d.int());
    ops::block_masked_mm(&d.array(), &d.array(), d.int(), BlockMasks { out: d.maybe(Draw::array).as_ref(), lhs: d.maybe(Draw::array).as_ref(), rhs: d.maybe(Draw::array).as_ref() });
    ops::broadcast_arrays(&d.arrays());
    ops::broadcast_to(&d.array(), &d.shape());
    ops::ceil(&d.array());
    ops::clip(&d.array(), d.maybe(Draw::array).as_ref(), d.maybe(Draw::array).as_ref());
    ops::concatenate(&d.arrays(), d.int());
    ops::conjugate(&d.array());
    ops::contiguous(&d.array(), d.flag());
    ops::conv1d(&d.image(1), &d.image(1), Conv::<1>::new().stride(d.near_one()).padding(d.near_one()).dilation(d.near_one()).groups(d.int()));
    ops::conv2d(&d.image(2), &d.image(2), Conv::<2>::new().stride(d.near_one()).padding(d.near_one()).dilation(d.near_one()).groups(d.int()));
    ops::conv3d(&d.image(3), &d.image(3), Conv::<3>::new().stride(d.near_one()).padding(d.near_one()).dilation(d.near_one()).groups(d.int()));
    ops::conv_general(&d.image(2), &d.image(2), &d.conv_general());
    ops::conv_transpose1d(&d.image(1), &d.image(1), Conv::<1>::new().stride(d.near_one()).padding(d.near_one()).dilation(d.near_one()).groups(d.int()).output_padding(d.near_one()));
    ops::conv_transpose2d(&d.image(2), &d.image(2), Conv::<2>::new().stride(d.near_one()).padding(d.near_one()).dilation(d.near_one()).groups(d.int()).output_padding(d.near_one()));
    ops::conv_transpose3d(&d.image(3), &d.image(3), Conv::<3>::new().stride(d.near_one()).padding(d.near_one()).dilation(d.near_one()).groups(d.int()).output_padding(d.near_one()));
    ops::copy(&d.array());
    ops::cos(&d.array());
    ops::cosh(&d.array());
    ops::count_nonzero(&d.array());
    ops::count_nonzero_axes(&d.array(), &d.ints(), d.flag());
    ops::count_nonzero_axis(&d.array(), d.int(), d.flag());
    ops::cummax(&d.array(), Scan::default());
    ops::cummax_axis(&d.array(), d.int(), Scan::default());
    ops::cummin(&d.array(), Scan::default());
    ops::cummin_axis(&d.array(), d.int(), Scan::default());
    ops::cumprod(&d.array(), Scan::default());
    ops::cumprod_axis(&d.array(), d.int(), Scan::default());
    ops::cumsum(&d.array(), Scan::default());
    ops::cumsum_axis(&d.array(), d.int(), Scan::default());
    ops::degrees(&d.array());
    ops::depends(&d.arrays(), &d.arrays());
    ops::diag(&d.array(), d.int());
    ops::diagonal(&d.array(), d.int(), d.int(), d.int());
    ops::diff(&d.array(), d.int(), d.int());
    ops::divide(&d.array(), &d.array());
    ops::divmod(&d.array(), &d.array());
    ops::equal(&d.array(), &d.array());
    ops::erf(&d.array());
    ops::erfinv(&d.array());
    ops::exp(&d.array());
    ops::expand_dims(&d.array(), d.int());
    ops::expand_dims_axes(&d.array(), &d.ints());
    ops::expm1(&d.array());
    ops::eye(d.int(), d.int(), d.int(), d.dtype());
    ops::flatten(&d.array(), d.int(), d.int());
    ops::flip(&d.array(), d.int());
    ops::flip_all(&d.array());
    ops::flip_axes(&d.array(), &d.ints());
    ops::floor(&d.array());
    ops::floor_divide(&d.array(), &d.array());
    ops::from_fp8(&d.array(), d.dtype());
    ops::full(&d.shape(), &d.array());
    ops::full_like(&d.array(), &d.array());
    ops::gather(&d.array(), &d.index_arrays(), &d.ints(), &d.ints());
    ops::gather_mm(&d.array(), &d.array(), d.maybe(Draw::array).as_ref(), d.maybe(Draw::array).as_ref(), d.flag());
    ops::greater(&d.array(), &d.array());
    ops::greater_equal(&d.array(), &d.array());
    ops::hadamard_transform(&d.array(), d.maybe(Draw::float32));
    ops::hamming(d.int());
    ops::hanning(d.int());
    ops::identity(d.int(), d.dtype());
    ops::imag(&d.array());
    ops::inner(&d.array(), &d.array());
    ops::isclose(&d.array(), &d.array(), Tolerance::default());
    ops::isfinite(&d.array());
    ops::isinf(&d.array());
    ops::isnan(&d.array());
    ops::isneginf(&d.array());
    ops::isposinf(&d.array());
    ops::kron(&d.array(), &d.array());
    ops::left_shift(&d.array(), &d.array());
    ops::less(&d.array(), &d.array());
    ops::less_equal(&d.array(), &d.array());
    ops::linspace(d.float(), d.float(), d.int(), d.flag(), d.dtype());
    ops::log(&d.array());
    ops::log10(&d.array());
    ops::log1p(&d.array());
    ops::log2(&d.array());
    ops::logaddexp(&d.array(), &d.array());
    ops::logcumsumexp(&d.array(), Scan::default());
    ops::logcumsumexp_axis(&d.array(), d.int(), Scan::default());
    ops::logical_and(&d.array(), &d.array());
    ops::logical_not(&d.array());
    ops::logical_or(&d.array(), &d.array());
    ops::logical_xor(&d.array(), &d.array());
    ops::logsumexp(&d.array());
    ops::logsumexp_axes(&d.array(), &d.ints(), d.flag());
    ops::logsumexp_axis(&d.array(), d.int(), d.flag());
    ops::masked_scatter(&d.array(), &d.array(), &d.array());
    ops::matmul(&d.array(), &d.array());
    ops::matrix_transpose(&d.array());
    ops::max(&d.array());
    ops::max_axes(&d.array(), &d.ints(), d.flag());
    ops::max_axis(&d.array(), d.int(), d.flag());
    ops::maximum(&d.array(), &d.array());
    ops::mean(&d.array());
    ops::mean_axes(&d.array(), &d.ints(), d.flag());
    ops::mean_axis(&d.array(), d.int(), d.flag());
    ops::median(&d.array());
    ops::median_axes(&d.array(), &d.ints(), d.flag());
    ops::median_axis(&d.array(), d.int(), d.flag());
    ops::meshgrid(&d.arrays(), d.flag(), d.one_of(&[Indexing::Ij, Indexing::Xy]));
    ops::min(&d.array());
    ops::min_axes(&d.array(), &d.ints(), d.flag());
    ops::min_axis(&d.array(), d.int(), d.flag());
    ops::minimum(&d.array(), &d.array());
    ops::minmax(&d.array());
    ops::minmax_axes(&d.array(), &d.ints(), d.flag());
    ops::minmax_axis(&d.array(), d.int(), d.flag());
    ops::moveaxis(&d.array(), d.int(), d.int());
    ops::multiply(&d.array(), &d.array());
    ops::nan_to_num(&d.array(), d.float32(), d.maybe(Draw::float32), d.maybe(Draw::float32));
    ops::negative(&d.array());
    ops::not_equal(&d.array(), &d.array());
    ops::number_of_elements(&d.array(), &d.ints(), d.flag(), d.dtype());
    ops::ones(&d.shape(), d.dtype());
    ops::ones_like(&d.array());
    ops::outer(&d.array(), &d.array());
    ops::pad(&d.array(), &d.pairs(), d.maybe(Draw::array).as_ref(), d.pad_mode());
    ops::pad_axes(&d.array(), &d.ints(), &d.pairs(), d.maybe(Draw::array).as_ref(), d.pad_mode());
    ops::partition(&d.array(), d.int());
    ops::partition_axis(&d.array(), d.int(), d.int());
    ops::positive(&d.array());
    ops::power(&d.array(), &d.array());
    ops::prod(&d.array());
    ops::prod_axes(&d.array(), &d.ints(), d.flag());
    ops::prod_axis(&d.array(), d.int(), d.flag());
    ops::put_along_axis(&d.array(), &d.indices(), &d.array(), d.int());
    ops::radians(&d.array());
    ops::real(&d.array());
    ops::reciprocal(&d.array());
    ops::remainder(&d.array(), &d.array());
    ops::repeat(&d.array(), d.int());
    ops::repeat_axis(&d.array(), d.int(), d.int());
    ops::reshape(&d.array(), &d.shape());
    ops::right_shift(&d.array(), &d.array());
    ops::roll(&d.array(), d.int());
    ops::roll_axes(&d.array(), &d.ints(), &d.ints());
    ops::roll_axis(&d.array(), d.int(), d.int());
    ops::round(&d.array(), d.int());
    ops::rsqrt(&d.array());
    ops::scatter(&d.array(), &d.index_arrays(), &d.array(), &d.ints());
    ops::scatter_add(&d.array(), &d.index_arrays(), &d.array(), &d.ints());
    ops::scatter_add_axis(&d.array(), &d.indices(), &d.array(), d.int());
    ops::scatter_max(&d.array(), &d.index_arrays(), &d.array(), &d.ints());
    ops::scatter_min(&d.array(), &d.index_arrays(), &d.array(), &d.ints());
    ops::scatter_prod(&d.array(), &d.index_arrays(), &d.array(), &d.ints());
    ops::searchsorted(&d.array(), &d.array(), d.side());
    ops::segmented_mm(&d.array(), &d.array(), &d.indices());
    ops::sigmoid(&d.array());
    ops::sign(&d.array());
    ops::sin(&d.array());
    ops::sinh(&d.array());
    ops::slice(&d.array(), &d.ints(), &d.ints(), &d.ints());
    ops::slice_dynamic(&d.array(), &d.indices(), &d.ints(), &d.ints());
    ops::slice_update(&d.array(), &d.array(), &d.ints(), &d.ints(), &d.ints());
    ops::slice_update_add(&d.array(), &d.array(), &d.ints(), &d.ints(), &d.ints());
    ops::slice_update_dynamic(&d.array(), &d.array(), &d.indices(), &d.ints());
    ops::slice_update_max(&d.array(), &d.array(), &d.ints(), &d.ints(), &d.ints());
    ops::slice_update_min(&d.array(), &d.array(), &d.ints(), &d.ints(), &d.ints());
    ops::slice_update_prod(&d.array(), &d.array(), &d.ints(), &d.ints(), &d.ints());
    ops::softmax(&d.array(), d.int(), d.flag());
    ops::softmax_all(&d.array(), d.flag());
    ops::softmax_axes(&d.array(), &d.ints(), d.flag());
    ops::sort(&d.array());
    ops::sort_axis(&d.array(), d.int());
    ops::split(&d.array(), d.int(), d.int());
    ops::split_at(&d.array(), &d.ints(), d.int());
    ops::sqrt(&d.array());
    ops::square(&d.array());
    ops::squeeze(&d.array(), d.int());
    ops::squeeze_all(&d.array());
    ops::squeeze_axes(&d.array(), &d.ints());
    ops::stack(&d.arrays(), d.int());
    ops::std(&d.array(), d.int());
    ops::std_axes(&d.array(), &d.ints(), d.flag(), d.int());
    ops::std_axis(&d.array(), d.int(), d.flag(), d.int());
    ops::stop_gradient(&d.array());
    ops::subtract(&d.array(), &d.array());
    ops::sum(&d.array());
    ops::sum_axes(&d.array(), &d.ints(), d.flag());
    ops::sum_axis(&d.array(), d.int(), d.flag());
    ops::swapaxes(&d.array(), d.int(), d.int());
    ops::take(&d.array(), &d.indices(), d.int());
    ops::take_all(&d.array(), &d.indices());
    ops::take_along_axis(&d.array(), &d.indices(), d.int());
    ops::take_index(&d.array(), d.int(), d.int());
    ops::tan(&d.array());
    ops::tanh(&d.array());
    ops::tensordot(&d.array(), &d.array(), d.int());
    ops::tensordot_axes(&d.array(), &d.array(), &d.ints(), &d.ints());
    ops::tile(&d.array(), &d.ints());
    ops::to_fp8(&d.array());
    ops::topk(&d.array(), d.int());
    ops::topk_axis(&d.array(), d.int(), d.int());
    ops::trace(&d.array(), d.int(), d.int(), d.int(), d.maybe(Draw::dtype));
    ops::transpose(&d.array(), &d.ints());
    ops::transpose_all(&d.array());
    ops::tri(d.int(), d.int(), d.int(), d.dtype());
    ops::tril(&d.array(), d.int());
    ops::triu(&d.array(), d.int());
    ops::trunc(&d.array());
    ops::unflatten(&d.array(), d.int(), &d.shape());
    ops::unique(&d.array(), d.int(), d.maybe(Draw::array).as_ref());
    ops::unique_values(&d.array(), d.int(), d.maybe(Draw::array).as_ref());
    ops::unstack(&d.array(), d.int());
    ops::var(&d.array(), d.int());
    ops::var_axes(&d.array(), &d.ints(), d.flag(), d.int());
    ops::var_axis(&d.array(), d.int(), d.flag(), d.int());
    ops::vecdot(&d.array(), &d.array(), d.int());
    ops::view(&d.array(), d.dtype());
    ops::where_(&d.array(), &d.array(), &d.array());
    ops::zeros(&d.shape(), d.dtype());
    ops::zeros_like(&d.array());
    quantize::dequantize(&d.quantized()?);
    quantize::dequantize_as(&d.quantized()?, d.dtype());
    quantize::from_fp8(&d.array(), d.dtype());
    quantize::gather_qmm(&d.array(), &d.quantized()?, Picks::all().lhs(&d.indices()).rhs(&d.indices()).transpose(d.flag()).sorted(d.flag()));
    quantize::quantize(&d.array(), d.format()?);
    quantize::quantize_scaled(&d.array(), &d.array());
    quantize::quantized_matmul(&d.array(), &d.quantized()?);
    quantize::quantized_matmul_untransposed(&d.array(), &d.quantized()?);
    quantize::to_fp8(&d.array());
    random::bernoulli(&d.array(), &d.shape(), d.key().as_ref());
    random::bits(&d.shape(), d.int(), d.key().as_ref());
    random::categorical(&d.array(), d.int(), d.key().as_ref());
    random::categorical_many(&d.array(), d.int(), d.int(), d.key().as_ref());
    random::categorical_shape(&d.array(), d.int(), &d.shape(), d.key().as_ref());
    random::gumbel(&d.shape(), d.dtype(), d.key().as_ref());
    random::key(d.below(1 << 40) as u64);
    random::laplace(&d.shape(), d.dtype(), d.float32(), d.float32(), d.key().as_ref());
    random::multivariate_normal(&d.array(), &d.array(), &d.shape(), d.dtype(), d.key().as_ref());
    random::normal(&d.shape(), d.dtype(), d.key().as_ref());
    random::normal_with(&d.shape(), d.dtype(), d.maybe(Draw::array).as_ref(), d.maybe(Draw::array).as_ref(), d.key().as_ref());
    random::permutation(&d.array(), d.int(), d.key().as_ref());
    random::permutation_of(d.int(), d.key().as_ref());
    random::randint(&d.array(), &d.array(), &d.shape(), d.dtype(), d.key().as_ref());
    random::split(&d.array());
    random::split_many(&d.array(), d.int());
    random::truncated_normal(&d.array(), &d.array(), &d.shape(), d.dtype(), d.key().as_ref());
    random::uniform(&d.shape(), d.dtype(), d.key().as_ref());
    random::uniform_between(&d.array(), &d.array(), &d.shape(), d.dtype(), d.key().as_ref());
}
