//! Hostile arguments, drawn from a seed.

use oxmlx::dtype::DtypeCategory;
use oxmlx::fast::{Mask, Rope};
use oxmlx::fft::{FftNorm, Stft};
use oxmlx::linalg::{MatrixNorm, Order, Triangle};
use oxmlx::ops::{Conv, ConvGeneral, Indexing, PadMode, Scan, Side, Tolerance};
use oxmlx::quantize::{Affine, Format, Quantized};
use oxmlx::{Array, Device, Dtype, Result, ops};

/// A generator whose draws depend on its seed and on nothing else.
pub(crate) struct Draw {
    state: u64,
    /// Whether an array was drawn that takes for ever to compute with.
    pub(crate) drew_huge: bool,
    /// Whether arguments are printed as they are drawn.
    pub(crate) tells: bool,
    /// What a transform traces with: arrays to draw again and again.
    traced: Vec<Array>,
}

impl Draw {
    /// The generator of call `index` of a run.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut draw = Self { state, drew_huge: false, tells: false, traced: Vec::new() };
        draw.next();
        draw
    }

    /// A generator whose arrays are mostly some that there are.
    pub(crate) fn over(seed: u64, traced: &[Array]) -> Self {
        Self { traced: traced.to_vec(), ..Self::new(seed, 0) }
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(crate) fn tell(&self, value: &str) {
        if self.tells {
            println!("  {value}");
        }
    }

    fn told<T: std::fmt::Debug>(&self, value: T) -> T {
        if self.tells {
            println!("  {value:?}");
        }
        value
    }

    /// An axis, count, length or shift: mostly small, sometimes absurd.
    pub(crate) fn int(&mut self) -> i32 {
        let drawn = self.draw_int();
        self.told(drawn)
    }

    fn draw_int(&mut self) -> i32 {
        match self.below(10) {
            0 => self.one_of(&[
                i32::MAX,
                i32::MIN,
                i32::MIN + 1,
                1 << 30,
                -(1 << 30),
                1 << 16,
                100_000_000,
                -100_000_000,
            ]),
            1 => self.one_of(&[7, 8, 16, 31, 32, 33, 64, 100, -8, -100]),
            _ => self.below(8) as i32 - 3,
        }
    }

    pub(crate) fn ints(&mut self) -> Vec<i32> {
        (0..self.below(5)).map(|_| self.int()).collect()
    }

    pub(crate) fn pair(&mut self) -> [i32; 2] {
        [self.int(), self.int()]
    }

    pub(crate) fn pairs(&mut self) -> Vec<(i32, i32)> {
        (0..self.below(4)).map(|_| (self.int(), self.int())).collect()
    }

    pub(crate) fn longs(&mut self) -> Vec<i64> {
        (0..self.below(4))
            .map(
                |_| {
                    if self.below(10) == 0 {
                        self.one_of(&[i64::MAX, i64::MIN, 1 << 40])
                    } else {
                        i64::from(self.int())
                    }
                },
            )
            .collect()
    }

    pub(crate) fn float(&mut self) -> f64 {
        if self.flag() {
            return self.below(9) as f64 / 2.0 - 2.0;
        }
        self.one_of(&[0.0, -0.0, 1.0, -1.0, 0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30, -1e30, 1e-30, 1e300])
    }

    pub(crate) fn float32(&mut self) -> f32 {
        self.float() as f32
    }

    pub(crate) fn dtype(&mut self) -> Dtype {
        self.one_of(&Dtype::ALL)
    }

    /// A shape to make something of: it may be impossible.
    pub(crate) fn shape(&mut self) -> Vec<i32> {
        if self.below(4) == 0 { self.ints() } else { self.small_shape() }
    }

    fn small_shape(&mut self) -> Vec<i32> {
        let most = if self.below(20) == 0 { 9 } else { 4 };
        let ndim = self.below(most + 1);
        (0..ndim)
            .map(|_| match self.below(16) {
                0 => 0,
                1 if ndim < 4 => self.one_of(&[8, 16, 32, 33, 64]),
                _ => 1 + self.below(4) as i32,
            })
            .collect()
    }

    pub(crate) fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(draw(self)) } else { None }
    }

    /// An array of any dtype, shape, layout and values, lazy or not.
    pub(crate) fn array(&mut self) -> Array {
        if let Some(traced) = self.traced() {
            return traced;
        }
        let shape = self.small_shape();
        self.array_of(&shape)
    }

    fn traced(&mut self) -> Option<Array> {
        if self.traced.is_empty() || self.below(4) == 0 {
            return None;
        }
        let at = self.below(self.traced.len());
        Some(self.traced[at].clone())
    }

    /// The same for operations of one shape: its last two axes are alike.
    pub(crate) fn square(&mut self) -> Array {
        if let Some(traced) = self.traced() {
            return traced;
        }
        let n = self.below(5) as i32;
        let mut shape = if self.flag() { vec![] } else { vec![self.below(3) as i32] };
        shape.extend([n, n]);
        self.array_of(&shape)
    }

    pub(crate) fn indices(&mut self) -> Array {
        let shape = self.small_shape();
        let count = shape.iter().product::<i32>();
        let values: Vec<i32> = (0..count).map(|_| self.int()).collect();
        let dtype = self.one_of(&[Dtype::Int32, Dtype::Uint32, Dtype::Int64, Dtype::Uint8, Dtype::Int8, Dtype::Uint64]);
        let drawn = Array::from_slice(&values, &shape).and_then(|a| ops::astype(&a, dtype));
        self.told(drawn.unwrap_or_else(|e| fallback(&e)))
    }

    pub(crate) fn arrays(&mut self) -> Vec<Array> {
        if self.flag() {
            let shape = self.small_shape();
            return (0..self.below(4)).map(|_| self.array_of(&shape)).collect();
        }
        (0..self.below(4)).map(|_| self.array()).collect()
    }

    pub(crate) fn index_arrays(&mut self) -> Vec<Array> {
        (0..self.below(3)).map(|_| self.indices()).collect()
    }

    pub(crate) fn array_of(&mut self, shape: &[i32]) -> Array {
        let drawn = self.try_array(shape).unwrap_or_else(|e| fallback(&e));
        self.told(drawn)
    }

    fn try_array(&mut self, shape: &[i32]) -> Result<Array> {
        let count = shape.iter().product::<i32>();
        let extreme = self.below(6) == 0;
        let values: Vec<f64> =
            (0..count).map(|_| if extreme { self.float() } else { self.below(21) as f64 - 10.0 }).collect();
        let dtype = if self.flag() { Dtype::Float32 } else { self.dtype() };
        let mut a = ops::astype(&Array::from_slice(&values, shape)?, dtype)?;
        if self.below(4) == 0 {
            a.eval()?;
        }
        match self.below(8) {
            0 => a = ops::transpose_all(&a)?,
            1 if a.ndim() > 0 => a = ops::flip(&a, 0)?,
            2 if a.ndim() > 0 && shape[0] > 1 => {
                let (start, mut strides) = (vec![0; a.ndim()], vec![1; a.ndim()]);
                strides[0] = 2;
                a = ops::slice(&a, &start, a.shape(), &strides)?;
            }
            3 => {
                let mut wide = vec![1 + self.below(3) as i32];
                wide.extend(a.shape());
                a = ops::broadcast_to(&a, &wide)?;
            }
            // Larger than any memory, and a view.
            4 if self.below(40) == 0 => {
                let mut wide = vec![1 << 10; 4];
                wide.extend(a.shape());
                a = ops::broadcast_to(&a, &wide)?;
                self.drew_huge = true;
            }
            _ => {}
        }
        Ok(a)
    }

    pub(crate) fn key(&mut self) -> Option<Array> {
        match self.below(4) {
            0 => None,
            1 => Some(self.array()),
            _ => oxmlx::random::key(self.next()).ok(),
        }
    }

    pub(crate) fn pad_mode(&mut self) -> PadMode {
        self.one_of(&[PadMode::Constant, PadMode::Edge])
    }

    pub(crate) fn side(&mut self) -> Side {
        self.one_of(&[Side::Left, Side::Right])
    }

    pub(crate) fn fft_norm(&mut self) -> FftNorm {
        self.one_of(&[FftNorm::Backward, FftNorm::Ortho, FftNorm::Forward])
    }

    pub(crate) fn format(&mut self) -> Result<Format> {
        Ok(match self.below(5) {
            0 => Format::Mxfp4,
            1 => Format::Mxfp8,
            2 => Format::Nvfp4,
            _ => {
                let (group, bits) = if self.flag() { (self.int(), self.int()) } else { (32, 4) };
                Format::Affine(Affine::new(group, bits)?)
            }
        })
    }

    /// Quantized weights: MLX's own, or parts that do not belong together.
    pub(crate) fn quantized(&mut self) -> Result<Quantized> {
        let format = self.format()?;
        if self.flag() {
            let rows = self.one_of(&[1, 2, 32]);
            let columns = self.one_of(&[32, 64, 128]);
            let w = ops::astype(&self.array_of(&[rows, columns]), Dtype::Float32)?;
            return oxmlx::quantize::quantize(&w, format);
        }
        let mut q = Quantized::floats(self.array(), self.array(), format);
        q.biases = self.maybe(Self::array);
        q.global_scale = self.maybe(Self::array);
        Ok(q)
    }
}

