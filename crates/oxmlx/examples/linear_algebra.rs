//! A line through noisy points by three ways of linear algebra, and the principal axes of a cloud.
//!
//! `cargo run -p oxmlx --example linear_algebra`

use std::error::Error;

use oxmlx::linalg::{self, Order, Triangle};
use oxmlx::{Array, Dtype, ops, random};

const COUNT: i32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let keys = ops::unstack(&random::split_many(&random::key(3)?, 3)?, 0)?;
    let x = random::normal(COUNT, Dtype::Float32, &keys[0])?;
    let noise = (random::normal(COUNT, Dtype::Float32, &keys[1])? * Array::scalar(0.1f32)?)?;
    let y = (((&x * Array::scalar(2.0f32)?)? + Array::scalar(-1.0f32)?)? + noise)?;
    let a = ops::stack(&[x.clone(), Array::ones::<f32>(COUNT)?], -1)?;

    // The normal equations, QR, and the pseudo-inverse give the same slope and intercept.
    let normal = linalg::solve(&ops::matmul(&a.transpose()?, &a)?, &ops::matmul(&a.transpose()?, &y)?)?;
    let (q, r) = linalg::qr(&a)?;
    let by_qr = linalg::solve_triangular(&r, &ops::matmul(&q.transpose()?, &y)?, true)?;
    let by_pinv = ops::matmul(&linalg::pinv(&a)?, &y)?;
    let fit = normal.to_vec::<f32>()?;
    println!("y = {:.3} x + {:.3}", fit[0], fit[1]);
    let rest = linalg::norm(&(ops::matmul(&a, &normal)? - &y)?, Order::Default, None, false)?.item::<f32>()?;
    println!("what is left over: {:.4} a point", rest / (COUNT as f32).sqrt());

    // A cloud stretched along (3, 4): the largest eigenvector of its covariance.
    let mixing = Array::matrix(&[[3.0f32, 4.0], [-0.4, 0.3]])?;
    let cloud = ops::matmul(&random::normal((COUNT, 2), Dtype::Float32, &keys[2])?, &mixing)?;
    let centred = (&cloud - ops::mean_axis(&cloud, 0, true)?)?;
    let covariance = (ops::matmul(&centred.transpose()?, &centred)? / Array::scalar(COUNT as f32)?)?;
    let (variances, axes) = linalg::eigh(&covariance, Triangle::Lower)?;
    let main_axis = ops::take_index(&axes, 1, -1)?.to_vec::<f32>()?;
    println!("variances {:?}, main axis {main_axis:?}", variances.to_vec::<f32>()?);

    let near = |a: &Array, b: &Array| ops::allclose(a, b, ops::Tolerance::new(1e-3, 1e-3))?.item::<bool>();
    let same = near(&normal, &by_qr)? && near(&normal, &by_pinv)?;
    let fits = (fit[0] - 2.0).abs() < 0.05 && (fit[1] + 1.0).abs() < 0.05;
    let along = (main_axis[0] * 0.6 + main_axis[1] * 0.8).abs();
    if same && fits && along > 0.99 { Ok(()) } else { Err("not what went in".into()) }
}
