//! oxmlx for people who know `mlx.core`: what differs, and every name of MLX's Python module with what stands for it here.
//!
//! # What differs
//!
//! | `mlx.core` | oxmlx |
//! |---|---|
//! | `mx.exp(a)`, `a.exp()` | `ops::exp(&a)?`, `a.exp()?`: every function is a `Result` |
//! | `(a + b) * 2` | `((&a + &b)? * 2)?`: operators give a `Result` and take one, so that a chain needs few `?` |
//! | `a.sum()`, `a.sum(axis=-1)`, `a.sum(axis=(0, 1))` | `a.sum()`, `a.sum_axis(-1, false)`, `ops::sum_axes(&a, &[0, 1], false)` |
//! | `a[1:, None, ..., idx]`, `a[mask] = 0` | `a.get((1.., NewAxis, Ellipsis, &idx))`, `a.set(&mask, 0)`: see [`index`] |
//! | `a.shape == (2, 3)` | `a.shape() == [2, 3]` |
//! | `mx.array([1, 2])`: the dtype is looked for | `Array::vector(&[1i32, 2])`: it is that of the Rust type |
//! | `a.item()`, `a.tolist()` | `a.item::<f32>()`, `a.to_vec::<f32>()`: another type than the array's is an error |
//! | `print(a)` | `println!("{a}")` prints the same and evaluates; `{a:?}` is shape and dtype and does not |
//! | `mx.fast.rope(x, 64, traditional=False, base=1e4, scale=1.0, offset=3)` | `fast::rope(&x, &Rope::new(64, 1e4), 3)`: many settings are a type |
//! | `stream=mx.cpu` on every function | `Device::Cpu.scope(\|\| ..)`, `stream.scope(\|\| ..)` |
//! | one thread | any: [`Array`] is `Send + Sync` |
//! | an index out of range is undefined | an error where its value is known, else clamped: no foreign memory |
//! | `a[i] += 1` | `a.at(&i).add(1)`: twice where `i` names a place twice |
//! | `mx.random.seed(3)` holds for the thread | [`random::seed`] for the process; a key given is a key used, as there |
//!
//! Laziness is the same: see [`lazy_evaluation`](super::lazy_evaluation). So are transforms: see [`transforms`](super::transforms). A
//! training step in both:
//!
//! ```
//! use oxmlx::{Array, Result, ops, transforms};
//!
//! // def loss(w, x, y): return mx.mean(mx.square(x @ w - y))
//! fn loss(args: &[Array]) -> Result<Array> {
//!     let [w, x, y] = args else { unreachable!("three arguments") };
//!     (ops::matmul(x, w)? - y)?.square()?.mean()
//! }
//!
//! let x = Array::matrix(&[[1.0f32, 0.0], [0.0, 1.0], [1.0, 1.0]])?;
//! let y = Array::matrix(&[[2.0f32], [3.0], [5.0]])?;
//! let mut w = Array::zeros::<f32>((2, 1))?;
//! let step = transforms::value_and_grad(loss, &[0]);
//! for _ in 0..200 {
//!     let (_, gradients) = step(&[w.clone(), x.clone(), y.clone()])?;
//!     w = (&w - (&gradients[0] * 0.3f32)?)?;
//!     w.eval()?;
//! }
//! assert!(w.all_close(&Array::matrix(&[[2.0f32], [3.0]])?)?);
//! # Ok::<(), oxmlx::Error>(())
//! ```
//!
//! # Every name
//!
//! ## Functions and types
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `ArrayAt` | [`index::At`] |
//! | `ArrayIterator` | `for i in 0..n { a.get(i) }`, or [`ops::unstack`] |
//! | `ArrayLike` | `impl` [`Indices`](crate::index::Indices), [`IntoValues`](crate::index::IntoValues), [`Element`] |
//! | `Device` | [`Device`] |
//! | `DeviceType` | [`Device`] |
//! | `Dtype` | [`Dtype`] |
//! | `DtypeCategory` | [`dtype::DtypeCategory`] |
//! | `FunctionExporter` | [`transforms::Exporter`] |
//! | `PrintOptions` | [`array::set_print_precision`] |
//! | `Stream` | [`Stream`] |
//! | `StreamContext` | [`Stream::scope`] |
//! | `ThreadLocalStream` | not needed: arrays belong to no thread |
//! | `abs` | [`ops::abs`] |
//! | `acos` | [`ops::arccos`] |
//! | `acosh` | [`ops::arccosh`] |
//! | `add` | [`ops::add`] |
//! | `addmm` | [`ops::addmm`] |
//! | `all` | [`ops::all`], [`ops::all_axis`], [`ops::all_axes`] |
//! | `allclose` | [`ops::allclose`] |
//! | `any` | [`ops::any`], [`ops::any_axis`], [`ops::any_axes`] |
//! | `arange` | [`ops::arange`], [`ops::arange_i32`] |
//! | `arccos` | [`ops::arccos`] |
//! | `arccosh` | [`ops::arccosh`] |
//! | `arcsin` | [`ops::arcsin`] |
//! | `arcsinh` | [`ops::arcsinh`] |
//! | `arctan` | [`ops::arctan`] |
//! | `arctan2` | [`ops::arctan2`] |
//! | `arctanh` | [`ops::arctanh`] |
//! | `argmax` | [`ops::argmax`], [`ops::argmax_axis`] |
//! | `argmin` | [`ops::argmin`], [`ops::argmin_axis`] |
//! | `argpartition` | [`ops::argpartition`], [`ops::argpartition_axis`] |
//! | `argsort` | [`ops::argsort`], [`ops::argsort_axis`] |
//! | `array` | [`Array::from_slice`], [`Array::vector`], [`Array::matrix`], [`Array::scalar`] |
//! | `array_equal` | [`ops::array_equal`] |
//! | `as_strided` | [`ops::as_strided`] |
//! | `asarray` | [`Array::from_slice`] |
//! | `asin` | [`ops::arcsin`] |
//! | `asinh` | [`ops::arcsinh`] |
//! | `astype` | [`ops::astype`] |
//! | `async_eval` | [`async_eval`] |
//! | `atan` | [`ops::arctan`] |
//! | `atan2` | [`ops::arctan2`] |
//! | `atanh` | [`ops::arctanh`] |
//! | `atleast_1d` | [`ops::atleast_1d`] |
//! | `atleast_2d` | [`ops::atleast_2d`] |
//! | `atleast_3d` | [`ops::atleast_3d`] |
//! | `bartlett` | [`ops::bartlett`] |
//! | `bfloat16` | [`Dtype::Bfloat16`] |
//! | `bitwise_and` | [`ops::bitwise_and`] |
//! | `bitwise_invert` | [`ops::bitwise_invert`] |
//! | `bitwise_left_shift` | [`ops::left_shift`] |
//! | `bitwise_or` | [`ops::bitwise_or`] |
//! | `bitwise_right_shift` | [`ops::right_shift`] |
//! | `bitwise_xor` | [`ops::bitwise_xor`] |
//! | `blackman` | [`ops::blackman`] |
//! | `block_masked_mm` | [`ops::block_masked_mm`] |
//! | `bool_` | [`Dtype::Bool`] |
//! | `broadcast_arrays` | [`ops::broadcast_arrays`] |
//! | `broadcast_shapes` | [`shape::broadcast_shapes`] |
//! | `broadcast_to` | [`ops::broadcast_to`] |
//! | `can_cast` | [`dtype::promote_types`] equals the target |
//! | `ceil` | [`ops::ceil`] |
//! | `checkpoint` | [`transforms::checkpoint`] |
//! | `clear_cache` | [`memory::clear_cache`] |
//! | `clear_streams` | not needed: a dropped stream is used again |
//! | `clip` | [`ops::clip`] |
//! | `compile` | [`transforms::compile`], [`transforms::compile_shapeless`] |
//! | `complex64` | [`Dtype::Complex64`] |
//! | `complexfloating` | [`DtypeCategory::ComplexFloating`](crate::dtype::DtypeCategory::ComplexFloating) |
//! | `concat` | [`ops::concatenate`] |
//! | `concatenate` | [`ops::concatenate`] |
//! | `conj` | [`ops::conjugate`] |
//! | `conjugate` | [`ops::conjugate`] |
//! | `contiguous` | [`ops::contiguous`] |
//! | `conv1d` | [`ops::conv1d`] |
//! | `conv2d` | [`ops::conv2d`] |
//! | `conv3d` | [`ops::conv3d`] |
//! | `conv_general` | [`ops::conv_general`] |
//! | `conv_transpose1d` | [`ops::conv_transpose1d`] |
//! | `conv_transpose2d` | [`ops::conv_transpose2d`] |
//! | `conv_transpose3d` | [`ops::conv_transpose3d`] |
//! | `convolve` | [`ops::conv1d`] of shapes `[1, n, 1]` and `[1, k, 1]`, with `flip` |
//! | `cos` | [`ops::cos`] |
//! | `cosh` | [`ops::cosh`] |
//! | `count_nonzero` | [`ops::count_nonzero`], [`ops::count_nonzero_axis`], [`ops::count_nonzero_axes`] |
//! | `cpu` | [`Device::Cpu`] |
//! | `cummax` | [`ops::cummax`], [`ops::cummax_axis`] |
//! | `cummin` | [`ops::cummin`], [`ops::cummin_axis`] |
//! | `cumprod` | [`ops::cumprod`], [`ops::cumprod_axis`] |
//! | `cumsum` | [`ops::cumsum`], [`ops::cumsum_axis`] |
//! | `cumulative_prod` | [`ops::cumprod`] |
//! | `cumulative_sum` | [`ops::cumsum`] |
//! | `custom_function` | [`transforms::CustomFunction`], [`transforms::custom_vjp`] |
//! | `default_device` | [`Device::current`] |
//! | `default_stream` | [`Device::scope`] |
//! | `degrees` | [`ops::degrees`] |
//! | `depends` | [`ops::depends`] |
//! | `dequantize` | [`quantize::dequantize`] |
//! | `device_count` | [`Device::count`] |
//! | `device_info` | [`Device::info`] |
//! | `diag` | [`ops::diag`] |
//! | `diagonal` | [`ops::diagonal`] |
//! | `diff` | [`ops::diff`] |
//! | `disable_compile` | [`transforms::set_compile_mode`] |
//! | `divide` | [`ops::divide`] |
//! | `divmod` | [`ops::divmod`] |
//! | `e` | [`std::f32::consts::E`] |
//! | `einsum` | [`einsum::einsum`] |
//! | `einsum_path` | [`einsum::einsum_path`] |
//! | `empty` | [`ops::zeros`]: memory without values is never shown |
//! | `empty_like` | [`ops::zeros_like`] |
//! | `enable_compile` | [`transforms::set_compile_mode`] |
//! | `equal` | [`ops::equal`] |
//! | `erf` | [`ops::erf`] |
//! | `erfinv` | [`ops::erfinv`] |
//! | `euler_gamma` | `0.577_215_664_9` |
//! | `eval` | [`eval`], [`Array::eval`] |
//! | `exp` | [`ops::exp`] |
//! | `expand_dims` | [`ops::expand_dims`], [`ops::expand_dims_axes`] |
//! | `expm1` | [`ops::expm1`] |
//! | `export_function` | [`transforms::export_function`], [`transforms::export_steps`] |
//! | `export_to_dot` | from what [`transforms::export_steps`] tells |
//! | `exporter` | [`transforms::Exporter`] |
//! | `eye` | [`ops::eye`] |
//! | `finfo` | [`dtype::finfo`] |
//! | `flatten` | [`ops::flatten`] |
//! | `flip` | [`ops::flip`], [`ops::flip_axes`], [`ops::flip_all`] |
//! | `float16` | [`Dtype::Float16`] |
//! | `float32` | [`Dtype::Float32`] |
//! | `float64` | [`Dtype::Float64`] |
//! | `floating` | [`DtypeCategory::Floating`](crate::dtype::DtypeCategory::Floating) |
//! | `floor` | [`ops::floor`] |
//! | `floor_divide` | [`ops::floor_divide`] |
//! | `from_dlpack` | [`Array::from_bytes`] of the other library's memory |
//! | `from_fp8` | [`quantize::from_fp8`] |
//! | `full` | [`ops::full`] |
//! | `full_like` | [`ops::full_like`] |
//! | `gather_mm` | [`ops::gather_mm`] |
//! | `gather_qmm` | [`quantize::gather_qmm`] |
//! | `gather_qqmm` | [`quantize::gather_qqmm`] |
//! | `generic` | [`DtypeCategory::Generic`](crate::dtype::DtypeCategory::Generic) |
//! | `get_active_memory` | [`memory::active`] |
//! | `get_array_buffer_size` | [`memory::of_arrays`] |
//! | `get_cache_memory` | [`memory::cached`] |
//! | `get_memory_limit` | [`memory::limit`] |
//! | `get_peak_memory` | [`memory::peak`], [`memory::PeakMemory`] |
//! | `get_printoptions` | [`array::print_precision`] |
//! | `gpu` | [`Device::Gpu`] |
//! | `grad` | [`transforms::grad`], [`transforms::grad_of`] |
//! | `greater` | [`ops::greater`] |
//! | `greater_equal` | [`ops::greater_equal`] |
//! | `hadamard_transform` | [`ops::hadamard_transform`] |
//! | `hamming` | [`ops::hamming`] |
//! | `hanning` | [`ops::hanning`] |
//! | `identity` | [`ops::identity`] |
//! | `iinfo` | [`dtype::iinfo`] |
//! | `imag` | [`ops::imag`] |
//! | `import_function` | [`transforms::import_function`] |
//! | `inexact` | [`DtypeCategory::Inexact`](crate::dtype::DtypeCategory::Inexact) |
//! | `inf` | [`f32::INFINITY`] |
//! | `inner` | [`ops::inner`] |
//! | `int16` | [`Dtype::Int16`] |
//! | `int32` | [`Dtype::Int32`] |
//! | `int64` | [`Dtype::Int64`] |
//! | `int8` | [`Dtype::Int8`] |
//! | `integer` | [`DtypeCategory::Integer`](crate::dtype::DtypeCategory::Integer) |
//! | `is_available` | [`Device::is_available`] |
//! | `isclose` | [`ops::isclose`] |
//! | `isdtype` | [`dtype::kind_of`] |
//! | `isfinite` | [`ops::isfinite`] |
//! | `isinf` | [`ops::isinf`] |
//! | `isnan` | [`ops::isnan`] |
//! | `isneginf` | [`ops::isneginf`] |
//! | `isposinf` | [`ops::isposinf`] |
//! | `issubdtype` | [`dtype::issubdtype`] |
//! | `jvp` | [`transforms::jvp`] |
//! | `kron` | [`ops::kron`] |
//! | `left_shift` | [`ops::left_shift`] |
//! | `less` | [`ops::less`] |
//! | `less_equal` | [`ops::less_equal`] |
//! | `linspace` | [`ops::linspace`] |
//! | `load` | [`io::load_npy`], [`io::load_safetensors`], [`io::load_gguf`] |
//! | `log` | [`ops::log`] |
//! | `log10` | [`ops::log10`] |
//! | `log1p` | [`ops::log1p`] |
//! | `log2` | [`ops::log2`] |
//! | `logaddexp` | [`ops::logaddexp`] |
//! | `logcumsumexp` | [`ops::logcumsumexp`], [`ops::logcumsumexp_axis`] |
//! | `logical_and` | [`ops::logical_and`] |
//! | `logical_not` | [`ops::logical_not`] |
//! | `logical_or` | [`ops::logical_or`] |
//! | `logical_xor` | [`ops::logical_xor`] |
//! | `logsumexp` | [`ops::logsumexp`], [`ops::logsumexp_axis`], [`ops::logsumexp_axes`] |
//! | `matmul` | [`ops::matmul`] |
//! | `matrix_norm` | [`linalg::norm`] |
//! | `matrix_transpose` | [`ops::matrix_transpose`] |
//! | `max` | [`ops::max`], [`ops::max_axis`], [`ops::max_axes`] |
//! | `maximum` | [`ops::maximum`] |
//! | `mean` | [`ops::mean`], [`ops::mean_axis`], [`ops::mean_axes`] |
//! | `median` | [`ops::median`], [`ops::median_axis`], [`ops::median_axes`] |
//! | `meshgrid` | [`ops::meshgrid`] |
//! | `min` | [`ops::min`], [`ops::min_axis`], [`ops::min_axes`] |
//! | `minimum` | [`ops::minimum`] |
//! | `minmax` | [`ops::minmax`], [`ops::minmax_axis`], [`ops::minmax_axes`] |
//! | `moveaxis` | [`ops::moveaxis`] |
//! | `multiply` | [`ops::multiply`] |
//! | `nan` | [`f32::NAN`] |
//! | `nan_to_num` | [`ops::nan_to_num`] |
//! | `negative` | [`ops::negative`] |
//! | `new_stream` | [`Stream::new`] |
//! | `new_thread_local_stream` | [`Stream::new`] |
//! | `new_thread_unsafe_stream` | [`Stream::new`] |
//! | `newaxis` | [`index::NewAxis`] |
//! | `not_equal` | [`ops::not_equal`] |
//! | `number` | [`DtypeCategory::Number`](crate::dtype::DtypeCategory::Number) |
//! | `ones` | [`ops::ones`], [`Array::ones`] |
//! | `ones_like` | [`ops::ones_like`] |
//! | `outer` | [`ops::outer`] |
//! | `pad` | [`ops::pad`], [`ops::pad_axes`] |
//! | `partition` | [`ops::partition`], [`ops::partition_axis`] |
//! | `permute_dims` | [`ops::transpose`] |
//! | `pi` | [`std::f32::consts::PI`] |
//! | `positive` | [`ops::positive`] |
//! | `pow` | [`ops::power`] |
//! | `power` | [`ops::power`] |
//! | `printoptions` | [`array::set_print_precision`], and back |
//! | `prod` | [`ops::prod`], [`ops::prod_axis`], [`ops::prod_axes`] |
//! | `put_along_axis` | [`ops::put_along_axis`] |
//! | `qqmm` | [`quantize::qqmm`] |
//! | `quantize` | [`quantize::quantize`], [`quantize::quantize_scaled`] |
//! | `quantized_matmul` | [`quantize::quantized_matmul`], [`quantize::quantized_matmul_untransposed`] |
//! | `radians` | [`ops::radians`] |
//! | `real` | [`ops::real`] |
//! | `reciprocal` | [`ops::reciprocal`] |
//! | `remainder` | [`ops::remainder`] |
//! | `repeat` | [`ops::repeat`], [`ops::repeat_axis`] |
//! | `reset_peak_memory` | [`memory::reset_peak`] |
//! | `reshape` | [`ops::reshape`] |
//! | `result_type` | [`dtype::result_type`] |
//! | `right_shift` | [`ops::right_shift`] |
//! | `roll` | [`ops::roll`], [`ops::roll_axis`], [`ops::roll_axes`] |
//! | `round` | [`ops::round`] |
//! | `rsqrt` | [`ops::rsqrt`] |
//! | `save` | [`io::save_npy`] |
//! | `save_gguf` | [`io::save_gguf`] |
//! | `save_safetensors` | [`io::save_safetensors`] |
//! | `savez` | [`io::save_safetensors`], which holds several arrays too |
//! | `savez_compressed` | [`io::save_safetensors`] |
//! | `searchsorted` | [`ops::searchsorted`] |
//! | `segmented_mm` | [`ops::segmented_mm`] |
//! | `set_cache_limit` | [`memory::set_cache_limit`] |
//! | `set_default_device` | [`Device::set_default`] |
//! | `set_default_stream` | [`Stream::scope`] |
//! | `set_memory_limit` | [`memory::set_limit`] |
//! | `set_printoptions` | [`array::set_print_precision`] |
//! | `set_wired_limit` | [`memory::set_wired_limit`] |
//! | `sigmoid` | [`ops::sigmoid`] |
//! | `sign` | [`ops::sign`] |
//! | `signedinteger` | [`DtypeCategory::SignedInteger`](crate::dtype::DtypeCategory::SignedInteger) |
//! | `sin` | [`ops::sin`] |
//! | `sinh` | [`ops::sinh`] |
//! | `slice` | [`ops::slice`], [`ops::slice_dynamic`] |
//! | `slice_update` | [`ops::slice_update`], [`ops::slice_update_dynamic`] |
//! | `softmax` | [`ops::softmax`], [`ops::softmax_all`], [`ops::softmax_axes`] |
//! | `sort` | [`ops::sort`], [`ops::sort_axis`] |
//! | `split` | [`ops::split`], [`ops::split_at`] |
//! | `sqrt` | [`ops::sqrt`] |
//! | `square` | [`ops::square`] |
//! | `squeeze` | [`ops::squeeze`], [`ops::squeeze_all`], [`ops::squeeze_axes`] |
//! | `stack` | [`ops::stack`] |
//! | `std` | [`ops::std`], [`ops::std_axis`], [`ops::std_axes`] |
//! | `stop_gradient` | [`ops::stop_gradient`] |
//! | `stream` | [`Stream::scope`], [`Device::scope`] |
//! | `subtract` | [`ops::subtract`] |
//! | `sum` | [`ops::sum`], [`ops::sum_axis`], [`ops::sum_axes`] |
//! | `swapaxes` | [`ops::swapaxes`] |
//! | `synchronize` | [`stream::synchronize`], [`Stream::synchronize`] |
//! | `take` | [`ops::take`], [`ops::take_all`], [`ops::take_index`] |
//! | `take_along_axis` | [`ops::take_along_axis`] |
//! | `tan` | [`ops::tan`] |
//! | `tanh` | [`ops::tanh`] |
//! | `tensordot` | [`ops::tensordot`], [`ops::tensordot_axes`] |
//! | `tile` | [`ops::tile`] |
//! | `to_fp8` | [`quantize::to_fp8`] |
//! | `topk` | [`ops::topk`], [`ops::topk_axis`] |
//! | `trace` | [`ops::trace`] |
//! | `transpose` | [`ops::transpose_all`], [`ops::transpose`] |
//! | `tri` | [`ops::tri`] |
//! | `tril` | [`ops::tril`] |
//! | `triu` | [`ops::triu`] |
//! | `trunc` | [`ops::trunc`] |
//! | `uint16` | [`Dtype::Uint16`] |
//! | `uint32` | [`Dtype::Uint32`] |
//! | `uint64` | [`Dtype::Uint64`] |
//! | `uint8` | [`Dtype::Uint8`] |
//! | `unflatten` | [`ops::unflatten`] |
//! | `unique` | [`ops::unique`] |
//! | `unsignedinteger` | [`DtypeCategory::UnsignedInteger`](crate::dtype::DtypeCategory::UnsignedInteger) |
//! | `unstack` | [`ops::unstack`] |
//! | `value_and_grad` | [`transforms::value_and_grad`], [`transforms::value_and_grad_with_aux`] |
//! | `var` | [`ops::var`], [`ops::var_axis`], [`ops::var_axes`] |
//! | `vecdot` | [`ops::vecdot`] |
//! | `view` | [`ops::view`] |
//! | `vjp` | [`transforms::vjp`] |
//! | `vmap` | [`transforms::vmap`], [`transforms::vmap_all`] |
//! | `where` | [`ops::where_`] |
//! | `zeros` | [`ops::zeros`], [`Array::zeros`] |
//! | `zeros_like` | [`ops::zeros_like`] |
//!
//! ## `mlx.core.fast`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `fast.cross_entropy` | [`fast::cross_entropy`] |
//! | `fast.cuda_kernel` | [`kernel::Builder::cuda`] |
//! | `fast.gated_delta_update` | [`fast::gated_delta_update`] |
//! | `fast.layer_norm` | [`fast::layer_norm`] |
//! | `fast.metal_kernel` | [`kernel::Builder::metal`] |
//! | `fast.precompiled_cuda_kernel` | [`kernel::Source::compiled`] |
//! | `fast.rms_norm` | [`fast::rms_norm`] |
//! | `fast.rope` | [`fast::rope`], [`fast::rope_offsets`] |
//! | `fast.scaled_dot_product_attention` | [`fast::scaled_dot_product_attention`], [`fast::attention`] |
//!
//! ## `mlx.core.fft`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `fft.fft` | [`fft::fft`] |
//! | `fft.fft2` | [`fft::fft2`] |
//! | `fft.fftfreq` | [`fft::fftfreq`] |
//! | `fft.fftn` | [`fft::fftn`] |
//! | `fft.fftshift` | [`fft::fftshift`] |
//! | `fft.ifft` | [`fft::ifft`] |
//! | `fft.ifft2` | [`fft::ifft2`] |
//! | `fft.ifftn` | [`fft::ifftn`] |
//! | `fft.ifftshift` | [`fft::ifftshift`] |
//! | `fft.irfft` | [`fft::irfft`] |
//! | `fft.irfft2` | [`fft::irfft2`] |
//! | `fft.irfftn` | [`fft::irfftn`] |
//! | `fft.istft` | [`fft::istft`] |
//! | `fft.rfft` | [`fft::rfft`] |
//! | `fft.rfft2` | [`fft::rfft2`] |
//! | `fft.rfftfreq` | [`fft::rfftfreq`] |
//! | `fft.rfftn` | [`fft::rfftn`] |
//! | `fft.stft` | [`fft::stft`] |
//!
//! ## `mlx.core.linalg`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `linalg.cholesky` | [`linalg::cholesky`] |
//! | `linalg.cholesky_inv` | [`linalg::cholesky_inv`] |
//! | `linalg.cross` | [`linalg::cross`] |
//! | `linalg.det` | [`linalg::det`] |
//! | `linalg.eig` | [`linalg::eig`] |
//! | `linalg.eigh` | [`linalg::eigh`] |
//! | `linalg.eigvals` | [`linalg::eigvals`] |
//! | `linalg.eigvalsh` | [`linalg::eigvalsh`] |
//! | `linalg.inv` | [`linalg::inv`] |
//! | `linalg.lu` | [`linalg::lu`] |
//! | `linalg.lu_factor` | [`linalg::lu_factor`] |
//! | `linalg.norm` | [`linalg::norm`] |
//! | `linalg.pinv` | [`linalg::pinv`] |
//! | `linalg.qr` | [`linalg::qr`] |
//! | `linalg.slogdet` | [`linalg::slogdet`] |
//! | `linalg.solve` | [`linalg::solve`] |
//! | `linalg.solve_triangular` | [`linalg::solve_triangular`] |
//! | `linalg.svd` | [`linalg::svd`], [`linalg::singular_values`] |
//! | `linalg.tri_inv` | [`linalg::tri_inv`] |
//!
//! ## `mlx.core.random`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `random.bernoulli` | [`random::bernoulli`] |
//! | `random.categorical` | [`random::categorical`], [`random::categorical_many`], [`random::categorical_shape`] |
//! | `random.gumbel` | [`random::gumbel`] |
//! | `random.key` | [`random::key`] |
//! | `random.laplace` | [`random::laplace`] |
//! | `random.multivariate_normal` | [`random::multivariate_normal`] |
//! | `random.normal` | [`random::normal`], [`random::normal_with`] |
//! | `random.permutation` | [`random::permutation`], [`random::permutation_of`] |
//! | `random.randint` | [`random::randint`] |
//! | `random.seed` | [`random::seed`] |
//! | `random.split` | [`random::split`], [`random::split_many`] |
//! | `random.truncated_normal` | [`random::truncated_normal`] |
//! | `random.uniform` | [`random::uniform`], [`random::uniform_between`] |
//!
//! ## `mlx.core.distributed`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `distributed.Group` | [`distributed::Group`] |
//! | `distributed.all_gather` | [`distributed::Group::all_gather`] |
//! | `distributed.all_max` | [`distributed::Group::all_max`] |
//! | `distributed.all_min` | [`distributed::Group::all_min`] |
//! | `distributed.all_sum` | [`distributed::Group::all_sum`] |
//! | `distributed.init` | [`distributed::init`], [`distributed::init_strict`] |
//! | `distributed.is_available` | [`distributed::is_available`] |
//! | `distributed.recv` | [`distributed::Group::recv`] |
//! | `distributed.recv_like` | [`distributed::Group::recv_like`] |
//! | `distributed.send` | [`distributed::Group::send`] |
//! | `distributed.sum_scatter` | [`distributed::Group::sum_scatter`] |
//!
//! ## `mlx.core.cuda`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `cuda.is_available` | [`build_info::BACKEND`] |
//!
//! ## `mlx.core.metal`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `metal.clear_cache` | [`memory::clear_cache`] |
//! | `metal.device_info` | [`Device::info`] |
//! | `metal.get_active_memory` | [`memory::active`] |
//! | `metal.get_cache_memory` | [`memory::cached`] |
//! | `metal.get_peak_memory` | [`memory::peak`] |
//! | `metal.is_available` | [`build_info::BACKEND`] |
//! | `metal.reset_peak_memory` | [`memory::reset_peak`] |
//! | `metal.set_cache_limit` | [`memory::set_cache_limit`] |
//! | `metal.set_memory_limit` | [`memory::set_limit`] |
//! | `metal.set_wired_limit` | [`memory::set_wired_limit`] |
//! | `metal.start_capture` | not to be had: Xcode's Instruments records a running program |
//! | `metal.stop_capture` | as `metal.start_capture` |
//!
//! ## `mlx.core.array`
//!
//! | `mlx.core` | here |
//! |---|---|
//! | `array.T` | [`Array::transpose`] |
//! | `array.abs` | [`Array::abs`] |
//! | `array.all` | [`Array::all`], [`Array::all_axis`] |
//! | `array.any` | [`Array::any`], [`Array::any_axis`] |
//! | `array.argmax` | [`Array::argmax`], [`Array::argmax_axis`] |
//! | `array.argmin` | [`Array::argmin`], [`Array::argmin_axis`] |
//! | `array.astype` | [`Array::astype`] |
//! | `array.at` | [`Array::at`] |
//! | `array.conj` | [`Array::conjugate`] |
//! | `array.cos` | [`Array::cos`] |
//! | `array.cummax` | [`ops::cummax`], [`ops::cummax_axis`] |
//! | `array.cummin` | [`ops::cummin`], [`ops::cummin_axis`] |
//! | `array.cumprod` | [`ops::cumprod`], [`ops::cumprod_axis`] |
//! | `array.cumsum` | [`ops::cumsum`], [`ops::cumsum_axis`] |
//! | `array.diag` | [`ops::diag`] |
//! | `array.diagonal` | [`Array::diagonal`] |
//! | `array.dtype` | [`Array::dtype`] |
//! | `array.exp` | [`Array::exp`] |
//! | `array.flatten` | [`Array::flatten`] |
//! | `array.imag` | [`Array::imag`] |
//! | `array.item` | [`Array::item`] |
//! | `array.itemsize` | [`Dtype::size`] |
//! | `array.log` | [`Array::log`] |
//! | `array.log10` | [`Array::log10`] |
//! | `array.log1p` | [`Array::log1p`] |
//! | `array.log2` | [`Array::log2`] |
//! | `array.logcumsumexp` | [`ops::logcumsumexp`], [`ops::logcumsumexp_axis`] |
//! | `array.logsumexp` | [`Array::logsumexp`] |
//! | `array.mT` | [`ops::matrix_transpose`] |
//! | `array.max` | [`Array::max`], [`Array::max_axis`] |
//! | `array.mean` | [`Array::mean`], [`Array::mean_axis`] |
//! | `array.min` | [`Array::min`], [`Array::min_axis`] |
//! | `array.moveaxis` | [`Array::moveaxis`] |
//! | `array.nbytes` | [`Array::nbytes`] |
//! | `array.ndim` | [`Array::ndim`] |
//! | `array.prod` | [`Array::prod`], [`Array::prod_axis`] |
//! | `array.real` | [`Array::real`] |
//! | `array.reciprocal` | [`Array::reciprocal`] |
//! | `array.reshape` | [`Array::reshape`] |
//! | `array.round` | [`Array::round`] |
//! | `array.rsqrt` | [`Array::rsqrt`] |
//! | `array.shape` | [`Array::shape`], [`Array::dim`] |
//! | `array.sin` | [`Array::sin`] |
//! | `array.size` | [`Array::size`] |
//! | `array.split` | [`Array::split`] |
//! | `array.sqrt` | [`Array::sqrt`] |
//! | `array.square` | [`Array::square`] |
//! | `array.squeeze` | [`Array::squeeze`] |
//! | `array.std` | [`Array::std`], [`ops::std_axis`] |
//! | `array.sum` | [`Array::sum`], [`Array::sum_axis`] |
//! | `array.swapaxes` | [`Array::swapaxes`] |
//! | `array.tolist` | [`Array::to_vec`], [`Array::try_as_slice`] |
//! | `array.transpose` | [`Array::transpose`], [`Array::transpose_axes`] |
//! | `array.var` | [`Array::var`], [`ops::var_axis`] |
//! | `array.view` | [`Array::view`] |

#[allow(unused_imports, reason = "the names that the links above begin with")]
use crate::{
    Array, Device, Dtype, Element, Stream, array, async_eval, build_info, distributed, dtype, einsum, eval, fast, fft,
    index, io, kernel, linalg, memory, ops, quantize, random, shape, stream, transforms,
};
