//! Attention against f64, at every level of this machine.
//!
//! Bound: 2e-6 for values of order 1, plus one rounding to the output's type.

mod common;

use common::{Buffer, DTYPES, Dtype, Random, assert_close};
use oxmlx_kernels::attention::{Attention, Mask, MaskView, attention};
use oxmlx_kernels::reference::{self, Sizes};
use oxmlx_kernels::{Floats, Level, View4};

const BOUND: f64 = 2e-6;

struct Case {
    sizes: Sizes,
    q: Buffer,
    k: Buffer,
    v: Buffer,
}

impl Case {
    fn new(random: &mut Random, dtype: Dtype, sizes: Sizes) -> Self {
        let Sizes { batch, heads: [h, kh], lengths: [l, n], widths: [d, dv] } = sizes;
        let mut louder = |n: usize| {
            let x: Vec<f32> = random.floats(n).iter().map(|x| x * 2.0).collect();
            Buffer::of(dtype, &x)
        };
        let (q, k) = (louder(batch * h * l * d), louder(batch * kh * n * d));
        Self { sizes, q, k, v: random.buffer(dtype, batch * kh * n * dv) }
    }

    fn check(&self, level: Level, mask: Mask<'_>, sinks: Option<&[f32]>, y_type: Dtype) {
        let Sizes { batch, heads: [h, kh], lengths: [l, n], widths: [d, dv] } = self.sizes;
        let q = View4::new(self.q.view(), [batch, h, l, d]).unwrap();
        let k = View4::new(self.k.view(), [batch, kh, n, d]).unwrap();
        let v = View4::new(self.v.view(), [batch, kh, n, dv]).unwrap();
        let scale = 0.5 / (d as f32).sqrt();
        let mut what = Attention::new(q, k, v, scale).unwrap().mask(mask).unwrap();
        if let Some(sinks) = sinks {
            what = what.sinks(sinks).unwrap();
        }
        let mut y = Buffer::of(y_type, &vec![9.0; batch * h * l * dv]);
        attention(level, what, y.view_mut()).unwrap();
        let inputs = [self.q.to_f64(), self.k.to_f64(), self.v.to_f64()];
        let inputs = [&inputs[0][..], &inputs[1][..], &inputs[2][..]];
        let want = reference::attention(inputs, self.sizes, f64::from(scale), &mask, sinks);
        assert_close(&y.to_f64(), &want, y_type, BOUND, &format!("{level:?} {:?}", self.sizes));
    }
}

fn sizes(batch: usize, heads: [usize; 2], lengths: [usize; 2], widths: [usize; 2]) -> Sizes {
    Sizes { batch, heads, lengths, widths }
}

#[test]
fn decode_and_prefill_match_f64_for_all_widths() {
    let mut random = Random(1);
    for level in Level::available() {
        for widths in [[1, 1], [7, 5], [64, 64], [80, 80], [96, 40], [128, 128], [256, 256], [300, 20]] {
            for lengths in [[1, 1], [1, 300], [5, 130], [40, 40], [70, 333]] {
                let case = Case::new(&mut random, Dtype::F32, sizes(1, [3, 1], lengths, widths));
                case.check(level, Mask::None, None, Dtype::F32);
                case.check(level, Mask::Causal { window: None }, None, Dtype::F32);
            }
        }
    }
}

#[test]
fn all_types_and_head_groups_match_f64() {
    let mut random = Random(2);
    for level in Level::available() {
        for dtype in DTYPES {
            for heads in [[1, 1], [4, 4], [9, 3], [6, 1]] {
                for lengths in [[1, 77], [33, 50]] {
                    let case = Case::new(&mut random, dtype, sizes(2, heads, lengths, [64, 64]));
                    case.check(level, Mask::Causal { window: None }, None, dtype);
                }
            }
        }
    }
}

#[test]
fn windows_hide_old_keys() {
    let mut random = Random(3);
    for level in Level::available() {
        for lengths in [[1, 400], [4, 400], [60, 400], [60, 60]] {
            let case = Case::new(&mut random, Dtype::F32, sizes(1, [4, 2], lengths, [32, 32]));
            for window in [1, 5, 64, 333, 1000] {
                case.check(level, Mask::Causal { window: Some(window) }, None, Dtype::F32);
            }
        }
    }
}

#[test]
fn masks_of_both_kinds_match_f64_with_any_strides() {
    let mut random = Random(4);
    for level in Level::available() {
        for lengths in [[1, 150], [3, 20], [50, 290]] {
            let [l, n] = lengths;
            let case = Case::new(&mut random, Dtype::F32, sizes(2, [4, 2], lengths, [48, 48]));
            let seen: Vec<u8> = random.bytes(2 * 4 * l * n).iter().map(|x| u8::from(*x > 90)).collect();
            for strides in [[4 * l * n, l * n, n, 1], [0, 0, n, 1], [l * n, 0, 0, 1], [0, 0, 1, l]] {
                case.check(level, Mask::Bool(MaskView { data: &seen, strides }), None, Dtype::F32);
            }
            for dtype in DTYPES {
                let add: Vec<f32> =
                    random.floats(8 * l * n).iter().map(|x| if *x > 0.6 { f32::NEG_INFINITY } else { *x }).collect();
                let add = Buffer::of(dtype, &add);
                let strides = [4 * l * n, l * n, n, 1];
                case.check(level, Mask::Add(MaskView { data: add.view(), strides }), None, Dtype::F32);
            }
        }
    }
}

