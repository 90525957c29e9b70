//! What takes more than one call: transforms over functions of the table, streams, indexing, kernels, memory of others.
#![allow(unsafe_code)] // importing a function trusts its file, which was written here

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxmlx::distributed::{self, Backend};
use oxmlx::fast::{Attention, GatedDelta, Rope};
use oxmlx::fused::{
    CachedAttention, Decoder, DecoderLayer, KvBuffers, Matrix, Norm, attention_rows, cached_attention, gated_mlp,
    matmul_add, norm_matmuls,
};
use oxmlx::index::{Index, Slice};
use oxmlx::io::GgufValue;
use oxmlx::kernel::{Accepts, Constant, Kernel, for_each_chunk, stock};
use oxmlx::memory::PeakMemory;
use oxmlx::quantize::{Affine, Format, Operand, Picks, Quantized};
use oxmlx::storage::StorageExportOptions;
use oxmlx::storage::dlpack::DlpackOptions;
use oxmlx::transforms::{self, CustomFunction, Exporter};
use oxmlx::{Array, Device, Dtype, Result, Stream, fast, io, ops, quantize, stream};

use crate::draw::Draw;
use crate::registry::{Entry, Outputs as _};
use crate::table::TABLE;

/// What they are called and what they do. Names of functions are those of the table, which leaves them to this list.
pub(crate) const PROGRAMS: &[Entry] = &[
    ("transforms::grad", |d| over(d, |d, f, x| transforms::grad(move |x: &[Array]| f.scalar(x), &places(d))(x))),
    ("transforms::grad_of", |d| {
        over(d, |_, f, x| match x {
            [] => Ok(vec![]),
            [x, ..] => Ok(vec![transforms::grad_of(move |x: &Array| f.scalar(std::slice::from_ref(x)))(x)?]),
        })
    }),
    ("transforms::value_and_grad", |d| {
        over(d, |d, f, x| {
            let (value, gradients) = transforms::value_and_grad(move |x: &[Array]| f.scalar(x), &places(d))(x)?;
            Ok([vec![value], gradients].concat())
        })
    }),
    ("transforms::value_and_grad_with_aux", |d| {
        over(d, |d, f, x| {
            let both = move |x: &[Array]| Ok((f.scalar(x)?, f.call(x)?));
            let (value, aux, gradients) = transforms::value_and_grad_with_aux(both, &places(d))(x)?;
            Ok([vec![value], aux, gradients].concat())
        })
    }),
    ("transforms::vjp", |d| {
        over(d, |d, f, x| {
            let cotangents = like_outputs(d, &f, x)?;
            transforms::vjp(move |x| f.call(x), x, &cotangents).map(|(a, b)| [a, b].concat())
        })
    }),
    ("transforms::jvp", |d| {
        over(d, |d, f, x| {
            let tangents = if d.below(4) == 0 { d.arrays() } else { ones_like(x)? };
            transforms::jvp(move |x| f.call(x), x, &tangents).map(|(a, b)| [a, b].concat())
        })
    }),
    ("transforms::vmap", |d| {
        over(d, |d, f, x| {
            let ins: Vec<Option<i32>> = x.iter().map(|_| d.axis()).collect();
            let outs = vec![d.axis(); f.count];
            transforms::vmap(move |x: &[Array]| f.first(x), &ins, &outs)(x)
        })
    }),
    ("transforms::vmap_all", |d| {
        over(d, |_, f, x| Ok(vec![transforms::vmap_all(move |x: &[Array]| f.first(x)?.one())(x)?]))
    }),
    // Compiled, called with what it was traced for and with others.
    ("transforms::compile", |d| {
        over(d, |d, f, x| {
            let compiled = transforms::compile(move |x| f.call(x))?;
            let mut all = compiled.call(x)?;
            all.extend(compiled.call(&d.arrays()).unwrap_or_default());
            all.extend(compiled.call(x)?);
            Ok(all)
        })
    }),
    ("transforms::compile_shapeless", |d| {
        over(d, |d, f, x| {
            let compiled = transforms::compile_shapeless(move |x| f.call(x))?;
            let mut all = compiled.call(x)?;
            let other: Vec<Array> = x.iter().map(|x| other_shape(d, x)).collect::<Result<_>>()?;
            all.extend(compiled.call(&other).unwrap_or_default());
            Ok(all)
        })
    }),
    ("transforms::checkpoint", |d| {
        over(d, |_, f, x| {
            let again = transforms::checkpoint(move |x: &[Array]| f.call(x));
            let slope = |x: &[Array]| ops::sum(&ops::astype(&again(x)?.one()?, Dtype::Float32)?);
            let mut all = transforms::grad(slope, &[0])(x)?;
            all.extend(again(x)?);
            Ok(all)
        })
    }),
    ("transforms::custom_vjp", |d| {
        over(d, |d, f, x| {
            let rule = Traced::draw(d);
            let custom = transforms::custom_vjp(move |x: &[Array]| f.call(x), move |x, _, _| rule.call(x));
            transforms::grad(move |x: &[Array]| ops::sum(&custom.call(x)?.one()?), &places(d))(x)
        })
    }),
    ("CustomFunction::call", |d| {
        over(d, |d, f, x| {
            let rules = [Traced::draw(d), Traced::draw(d), Traced::draw(d)];
            let [a, b, c] = rules;
            let axis = d.axis();
            let custom = CustomFunction::new(move |x: &[Array]| f.call(x))
                .vjp(move |_, cotangents, _| a.call(cotangents))
                .jvp(move |_, tangents, _| b.call(tangents))
                .vmap(move |x, _| c.call(x).map(|out| (out.clone(), vec![axis; out.len()])));
            match d.below(4) {
                0 => custom.call(x),
                1 => transforms::jvp(move |x| custom.call(x), x, x).map(|(a, b)| [a, b].concat()),
                2 => transforms::vmap(move |x: &[Array]| custom.call(x), &vec![Some(0); x.len()], &[axis])(x),
                _ => transforms::grad(move |x: &[Array]| ops::sum(&custom.call(x)?.one()?), &places(d))(x),
            }
        })
    }),
    ("Exporter", |d| {
        let shapeless = d.flag();
        over(d, |d, f, x| {
            let file = tempfile::NamedTempFile::new().map_err(io_error)?;
            // transforms::export_function, with more than one trace.
            let mut exporter = Exporter::with_names(file.path(), move |x, _| f.call(x), shapeless, "fuzz")?;
            exporter.add(x, &[])?;
            let _ = exporter.add(&d.arrays(), &[("named", d.array())]);
            exporter.close()?;
            // Imported: what transforms::import_function gives.
            // SAFETY: MLX wrote the file, above.
            let imported = unsafe { transforms::import_function(file.path()) }?;
            imported.metadata()?;
            let _ = imported.call(&d.arrays(), &[("other", d.array())]);
            imported.call(x, &[])
        })
    }),
    ("transforms::export_steps", |d| {
        let shapeless = d.flag();
        over(d, |_, f, x| {
            transforms::export_steps(move |x, _| f.call(x), x, &[], shapeless)?;
            Ok(vec![])
        })
    }),
    ("Array::get", |d| {
        let (arrays, x) = (d.index_sources(), d.array());
        Ok(vec![x.get(indices(d, &arrays))?])
    }),
    ("Array::set", |d| {
        let (arrays, mut x) = (d.index_sources(), d.array());
        let at = indices(d, &arrays);
        if d.flag() {
            x.set(at, d.float())?
        } else {
            x.set(at, d.array())?
        }
        Ok(vec![x])
    }),
    // At: all of its changes.
    ("Array::at", |d| {
        let (arrays, x, y) = (d.index_sources(), d.array(), d.array());
        let at = x.at(indices(d, &arrays));
        Ok(vec![match d.below(7) {
            0 => at.set(&y),
            1 => at.add(&y),
            2 => at.multiply(&y),
            3 => at.maximum(&y),
            4 => at.minimum(&y),
            5 => at.subtract(&y),
            _ => at.divide(&y),
        }?])
    }),
    ("operators", |d| {
        let (x, y) = (d.array(), d.array());
        Ok(vec![match d.below(7) {
            0 => &x + &y,
            1 => &x - &y,
            2 => &x * &y,
            3 => &x / &y,
            4 => &x % &y,
            5 => -&x,
            _ => (&x - &y) * &x,
        }?])
    }),
    ("Display", |d| {
        use std::fmt::Write as _;
        let (x, mut text) = (d.array(), String::new());
        let _ = write!(text, "{x} {x:?} {:?}", x.dim(d.int()));
        Ok(vec![])
    }),
    // Stream and Device, nested; an array of one in another.
    ("Stream", |d| {
        let streams = [Stream::new(d.device())?, Stream::new(d.device())?];
        let (first, second) = (Traced::draw(d), Traced::draw(d));
        let x = d.arrays();
        let made = streams[0].scope(|| first.call(&x))??;
        if d.flag() {
            oxmlx::async_eval(&made.iter().filter(|a| a.size() < 1 << 16).cloned().collect::<Vec<_>>())?;
        }
        let mut all = streams[1].scope(|| Device::Cpu.scope(|| second.call(&made)))???;
        d.drew_huge |= first.huge() | second.huge();
        if d.flag() {
            streams[d.below(2)].synchronize()?;
            stream::synchronize()?;
        }
        all.extend(made);
        Ok(all)
    }),
    ("threads", |d| {
        let (f, x) = (Traced::draw(d), d.arrays());
        let mut out = vec![];
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| f.call(&x))).collect();
            for thread in threads {
                out.extend(thread.join().expect("no call panics").unwrap_or_default());
            }
        });
        d.drew_huge |= f.huge();
        Ok(out)
    }),
    ("Kernel", kernel),
    ("stock", stock_kernels),
    ("StorageView", |d| {
        let x = d.array();
        let options = StorageExportOptions::default().wait_until_available(d.flag()).require_row_contiguous(d.flag());
        let Ok(view) = x.storage_view(&options) else { return Ok(vec![x]) };
        let _ = (
            view.as_slice::<f32>().map(<[f32]>::len),
            view.as_bytes().map(<[u8]>::len),
            view.as_ndarray::<f32>().is_ok(),
        );
        let how = DlpackOptions::default().accept_writable(d.flag()).keep_managed(d.flag());
        // Tensor and LegacyTensor, there and back.
        let mut all = vec![Array::from_dlpack(view.to_dlpack(&how).map_err(foreign)?)?.0];
        all.push(Array::from_dlpack_legacy(view.to_dlpack_legacy(&how).map_err(foreign)?)?.0);
        Ok(all)
    }),
    // Array::metal_storage_view, Array::from_mmap: not here, or of files.
    ("Array::from_vec", |d| Ok(vec![Array::from_vec(d.floats(), d.shape())?.0])),
    ("Array::from_owner", |d| {
        let (bytes, a, b) = (d.bytes(), d.below(64), d.below(64));
        Ok(vec![Array::from_owner(bytes, a..b, d.shape(), d.dtype())?.0])
    }),
    ("Array::from_ndarray", |d| {
        let values = ndarray::ArrayD::<f32>::zeros(vec![d.below(3); d.below(5)]);
        let x = Array::from_ndarray(&values.t())?;
        x.to_ndarray::<f32>()?;
        Ok(vec![x])
    }),
    ("Array::full", |d| Ok(vec![Array::full(d.shape(), d.float32())?])),
    ("Array::matrix", |d| Ok(vec![Array::matrix(&[[d.float32(); 3], [d.float32(); 3]])?, Array::scalar(d.float32())?])),
    ("io::save_safetensors_bytes", |d| {
        let (x, y) = (d.array(), d.array());
        let bytes = io::save_safetensors_bytes(&[("x", x), (d.name(), y)], &[(d.name(), d.name())])?;
        Ok(io::load_safetensors_bytes(bytes)?.arrays.into_iter().map(|(_, a)| a).collect())
    }),
    ("io::save_gguf_bytes", |d| {
        let values =
            [GgufValue::Array(d.array()), GgufValue::Text(d.name().into()), GgufValue::Texts(vec![d.name().into()])];
        let [a, b, c] = values;
        let bytes =
            io::save_gguf_bytes(&[("x", d.array()), (d.name(), d.array())], &[(d.name(), a), ("b", b), ("c", c)])?;
        Ok(io::load_gguf_bytes(&bytes)?.arrays.into_iter().map(|(_, a)| a).collect())
    }),
    // Paths and streams: io::load_gguf, io::load_npy, io::load_safetensors, io::save_gguf, io::save_safetensors,
    // io::load_gguf_from, io::load_safetensors_from, io::save_gguf_to, io::save_safetensors_to, io::load_npy_bytes.
    ("io::save_npy", |d| {
        let file = tempfile::NamedTempFile::new().map_err(io_error)?;
        let x = d.array();
        match d.below(3) {
            0 => io::save_npy(file.path(), &x)?,
            1 => io::save_gguf(file.path(), &[("x", x.clone())], &[])?,
            _ => io::save_safetensors(file.path(), &[("x", x.clone())], &[])?,
        }
        let mut bytes = Vec::new();
        io::save_npy_to(&mut bytes, &x)?;
        let mut all = vec![io::load_npy_from(&bytes[..])?];
        all.extend(io::load_npy(file.path()));
        all.extend(io::load_gguf(file.path()).into_iter().flat_map(|f| f.arrays.into_iter().map(|(_, a)| a)));
        all.extend(io::load_safetensors(file.path()).into_iter().flat_map(|f| f.arrays.into_iter().map(|(_, a)| a)));
        Ok(all)
    }),
    ("quantize::qqmm", |d| {
        let (x, w, q) = (d.array(), d.array(), d.quantized()?);
        let operand = if d.flag() {
            Operand::Quantized(&q)
        } else {
            Operand::Plain { weight: &w, format: d.format()?, global_scale: None }
        };
        Ok(vec![quantize::qqmm(&x, operand, d.maybe(Draw::array).as_ref())?])
    }),
    ("quantize::gather_qqmm", |d| {
        let (x, q, i) = (d.array(), d.quantized()?, d.indices());
        let picks = Picks::all().lhs(&i).rhs(&i).sorted(d.flag());
        Ok(vec![quantize::gather_qqmm(&x, Operand::Quantized(&q), picks, d.maybe(Draw::array).as_ref())?])
    }),
    ("Quantized::take", |d| {
        let q = if d.flag() {
            d.quantized()?
        } else {
            Quantized::affine(d.array(), d.array(), d.array(), Affine::new(d.int(), d.int())?)
        };
        let _ = (q.shape(), Format::Mxfp4.bits());
        Ok(q.take(&d.indices())?.arrays())
    }),
    ("fast::gated_delta_update", |d| {
        let (k, v, g, b, s, m) = (d.image(2), d.image(2), d.image(1), d.image(1), d.image(2), d.image(0));
        Ok(fast::gated_delta_update(&k, &k, &v, GatedDelta::new(&g, &b).state(&s).mask(&m))?.arrays())
    }),
    ("fast::attention", |d| {
        let (q, k, v, sinks) = (d.image(2), d.image(2), d.image(2), d.array());
        let mask = d.array();
        let mut how = Attention::new(d.float32()).mask(d.mask(&mask)).force_fused(d.below(8) == 0);
        if d.flag() {
            how = how.sinks(&sinks);
        }
        Ok(vec![fast::attention(&q, &k, &v, how)?])
    }),
    // CachedAttention, KvBuffers, Norm, Matrix, Decoder, DecoderLayer.
    ("fused", fused),
    // Group: of this process alone.
    ("distributed::init", |d| {
        let group = distributed::init(Backend::Any)?;
        let (x, at) = (d.array(), d.int());
        Ok(vec![match d.below(8) {
            0 => group.all_sum(&x),
            1 => group.all_gather(&x),
            2 => group.all_max(&x),
            3 => group.all_min(&x),
            4 => group.sum_scatter(&x),
            5 => group.send(&x, at),
            6 => group.recv(d.shape(), d.dtype(), at),
            _ => group.split(at, None).and_then(|group| group.recv_like(&x, at)),
        }?])
    }),
    ("PeakMemory", |d| {
        let peak = PeakMemory::start()?;
        let x = d.array();
        peak.stop()?;
        Ok(vec![x])
    }),
];

