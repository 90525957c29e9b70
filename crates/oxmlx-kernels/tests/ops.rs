//! Norms, softmax, argmax, silu and rope, against f64, at every level of this machine.
//!
//! Bounds, besides one rounding to the output's type: 1e-6 for values of order 1 (2e-6 where rows are long).

mod common;

use common::{Buffer, DTYPES, Dtype, Random, assert_close};
use oxmlx_kernels::ops::{Norm, Rope, argmax, layer_norm, rms_norm, rope, silu_mul, softmax};
use oxmlx_kernels::{Floats, Level, MatMut, MatRef, View4, reference};

const WIDTHS: [usize; 8] = [1, 3, 16, 31, 64, 100, 576, 1031];

#[test]
fn norms_match_f64() {
    let mut random = Random(1);
    for level in Level::available() {
        for dtype in DTYPES {
            for cols in WIDTHS {
                for rows in [0, 1, 3, 70] {
                    let x = random.buffer(dtype, rows * cols);
                    let (w, b) = (random.buffer(dtype, cols), random.buffer(Dtype::F32, cols));
                    for with in [false, true] {
                        let norm = Norm { weight: with.then(|| w.view()), bias: with.then(|| b.view()), eps: 1e-5 };
                        let (wf, bf) = (w.to_f64(), b.to_f64());
                        let (wf, bf) = (with.then_some(&wf[..]), with.then_some(&bf[..]));
                        let mut y = Buffer::of(dtype, &vec![0.0; rows * cols]);
                        let view = || MatRef::new(x.view(), rows, cols).unwrap();
                        rms_norm(level, view(), norm, MatMut::new(y.view_mut(), rows, cols).unwrap()).unwrap();
                        let want = reference::rms_norm(&x.to_f64(), wf, f64::from(1e-5f32), cols);
                        assert_close(&y.to_f64(), &want, dtype, 2e-6, &format!("rms {level:?} {rows} x {cols}"));
                        if cols > 1 {
                            layer_norm(level, view(), norm, MatMut::new(y.view_mut(), rows, cols).unwrap()).unwrap();
                            let want = reference::layer_norm(&x.to_f64(), (wf, bf), f64::from(1e-5f32), cols);
                            assert_close(&y.to_f64(), &want, dtype, 4e-6, &format!("layer {level:?} {rows} x {cols}"));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn softmax_matches_f64_and_a_row_of_minus_infinity_is_nan() {
    let mut random = Random(2);
    for level in Level::available() {
        for dtype in DTYPES {
            for cols in WIDTHS {
                let x: Vec<f32> = random.floats(5 * cols).iter().map(|x| x * 30.0).collect();
                let x = Buffer::of(dtype, &x);
                let mut y = Buffer::of(dtype, &vec![0.0; 5 * cols]);
                let out = MatMut::new(y.view_mut(), 5, cols).unwrap();
                softmax(level, MatRef::new(x.view(), 5, cols).unwrap(), out).unwrap();
                let want = reference::softmax(&x.to_f64(), cols);
                assert_close(&y.to_f64(), &want, dtype, 1e-6, &format!("{level:?} {cols}"));
            }
        }
        let x = [f32::NEG_INFINITY; 40];
        let mut y = Buffer::of(Dtype::F32, &[0.0; 40]);
        let out = MatMut::new(y.view_mut(), 1, 40).unwrap();
        softmax(level, MatRef::new(Floats::F32(&x), 1, 40).unwrap(), out).unwrap();
        assert!(y.to_f64().iter().all(|y| y.is_nan()));
    }
}

#[test]
fn rows_with_strides_are_respected() {
    let mut random = Random(3);
    let x = random.floats(7 * 90);
    for level in Level::available() {
        for strides in [[90, 1], [1, 7], [90, 2]] {
            let view = MatRef::strided(Floats::F32(&x), [7, 45], strides).unwrap();
            let mut y = Buffer::of(Dtype::F32, &[5.0; 7 * 50]);
            softmax(level, view, MatMut::strided(y.view_mut(), [7, 45], 50).unwrap()).unwrap();
            let rows: Vec<f64> = (0..7 * 45).map(|i| f64::from(x[i / 45 * strides[0] + i % 45 * strides[1]])).collect();
            let want = reference::softmax(&rows, 45);
            let got = y.to_f64();
            let inner: Vec<f64> = (0..7 * 45).map(|i| got[i / 45 * 50 + i % 45]).collect();
            assert_close(&inner, &want, Dtype::F32, 1e-6, "strided");
            assert!((0..7).all(|r| got[r * 50 + 45..][..5] == [5.0; 5]), "gaps are untouched");
        }
    }
}

#[test]
fn silu_mul_matches_f64() {
    let mut random = Random(4);
    for level in Level::available() {
        for dtype in DTYPES {
            for n in [0, 1, 17, 1000, 40_000] {
                let gate: Vec<f32> = random.floats(n).iter().map(|x| x * 20.0).collect();
                let (gate, up) = (Buffer::of(dtype, &gate), random.buffer(Dtype::F32, n));
                let mut y = Buffer::of(dtype, &vec![0.0; n]);
                silu_mul(level, gate.view(), up.view(), y.view_mut()).unwrap();
                let want = reference::silu_mul(&gate.to_f64(), &up.to_f64());
                assert_close(&y.to_f64(), &want, dtype, 5e-6, &format!("{level:?} {n}"));
            }
        }
    }
}

#[test]
fn argmax_finds_the_first_largest_and_skips_nan() {
    let mut random = Random(5);
    for level in Level::available() {
        for dtype in DTYPES {
            for cols in [1, 2, 255, 256, 257, 5000] {
                let x = random.buffer(dtype, 3 * cols);
                let values = x.to_f64();
                let mut y = [9; 3];
                argmax(level, MatRef::new(x.view(), 3, cols).unwrap(), &mut y).unwrap();
                for (row, y) in values.chunks(cols).zip(y) {
                    let first = (0..cols).find(|&i| row.iter().all(|&x| x <= row[i])).unwrap();
                    assert_eq!(y as usize, first, "{level:?} {dtype:?} {cols}");
                }
            }
        }
        let x = [f32::NAN, 1.0, 3.0, f32::NAN, 3.0, 2.0, f32::NAN, f32::NAN];
        let mut y = [9; 2];
        argmax(level, MatRef::strided(Floats::F32(&x), [2, 2], [6, 1]).unwrap(), &mut y).unwrap();
        assert_eq!(y, [1, 0]);
        let mut y = [9];
        argmax(level, MatRef::new(Floats::F32(&x), 1, 8).unwrap(), &mut y).unwrap();
        assert_eq!(y, [2]);
        assert!(argmax(level, MatRef::new(Floats::F32(&x), 1, 0).unwrap(), &mut y).is_err());
    }
}

#[test]
fn rope_matches_f64_for_all_options() {
    let mut random = Random(6);
    let wavelengths: Vec<f32> = (0..40).map(|i| 10f32.powf(i as f32 / 10.0)).collect();
    for level in Level::available() {
        for dtype in DTYPES {
            for (shape, dims) in [([2, 3, 5, 64], 64), ([1, 2, 1, 80], 80), ([2, 1, 3, 100], 50), ([1, 9, 300, 16], 10)]
            {
                let [batch, heads, length, width] = shape;
                for (traditional, inverse, own) in [(false, false, false), (true, false, true), (false, true, true)] {
                    let x = random.buffer(dtype, shape.iter().product());
                    let spec =
                        if own { Rope::with_freqs(dims, &wavelengths[..dims / 2]) } else { Rope::new(dims, 10_000.0) };
                    let spec = spec.traditional(traditional).inverse(inverse).scale(0.25);
                    let offsets: Vec<i32> = (0..batch as i32).map(|b| 1000 * b + 7).collect();
                    let mut y = Buffer::of(dtype, &vec![0.0; x.view().len()]);
                    rope(level, View4::new(x.view(), shape).unwrap(), spec, &offsets, y.view_mut()).unwrap();
                    let lengths: Vec<f64> = (0..dims / 2)
                        .map(
                            |i| if own { f64::from(wavelengths[i]) } else { 1e4f64.powf(2.0 * i as f64 / dims as f64) },
                        )
                        .collect();
                    let want: Vec<f64> = x
                        .to_f64()
                        .chunks(width)
                        .enumerate()
                        .flat_map(|(i, row)| {
                            let position = f64::from(offsets[i / (heads * length)]) + (i % length) as f64;
                            let sign = if inverse { -0.25 } else { 0.25 };
                            reference::rope(row, sign * position, &lengths, traditional)
                        })
                        .collect();
                    assert_close(&y.to_f64(), &want, dtype, 1e-6, &format!("{level:?} {shape:?} {spec:?}"));
                }
            }
        }
    }
}

#[test]
fn rope_reads_strided_rows_and_one_offset_serves_all() {
    let mut random = Random(7);
    let x = random.floats(2 * 4 * 3 * 8);
    // Stored as [batch, length, heads, width].
    let view = View4::strided(Floats::F32(&x), [2, 3, 4, 8], [96, 8, 24]).unwrap();
    let mut y = Buffer::of(Dtype::F32, &[0.0; 192]);
    rope(Level::best(), view, Rope::new(8, 100.0), &[5], y.view_mut()).unwrap();
    let lengths: Vec<f64> = (0..4).map(|i| 100f64.powf(f64::from(i) / 4.0)).collect();
    for (i, got) in y.to_f64().chunks(8).enumerate() {
        let (b, h, l) = (i / 12, i / 4 % 3, i % 4);
        let row: Vec<f64> = x[b * 96 + l * 24 + h * 8..][..8].iter().map(|&x| f64::from(x)).collect();
        assert_close(got, &reference::rope(&row, 5.0 + l as f64, &lengths, false), Dtype::F32, 1e-6, "strided");
    }
    assert!(rope(Level::best(), view, Rope::new(7, 100.0), &[5], y.view_mut()).is_err());
    assert!(rope(Level::best(), view, Rope::new(10, 100.0), &[5], y.view_mut()).is_err());
    assert!(rope(Level::best(), view, Rope::new(8, 100.0), &[5, 6, 7], y.view_mut()).is_err());
}

#[test]
fn lengths_that_do_not_fit_are_named() {
    let x = Buffer::of(Dtype::F32, &[0.0; 12]);
    let mut y = Buffer::of(Dtype::F32, &[0.0; 12]);
    let view = MatRef::new(x.view(), 3, 4).unwrap();
    let norm = Norm { weight: Some(x.view()), bias: None, eps: 0.0 };
    let err = rms_norm(Level::best(), view, norm, MatMut::new(y.view_mut(), 3, 4).unwrap()).unwrap_err();
    assert_eq!(err.to_string(), "rms_norm: weight length is 12, expected 4");
    assert!(softmax(Level::best(), view, MatMut::new(y.view_mut(), 4, 3).unwrap()).is_err());
    assert!(silu_mul(Level::best(), x.view(), Floats::F32(&[0.0; 3]), y.view_mut()).is_err());
}
