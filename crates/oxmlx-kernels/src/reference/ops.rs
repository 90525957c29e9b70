//! Row-wise and element-wise operations; rows are `cols` long.

/// `x / sqrt(mean(x^2) + eps) * weight`.
pub fn rms_norm(x: &[f64], weight: Option<&[f64]>, eps: f64, cols: usize) -> Vec<f64> {
    let row = |row: &[f64]| {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / cols as f64;
        let scale = 1.0 / (mean + eps).sqrt();
        row.iter().enumerate().map(|(i, x)| x * scale * weight.map_or(1.0, |w| w[i])).collect::<Vec<_>>()
    };
    x.chunks(cols.max(1)).flat_map(row).collect()
}

/// `(x - mean) / sqrt(var + eps) * weight + bias`.
pub fn layer_norm(x: &[f64], (weight, bias): (Option<&[f64]>, Option<&[f64]>), eps: f64, cols: usize) -> Vec<f64> {
    let row = |row: &[f64]| {
        let mean = row.iter().sum::<f64>() / cols as f64;
        let var = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / cols as f64;
        let scale = 1.0 / (var + eps).sqrt();
        let y = |(i, x): (usize, &f64)| (x - mean) * scale * weight.map_or(1.0, |w| w[i]) + bias.map_or(0.0, |b| b[i]);
        row.iter().enumerate().map(y).collect::<Vec<_>>()
    };
    x.chunks(cols.max(1)).flat_map(row).collect()
}

/// `exp(x) / sum(exp(x))`.
pub fn softmax(x: &[f64], cols: usize) -> Vec<f64> {
    let row = |row: &[f64]| {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
        row.iter().map(|x| (x - top).exp() / sum).collect::<Vec<_>>()
    };
    x.chunks(cols.max(1)).flat_map(row).collect()
}

/// `gate / (1 + exp(-gate)) * up`.
pub fn silu_mul(gate: &[f64], up: &[f64]) -> Vec<f64> {
    gate.iter().zip(up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect()
}

/// One row rotated: pair `i` turns by `position / wavelengths[i]`; pairs are neighbours if `traditional`.
pub fn rope(row: &[f64], position: f64, wavelengths: &[f64], traditional: bool) -> Vec<f64> {
    let half = wavelengths.len();
    let mut out = row.to_vec();
    for (i, wavelength) in wavelengths.iter().enumerate() {
        let (a, b) = if traditional { (2 * i, 2 * i + 1) } else { (i, i + half) };
        let (sin, cos) = (position / wavelength).sin_cos();
        out[a] = row[a] * cos - row[b] * sin;
        out[b] = row[a] * sin + row[b] * cos;
    }
    out
}