/// A function of the table over what it is called with: the same one each time.
#[derive(Clone)]
struct Traced {
    entry: Entry,
    seed: u64,
    /// How many values it has at most.
    count: usize,
    huge: Arc<AtomicBool>,
}

impl Traced {
    fn draw(d: &mut Draw) -> Self {
        let entry = TABLE[d.below(TABLE.len())];
        d.tell(entry.0);
        Self { entry, seed: d.below(1 << 40) as u64, count: 1 + d.below(2), huge: Arc::default() }
    }

    fn call(&self, x: &[Array]) -> Result<Vec<Array>> {
        let mut draw = Draw::over(self.seed, x);
        let out = (self.entry.1)(&mut draw);
        let long = |a: &Array| a.size() > crate::COMPUTED;
        if draw.drew_huge || out.as_ref().is_ok_and(|out| out.iter().any(long)) {
            self.huge.store(true, Ordering::Relaxed);
        }
        let out = out?;
        Ok(if out.is_empty() { x.to_vec() } else { out })
    }

    /// Its first values, as many as it has said.
    fn first(&self, x: &[Array]) -> Result<Vec<Array>> {
        self.call(x).map(|out| out.into_iter().cycle().take(self.count).collect())
    }

    fn scalar(&self, x: &[Array]) -> Result<Array> {
        let out = self.call(x)?.one()?;
        // Some gradients are of what is no scalar, or no float.
        if self.seed.is_multiple_of(16) { Ok(out) } else { ops::sum(&ops::astype(&out, Dtype::Float32)?) }
    }

