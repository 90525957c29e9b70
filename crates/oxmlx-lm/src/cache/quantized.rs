//! Keys and values in few bits.

use oxmlx::quantize::{Affine, Quantized, dequantize, quantize};
use oxmlx::{Array, Dtype};

use super::buffer::{check, room, rows, write};
use super::contract::{Cache, CacheKind, Positions, Visible, cannot_trim};
use super::saved::{Part, SavedCache};
use super::snapshot::Snapshot;
use crate::{Error, ErrorKind, Result};

/// Everything, in `bits` bits a value: groups along the head's width share a scale and a bias, which come from the group's own smallest and
/// largest value.
///
/// # Source
/// mlx-lm's `QuantizedKVCache` (`models/cache.py`).
#[derive(Clone, Debug)]
pub struct QuantizedKvCache {
    affine: Affine,
    /// Packed values, scales and biases of keys, then of values.
    buffers: Option<[Array; 6]>,
    /// What `append` is given: its heads and width, and its dtype.
    taken: Option<([i32; 4], Dtype)>,
    len: usize,
}

impl QuantizedKvCache {
    /// An empty cache with this quantization; the head's width must be a multiple of its group size.
    pub fn new(affine: Affine) -> Self {
        Self { affine, buffers: None, taken: None, len: 0 }
    }

    /// The quantization.
    pub fn affine(&self) -> Affine {
        self.affine
    }

    /// Packed values, scales and biases of the keys and then of the values, live rows only; `None` for an empty cache.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn parts(&self) -> Result<Option<[Array; 6]>> {
        let Some(buffers) = self.buffers.as_ref().filter(|_| self.len > 0) else { return Ok(None) };
        let live = buffers.iter().map(|buffer| rows(buffer, 0, self.len)).collect::<Result<Vec<_>>>()?;
        Ok(<[Array; 6]>::try_from(live).ok())
    }

    /// A cache that holds these parts, as [`parts`](Self::parts) gives them.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] when their shapes do not fit each other.
    pub fn with(affine: Affine, parts: [Array; 6]) -> Result<Self> {
        let bad = || Error::new(ErrorKind::Cache, "the parts of a quantized cache do not fit each other");
        let [packed, scales, ..] = &parts;
        let &[batch, heads, len, words] = packed.shape() else { return Err(bad()) };
        let Some(width) = words.checked_mul(32).map(|bits| bits / affine.bits()) else { return Err(bad()) };
        let fits = |a: &Array, last: i32| a.shape() == [batch, heads, len, last];
        let groups = width / affine.group_size();
        let packed = [0, 3].iter().all(|&i| parts[i].dtype() == Dtype::Uint32 && fits(&parts[i], words));
        let dtype = scales.dtype();
        if !packed || ![1, 2, 4, 5].iter().all(|&i| parts[i].dtype() == dtype && fits(&parts[i], groups)) {
            return Err(bad());
        }
        let taken = Some(([batch, heads, len, width], dtype));
        Ok(Self { affine, buffers: Some(parts), taken, len: len as usize })
    }
}

impl Cache for QuantizedKvCache {
    fn kind(&self) -> CacheKind {
        CacheKind::Quantized
    }

    fn append(&mut self, keys: &Array, values: &Array) -> Result<Visible> {
        let shape = check(keys, values, self.taken)?;
        let [batch, heads, tokens, width] = shape;
        if width % self.affine.group_size() != 0 {
            let what = format!(
                "heads of {width} values are no multiple of the cache's groups of {}: choose a smaller group",
                self.affine.group_size()
            );
            return Err(Error::new(ErrorKind::Cache, what));
        }
        let end = self.len + tokens as usize;
        let (k, v) = (quantize(keys, self.affine)?, quantize(values, self.affine)?);
        let (Some(k_biases), Some(v_biases)) = (&k.biases, &v.biases) else {
            return Err(Error::new(ErrorKind::Cache, "MLX gave no biases for an affine quantization"));
        };
        let new = [&k.weight, &k.scales, k_biases, &v.weight, &v.scales, v_biases];
        let mut written = Vec::with_capacity(6);
        for (i, new) in new.into_iter().enumerate() {
            let last = new.dim(-1).unwrap_or(0);
            let old = self.buffers.as_ref().map(|buffers| &buffers[i]);
            let buffer = room(old, [batch, heads, last], new.dtype(), [self.len, end], usize::MAX)?;
            written.push(write(&buffer, new, self.len)?);
        }
        let live = written.iter().map(|buffer| rows(buffer, 0, end)).collect::<Result<Vec<_>>>()?;
        let shown = |parts: &[Array]| {
            let [weight, scales, biases] = <[Array; 3]>::try_from(parts.to_vec())
                .map_err(|_| Error::new(ErrorKind::Cache, "a quantized buffer has three parts"))?;
            Ok::<_, Error>(dequantize(&Quantized::affine(weight, scales, biases, self.affine))?)
        };
        let visible =
            Visible { keys: shown(&live[..3])?, values: shown(&live[3..])?, positions: Positions::Range(0..end) };
        self.buffers = <[Array; 6]>::try_from(written).ok();
        (self.taken, self.len) = (Some((shape, keys.dtype())), end);
        Ok(visible)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn offset(&self) -> usize {
        self.len
    }

    fn arrays(&self) -> Vec<Array> {
        self.buffers.iter().flatten().cloned().collect()
    }

    fn can_trim(&self, n: usize) -> bool {
        n <= self.len
    }

    fn slack(&self) -> Option<usize> {
        None
    }

    fn trim(&mut self, n: usize) -> Result<()> {
        if !self.can_trim(n) {
            return Err(cannot_trim(self, n));
        }
        self.len -= n;
        Ok(())
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Some(Snapshot::new(self.len, self.bytes(), self.clone()))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        *self = snapshot.of("quantized")?;
        Ok(())
    }

    fn saved(&self) -> Result<Option<SavedCache>> {
        let Some(parts) = self.parts()? else { return Ok(None) };
        let (keys, values) = (Part::Group(parts[..3].to_vec()), Part::Group(parts[3..].to_vec()));
        let numbers = [self.len, self.affine.group_size() as usize, self.affine.bits() as usize].map(Part::Number);
        Ok(Some(SavedCache::new("QuantizedKVCache", [keys, values].into_iter().chain(numbers).collect())))
    }

    fn can_batch(&self) -> bool {
        true
    }
}