#[track_caller]
fn fallback(error: &oxmlx::Error) -> Array {
    // Memory may be short for a drawn argument, and a GPU has no float64; anything else is a fault of this file.
    let lacks = error.kind() == oxmlx::ErrorKind::OutOfMemory || error.message().contains("not supported on the GPU");
    assert!(lacks, "{error}");
    Array::scalar(0i32).expect("a scalar can be made")
}

impl Draw {
    /// Steps, paddings and dilations: mostly such as a convolution takes.
    pub(crate) fn near_one<const N: usize>(&mut self) -> [i32; N] {
        std::array::from_fn(|_| if self.below(8) == 0 { self.int() } else { 1 + self.below(2) as i32 })
    }

    /// An array with `spatial` dimensions between a batch and channels; sometimes any other.
    pub(crate) fn image(&mut self, spatial: usize) -> Array {
        if self.below(6) == 0 {
            return self.array();
        }
        let shape: Vec<i32> = (0..spatial + 2).map(|_| 1 + self.below(4) as i32).collect();
        self.array_of(&shape)
    }

    pub(crate) fn conv_general(&mut self) -> ConvGeneral {
        ConvGeneral {
            stride: self.ints(),
            padding_before: self.ints(),
            padding_after: self.ints(),
            kernel_dilation: self.ints(),
            input_dilation: self.ints(),
            groups: self.maybe(Self::int),
            flip: self.flag(),
        }
    }

