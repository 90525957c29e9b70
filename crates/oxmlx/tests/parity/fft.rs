//! Fourier transforms.

use oxmlx::fft::{self, FftNorm, Stft};

use crate::fixture::Case;
use crate::shape::pad_mode;
use crate::table::{Outputs, Run, check, table};

fn norm(c: &mut Case) -> FftNorm {
    match c.text().as_str() {
        "backward" => FftNorm::Backward,
        "ortho" => FftNorm::Ortho,
        _ => FftNorm::Forward,
    }
}

/// Rows of the one-, two- and n-dimensional form of each transform.
macro_rules! transforms {
    ($($one:ident $two:ident $many:ident),+) => {
        table! {
            fft::fftfreq(i, x); fft::rfftfreq(i, x); fft::fftshift(a, ois); fft::ifftshift(a, ois);
            $(=> concat!("fft::", stringify!($one)) => |c| fft::$one(&c.array(), c.optional_int(), c.int(), norm(c)).outputs();
              => concat!("fft::", stringify!($two)) => |c| {
                  let (a, n) = (c.array(), c.optional_ints());
                  fft::$two(&a, n.map(|n| n.try_into().unwrap()), c.sizes(), norm(c)).outputs()
              };
              => concat!("fft::", stringify!($many)) => |c| {
                  fft::$many(&c.array(), c.optional_ints().as_deref(), c.optional_ints().as_deref(), norm(c)).outputs()
              };)+
            => "fft::stft" => |c| {
                let (x, n_fft, hop, length, window) = (c.array(), c.int(), c.optional_int(), c.optional_int(), c.optional_array());
                let mut stft = Stft::new(n_fft).center(c.flag()).pad_mode(pad_mode(&c.text())).norm(norm(c));
                if let Some(hop) = hop { stft = stft.hop(hop); }
                if let Some(length) = length { stft = stft.window_length(length); }
                if let Some(window) = &window { stft = stft.window(window); }
                if let Some(onesided) = c.optional_flag() { stft = stft.onesided(onesided); }
                fft::stft(&x, &stft).outputs()
            };
            => "fft::istft" => |c| {
                let (x, n_fft, hop, length, window) = (c.array(), c.int(), c.optional_int(), c.optional_int(), c.optional_array());
                let mut stft = Stft::new(n_fft).center(c.flag()).norm(norm(c));
                if let Some(hop) = hop { stft = stft.hop(hop); }
                if let Some(length) = length { stft = stft.window_length(length); }
                if let Some(window) = &window { stft = stft.window(window); }
                if let Some(onesided) = c.optional_flag() { stft = stft.onesided(onesided); }
                fft::istft(&x, &stft, c.optional_int()).outputs()
            };
        }
    };
}

const TABLE: &[(&str, Run)] = transforms!(fft fft2 fftn, ifft ifft2 ifftn, rfft rfft2 rfftn, irfft irfft2 irfftn);

#[test]
fn fourier_transforms_give_the_values_of_python_mlx() {
    check("fft", TABLE);
}