    fn huge(&self) -> bool {
        self.huge.load(Ordering::Relaxed)
    }
}

/// The first of some arrays, or an error.
trait One {
    fn one(self) -> Result<Array>;
}

impl One for Vec<Array> {
    fn one(self) -> Result<Array> {
        let none = || oxmlx::Error::new(oxmlx::ErrorKind::Closure, "fuzz", "no value");
        self.into_iter().next().ok_or_else(none)
    }
}

/// Runs a transform of a function of the table on drawn inputs.
fn over(d: &mut Draw, run: impl FnOnce(&mut Draw, Traced, &[Array]) -> Result<Vec<Array>>) -> Result<Vec<Array>> {
    let f = Traced::draw(d);
    let mut x: Vec<Array> = (0..d.below(4)).map(|_| d.array()).collect();
    if d.below(4) > 0 {
        x = x.iter().map(|x| ops::astype(x, Dtype::Float32)).collect::<Result<_>>()?;
    }
    let huge = Arc::clone(&f.huge);
    let out = run(d, f, &x);
    d.drew_huge |= huge.load(Ordering::Relaxed);
    out
}

/// Which inputs a gradient is for: mostly the first.
fn places(d: &mut Draw) -> Vec<usize> {
    if d.below(4) == 0 { (0..d.below(4)).map(|_| d.below(4)).collect() } else { vec![0] }
}

