//! A kernel of your own in Rust, with a gradient: `softplus(x) = log(1 + exp(x))`.
//!
//! `cargo run -p oxmlx --example own_kernel`. The guide is `docs/kernels.md`.

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Device, Result, ops, transforms};

/// `log(1 + exp(x))` of each element.
pub(crate) fn softplus() -> Result<Kernel> {
    Kernel::builder("softplus")
        .output_like(0)
        .cpu(|inputs, outputs| {
            let x = inputs[0].as_slice::<f32>()?;
            for (y, x) in outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x.iter()) {
                *y = x.max(0.0) + (-x.abs()).exp().ln_1p();
            }
            Ok(())
        })
        .vjp(|x, cotangents, _| Ok(vec![(&cotangents[0] * ops::sigmoid(&x[0])?)?]))
        .vmap(|kernel, inputs, axes| Ok((kernel.apply(inputs)?, axes.to_vec())))
        .build()
}

#[allow(dead_code, reason = "the test of the guide takes the kernel alone")]
fn main() -> Result<()> {
    Device::Cpu.scope(|| {
        let kernel = softplus()?;
        let x = Array::vector(&[-1.0f32, 0.0, 1.0])?;
        println!("softplus {:?}", kernel.apply_one(std::slice::from_ref(&x))?.to_vec::<f32>()?);
        let slope = transforms::grad(|x| ops::sum(&kernel.apply_one(x)?), &[0]);
        println!("its slope {:?}", slope(&[x])?[0].to_vec::<f32>()?);
        Ok(())
    })?
}