    pub(crate) fn order(&mut self) -> Order {
        match self.below(4) {
            0 => Order::Default,
            1 => Order::Named(self.one_of(&[MatrixNorm::Frobenius, MatrixNorm::Nuclear])),
            _ => Order::Number(self.float()),
        }
    }
}

/// Settings.
impl Draw {
    /// Where a transform maps: mostly the first axis.
    pub(crate) fn axis(&mut self) -> Option<i32> {
        match self.below(6) {
            0 => None,
            1 => Some(self.int()),
            2 => Some(1),
            _ => Some(0),
        }
    }

    /// Arrays to index with: of integers and of bools.
    pub(crate) fn index_sources(&mut self) -> Vec<Array> {
        let any = self.array();
        let mask = ops::greater(&any, &ops::zeros_like(&any).unwrap_or_else(|e| fallback(&e)));
        vec![self.indices(), self.indices(), mask.unwrap_or_else(|e| fallback(&e)), any]
    }

    pub(crate) fn device(&mut self) -> Device {
        if self.below(8) == 0 { Device::Gpu } else { Device::Cpu }
    }

    pub(crate) fn name(&mut self) -> &'static str {
        self.one_of(&["a", "b.weight", "", "x", "\u{0}", "é\n\"", "a/../b", "__metadata__"])
    }

    pub(crate) fn floats(&mut self) -> Vec<f32> {
        (0..self.below(7)).map(|_| self.float32()).collect()
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(65)).map(|_| self.below(256) as u8).collect()
    }

    pub(crate) fn category(&mut self) -> DtypeCategory {
        self.one_of(&[DtypeCategory::Inexact, DtypeCategory::Integer, DtypeCategory::Number, DtypeCategory::Generic])
    }

    pub(crate) fn subscripts(&mut self) -> &'static str {
        self.one_of(&[
            "ij,jk->ik",
            "i,i->",
            "ii->i",
            "...ij->...ji",
            "ij->",
            "a,b,c->abc",
            "i->ij",
            "",
            "->",
            "ij,jk",
            "é->é",
        ])
    }

    pub(crate) fn stft(&mut self) -> Stft<'static> {
        let how = Stft::new(self.int()).hop(self.int()).center(self.flag()).norm(self.fft_norm());
        let how = if self.flag() { how.window_length(self.int()) } else { how };
        let how = if self.below(4) == 0 { how.onesided(self.flag()) } else { how };
        how.pad_mode(self.pad_mode())
    }

    pub(crate) fn triangle(&mut self) -> Triangle {
        self.one_of(&[Triangle::Lower, Triangle::Upper])
    }

    pub(crate) fn indexing(&mut self) -> Indexing {
        self.one_of(&[Indexing::Ij, Indexing::Xy])
    }

    pub(crate) fn scan(&mut self) -> Scan {
        let scan = if self.flag() { Scan::new() } else { Scan::new().reverse() };
        let scan = if self.flag() { scan } else { scan.exclusive() };
        if self.below(4) == 0 { scan.dtype(self.dtype()) } else { scan }
    }

    pub(crate) fn tolerance(&mut self) -> Tolerance {
        Tolerance::new(self.float(), self.float())
    }

    pub(crate) fn conv<const N: usize>(&mut self) -> Conv<N> {
        let conv = Conv::new().stride(self.near_one()).padding(self.near_one()).dilation(self.near_one());
        let conv = if self.flag() { conv.groups(self.int()) } else { conv };
        if self.below(4) == 0 { conv.output_padding(self.near_one()) } else { conv }
    }

    pub(crate) fn rope(&mut self) -> Rope<'static> {
        Rope::new(self.int(), self.float32()).traditional(self.flag()).scale(self.float32())
    }

    pub(crate) fn mask<'a>(&mut self, array: &'a Array) -> Mask<'a> {
        self.one_of(&[Mask::None, Mask::Causal, Mask::Array(array)])
    }
}