fn ones_like(x: &[Array]) -> Result<Vec<Array>> {
    x.iter().map(ops::ones_like).collect()
}

fn like_outputs(d: &mut Draw, f: &Traced, x: &[Array]) -> Result<Vec<Array>> {
    if d.below(4) == 0 { Ok(d.arrays()) } else { ones_like(&f.call(x)?) }
}

/// The same rank and dtype.
fn other_shape(d: &mut Draw, x: &Array) -> Result<Array> {
    let shape: Vec<i32> = x.shape().iter().map(|_| d.below(4) as i32).collect();
    ops::zeros(&shape, x.dtype())
}

fn indices<'a>(d: &mut Draw, arrays: &'a [Array]) -> Vec<Index<'a>> {
    (0..d.below(5))
        .map(|_| match d.below(7) {
            0 => Index::At(d.int()),
            1 | 2 => Index::Slice(Slice::new(d.maybe(Draw::int), d.maybe(Draw::int), d.int())),
            3 => Index::Ellipsis,
            4 => Index::NewAxis,
            5 => Index::List(d.ints().into()),
            _ => Index::Array(&arrays[d.below(arrays.len())]),
        })
        .collect()
}

/// A kernel whose shapes and outcome are drawn, as it is and in transforms. Builder, Constant, Input and Output.
fn kernel(d: &mut Draw) -> Result<Vec<Array>> {
    let (how, shape, dtype, in_place) = (d.below(6), d.shape(), d.dtype(), d.below(3));
    // A body takes its time for what is long.
    if shape.iter().map(|&n| n.max(0) as usize).try_fold(1, usize::checked_mul).is_none_or(|n| n > crate::COMPUTED) {
        return Ok(vec![]);
    }
    let mut builder = Kernel::builder(d.name()).output(dtype, move |_| Ok(shape.clone()));
    if d.flag() {
        builder = builder.output_in_place(d.dtype(), in_place);
    }
    let kernel = builder
        .cpu(move |inputs, outputs| {
            match how {
                0 => return Err("fuzz".into()),
                1 => panic!("planted"),
                _ => {}
            }
            for input in inputs {
                let _ = (input.as_slice::<f32>().is_ok(), input.as_strided::<f32>().is_ok());
                let _ = (input.as_bytes().iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), input.strides().len());
            }
            for output in outputs {
                let _ = (output.holds_input(), output.as_mut_slice::<f32>().is_ok());
                output.as_bytes_mut().fill(1);
            }
            Ok(())
        })
        .vjp(|primals, _, _| Ok(primals.to_vec()))
        .fallback(|x| Ok(x.to_vec()))
        .build()?;
    let mut x = d.arrays();
    x.retain(|a| a.size() <= crate::COMPUTED);
    x.extend(d.maybe(Draw::array).map(|a| Constant::new(&a).map(|held| held.array().clone())).transpose()?);
    let call = || {
        let out = match how {
            2 => transforms::grad(|x: &[Array]| ops::sum(&kernel.apply(x)?.one()?), &[0])(&x)?,
            3 => transforms::vmap(|x: &[Array]| kernel.apply(x), &vec![Some(0); x.len()], &[Some(0)])(&x)?,
            _ => kernel.apply(&x)?,
        };
        let small: Vec<Array> = out.into_iter().filter(|a| a.size() < 1 << 20).collect();
        oxmlx::eval(&small)?;
        Ok(small)
    };
    // A body's panic goes on in whoever asks for the values.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Ok(vec![]))
}