#[test]
fn sinks_take_their_share() {
    let mut random = Random(5);
    for level in Level::available() {
        for lengths in [[1, 90], [40, 90]] {
            let case = Case::new(&mut random, Dtype::F32, sizes(1, [6, 3], lengths, [64, 64]));
            let sinks: Vec<f32> = (0..6).map(|i| i as f32 * 3.0 - 9.0).collect();
            case.check(level, Mask::Causal { window: Some(20) }, Some(&sinks), Dtype::F32);
            case.check(level, Mask::None, Some(&sinks), Dtype::F32);
        }
    }
}

#[test]
fn a_row_that_sees_nothing_is_the_mean_or_nan_or_zero_with_a_sink() {
    let mut random = Random(6);
    for level in Level::available() {
        for lengths in [[1, 70], [40, 70], [90, 40]] {
            let [l, n] = lengths;
            let case = Case::new(&mut random, Dtype::F32, sizes(1, [2, 1], lengths, [16, 16]));
            let mut seen = vec![1; l * n];
            seen[..n].fill(0);
            let blind = Mask::Bool(MaskView { data: &seen, strides: [0, 0, n, 1] });
            case.check(level, blind, None, Dtype::F32);
            case.check(level, blind, Some(&[0.5, 1.5]), Dtype::F32);
            let mut add = vec![0.0f32; l * n];
            add[..n].fill(f32::NEG_INFINITY);
            let blind = Mask::Add(MaskView { data: Floats::F32(&add), strides: [0, 0, n, 1] });
            case.check(level, blind, None, Dtype::F32);
            case.check(level, blind, Some(&[0.5, 1.5]), Dtype::F32);
            // With more queries than keys the first ones see nothing.
            case.check(level, Mask::Causal { window: None }, None, Dtype::F32);
            case.check(level, Mask::Causal { window: Some(3) }, None, Dtype::F32);
        }
    }
}

#[test]
fn strided_inputs_are_respected() {
    let mut random = Random(7);
    let (b, h, n, d) = (2, 3, 45, 20);
    let data = random.floats(b * h * n * d);
    // Stored as [batch, length, heads, width], as projections leave it.
    let view = View4::strided(Floats::F32(&data), [b, h, n, d], [n * h * d, d, h * d]).unwrap();
    let packed: Vec<f64> = (0..b * h * n * d)
        .map(|i| {
            let (e, j, head, batch) = (i % d, i / d % n, i / d / n % h, i / d / n / h);
            f64::from(data[batch * n * h * d + j * h * d + head * d + e])
        })
        .collect();
    for level in Level::available() {
        let mut y = Buffer::of(Dtype::F32, &vec![0.0; data.len()]);
        attention(level, Attention::new(view, view, view, 0.3).unwrap(), y.view_mut()).unwrap();
        let sizes = sizes(b, [h, h], [n, n], [d, d]);
        let want = reference::attention([&packed[..]; 3], sizes, f64::from(0.3f32), &Mask::None, None);
        assert_close(&y.to_f64(), &want, Dtype::F32, BOUND, "strided");
    }
}

#[test]
fn sizes_that_do_not_fit_are_named() {
    let x = [0.0f32; 64];
    let view = |shape| View4::new(Floats::F32(&x), shape).unwrap();
    let what = |q, k, v| Attention::new(view(q), view(k), view(v), 1.0).map(|_| ()).unwrap_err().what().to_owned();
    assert_eq!(what([1, 3, 1, 4], [1, 2, 2, 4], [1, 2, 2, 4]), "query heads");
    assert_eq!(what([1, 2, 1, 4], [1, 2, 2, 3], [1, 2, 2, 4]), "width of keys");
    assert_eq!(what([1, 2, 1, 4], [1, 2, 2, 4], [1, 2, 3, 4]), "length of values");
    let fine = Attention::new(view([1, 2, 1, 4]), view([1, 2, 2, 4]), view([1, 2, 2, 4]), 1.0).unwrap();
    assert!(fine.sinks(&x[..3]).is_err());
    assert!(fine.mask(Mask::Bool(MaskView { data: &[1; 3], strides: [0, 2, 0, 1] })).is_err());
    let mut y = [0.0f32; 9];
    assert!(attention(Level::best(), fine, oxmlx_kernels::FloatsMut::F32(&mut y)).is_err());
    let none = Attention::new(view([1, 2, 0, 4]), view([1, 2, 2, 4]), view([1, 2, 2, 4]), 1.0).unwrap();
    assert!(attention(Level::best(), none, oxmlx_kernels::FloatsMut::F32(&mut [])).is_ok());
}
