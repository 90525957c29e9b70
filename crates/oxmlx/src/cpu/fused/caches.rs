//! What blocks that write caches have in common: their outputs.

use crate::fused::KvBuffers;
use crate::kernel::{Builder, Kernel};
use crate::{Array, Dtype, Error, ErrorKind, Result};

/// The outputs of a block that writes caches: a result like the first input, then keys and values of each cache in the place of the inputs
/// from `first` on.
pub(super) fn over_caches(name: &str, dtype: Dtype, first: usize, caches: usize) -> Builder {
    let builder = Kernel::builder(name).output(dtype, |inputs| Ok(inputs[0].to_vec()));
    (first..first + 2 * caches).fold(builder, |builder, input| builder.output_in_place(dtype, input))
}

/// Builds the node of such a block: gives the result, and the caches with `tokens` more tokens.
pub(super) fn written(
    kernel: &Kernel,
    inputs: &[Array],
    before: &[KvBuffers],
    tokens: usize,
) -> Result<(Array, Vec<KvBuffers>)> {
    let mut made = kernel.apply(inputs)?.into_iter();
    let mut next = || made.next().ok_or_else(|| Error::new(ErrorKind::Backend, "kernel", "an output is missing"));
    let output = next()?;
    let cache = |b: &KvBuffers| Ok(KvBuffers { keys: next()?, values: next()?, len: b.len + tokens });
    Ok((output, before.iter().map(cache).collect::<Result<_>>()?))
}

/// The caches again, of their keys and values one after the other.
pub(super) fn paired<'a>(planes: &'a [Array], lens: &'a [usize]) -> impl Iterator<Item = KvBuffers> + 'a {
    let pair = |(pair, &len): (&[Array], &usize)| KvBuffers { keys: pair[0].clone(), values: pair[1].clone(), len };
    planes.chunks_exact(2).zip(lens).map(pair)
}