/// Kernels that come with oxmlx, over shapes that fit and others: kernel::stock::silu_mul, kernel::stock::log_sum_exp,
/// kernel::stock::quantized_scores; and what is told of a launch.
fn stock_kernels(d: &mut Draw) -> Result<Vec<Array>> {
    let affine = Affine::new(d.one_of(&[32, 64]), d.one_of(&[2, 3, 4, 8]))?;
    let (kernel, shapes): (Kernel, Vec<Vec<i32>>) = match d.below(3) {
        0 => (stock::silu_mul()?, vec![vec![3, 5]; 2]),
        1 => (stock::log_sum_exp()?, vec![vec![2, 9]]),
        _ => {
            let words = 64 / 32 * affine.bits();
            let factors = vec![1, 2, 3, 64 / affine.group_size()];
            (stock::quantized_scores(affine)?, vec![vec![1, 4, 1, 64], vec![1, 2, 3, words], factors.clone(), factors])
        }
    };
    let mut x: Vec<Array> = Vec::new();
    for (i, shape) in shapes.iter().enumerate() {
        let drawn = if d.below(8) == 0 { d.array() } else { d.array_of(shape) };
        let dtype = if d.below(12) == 0 {
            d.dtype()
        } else if i == 1 && shapes.len() == 4 {
            Dtype::Uint32
        } else {
            Dtype::Float32
        };
        x.push(drawn.astype(dtype)?);
    }
    x.retain(|a| a.size() <= crate::COMPUTED);
    let described: Vec<(&[i32], Dtype)> = x.iter().map(|a| (a.shape(), a.dtype())).collect();
    let _ = (kernel.launch(&described).is_ok(), kernel.warm_up(&x).is_ok());
    let declared = Kernel::builder("declared").input("x", Accepts::floats()).output_like(d.below(2)).init(d.float32());
    let length = d.below(9);
    let declared = declared
        .cpu(move |_, outputs| {
            for_each_chunk(outputs[0].as_bytes_mut(), length, |i, piece| piece.fill(i as u8 & 1));
            Ok(())
        })
        .vmap(|kernel, x, axes| Ok((kernel.apply(x)?, axes.to_vec())))
        .build()?;
    let mut out = kernel.apply(&x)?;
    out.extend(declared.apply(&x[..1.min(x.len())])?);
    oxmlx::eval(&out)?;
    Ok(out)
}

