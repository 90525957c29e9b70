//! A picture of two waves, its spectrum by a two-dimensional Fourier transform, and the picture without the fine wave.
//!
//! `cargo run -p oxmlx --example fft2d`

use std::error::Error;

use oxmlx::fft::{self, FftNorm};
use oxmlx::{Array, Dtype, Result, ops};

const SIDE: i32 = 64;

/// `cos(2 pi (kx x + ky y) / SIDE)` at every place.
fn wave(kx: f32, ky: f32) -> Result<Array> {
    let places = ops::arange(0.0, f64::from(SIDE), 1.0, Dtype::Float32)?;
    let along = |k: f32| &places * Array::scalar(std::f32::consts::TAU * k / SIDE as f32)?;
    let (x, y) = (along(kx)?.reshape((1, SIDE))?, along(ky)?.reshape((SIDE, 1))?);
    ops::cos(&(x + y)?)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let coarse = wave(2.0, 3.0)?;
    let picture = (&coarse + (wave(20.0, 11.0)? * Array::scalar(0.5f32)?)?)?;

    let spectrum = fft::rfft2(&picture, None, [-2, -1], FftNorm::Backward)?;
    let strongest = ops::argmax(&ops::abs(&spectrum)?)?.item::<u32>()?;
    let (ky, kx) = (strongest / (SIDE as u32 / 2 + 1), strongest % (SIDE as u32 / 2 + 1));
    println!("spectrum {:?}; the strongest wave has {kx} periods across and {ky} down", spectrum.shape());

    // Keep frequencies below 8 both ways: of the rows also the negative ones, which lie at the end.
    let rows = fft::fftfreq(SIDE, 1.0 / f64::from(SIDE))?.reshape((SIDE, 1))?;
    let columns = fft::rfftfreq(SIDE, 1.0 / f64::from(SIDE))?;
    let limit = Array::scalar(8.0f32)?;
    let low = ops::logical_and(&ops::less(&ops::abs(&rows)?, &limit)?, &ops::less(&columns, &limit)?)?;
    let kept = ops::where_(&low, &spectrum, &ops::zeros_like(&spectrum)?)?;
    let smooth = fft::irfft2(&kept, Some([SIDE, SIDE]), [-2, -1], FftNorm::Backward)?;

    let off = ops::max(&ops::abs(&(&smooth - &coarse)?)?)?.item::<f32>()?;
    println!("the smoothed picture is the coarse wave within {off:.1e}");
    if (kx, ky) != (2, 3) || off > 1e-4 { Err("not the waves that went in".into()) } else { Ok(()) }
}