/// Blocks of a decoder: mostly of shapes that fit.
fn fused(d: &mut Draw) -> Result<Vec<Array>> {
    let (heads, kv, dim) = (1 + d.below(4) as i32, 1 + d.below(2) as i32, d.one_of(&[2, 4, 8, 64]));
    let (batch, tokens, room) = (1 + d.below(2) as i32, 1 + d.below(3) as i32, d.below(8) as i32);
    let hidden = heads * dim;
    let mut fit = |shape: &[i32]| if d.below(12) == 0 { d.array() } else { d.array_of(shape) };
    let x = fit(&[batch, tokens, hidden]);
    let (k, v) = (fit(&[batch, tokens, kv * dim]), fit(&[batch, tokens, kv * dim]));
    let cache = [fit(&[batch, kv, room, dim]), fit(&[batch, kv, room, dim])];
    let (weight, small, norm) = (fit(&[hidden, hidden]), fit(&[kv * dim, hidden]), fit(&[hidden]));
    let norm = Norm { weight: &norm, eps: d.float32() };
    let quantized = d.quantized()?;
    let (wide, narrow) = (Matrix::Plain(&weight), Matrix::Plain(&small));
    let other = if d.below(6) == 0 { Matrix::Affine(&quantized) } else { wide };
    let freqs = d.array();
    let mut rope = Rope::new(if d.flag() { dim } else { d.int() }, 10_000.0);
    if d.below(6) == 0 {
        rope = Rope::with_freqs(dim, &freqs);
    }
    let how = CachedAttention {
        heads: if d.below(12) == 0 { d.int() } else { heads },
        kv_heads: if d.below(12) == 0 { d.int() } else { kv },
        head_dim: if d.below(12) == 0 { d.int() } else { dim },
        scale: d.float32(),
        rope: &rope,
        window: d.maybe(|d| d.below(5)),
    };
    let len = if d.below(12) == 0 { usize::MAX - d.below(3) } else { d.below(8) };
    let buffers = KvBuffers { keys: cache[0].clone(), values: cache[1].clone(), len };
    match d.below(6) {
        0 => cached_attention([&x, &k, &v], buffers, how).map(|a| vec![a.output, a.buffers.keys, a.buffers.values]),
        1 => attention_rows([&x, &k, &v], vec![buffers; d.below(3)], how).map(|a| vec![a.output]),
        2 => Ok(vec![gated_mlp(&x, norm, wide, other, wide)?]),
        3 => Ok(vec![matmul_add(&x, other, &k)?, wide.apply(&x)?]),
        4 => norm_matmuls(&x, norm, &[wide, narrow, other]),
        _ => {
            let layer = DecoderLayer {
                attention_norm: norm,
                qkv: [wide, narrow, narrow],
                attention: how,
                o: other,
                mlp_norm: norm,
                gate: wide,
                up: wide,
                down: wide,
            };
            let layers = vec![layer; d.below(3)];
            let decoder = Decoder::new(&layers)?;
            let _ = (decoder.dtype(d.dtype()), decoder.kv_shape(), decoder.is_one_node());
            let stacked = |array: &Array| oxmlx::ops::stack(&vec![array.clone(); layers.len().max(1)], 0);
            let stack = KvBuffers { keys: stacked(&buffers.keys)?, values: stacked(&buffers.values)?, len };
            let stacks = if d.below(3) == 0 { vec![stack; d.below(4)] } else { vec![stack] };
            let decoded = decoder.forward(&x, stacks)?;
            Ok(std::iter::once(decoded.output).chain(decoded.buffers.into_iter().map(|b| b.keys)).collect())
        }
    }
}

fn io_error(error: std::io::Error) -> oxmlx::Error {
    oxmlx::Error::new(oxmlx::ErrorKind::Io, "fuzz", error.to_string())
}

fn foreign(error: impl std::fmt::Display) -> oxmlx::Error {
    oxmlx::Error::new(oxmlx::ErrorKind::Unsupported, "fuzz", error.to_string())
}
