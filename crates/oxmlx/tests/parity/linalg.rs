//! Linear algebra. Factors that are fixed up to a sign are compared without it.

use oxmlx::linalg::{self, MatrixNorm, Order, Triangle};
use oxmlx::{Array, Result, ops};

use crate::fixture::Case;
use crate::table::{Outputs, Run, check, table};

fn magnitudes(arrays: Vec<Array>) -> Result<Vec<Array>> {
    arrays.iter().map(ops::abs).collect()
}

fn triangle(c: &mut Case) -> Triangle {
    if c.text() == "L" { Triangle::Lower } else { Triangle::Upper }
}

fn order(c: &mut Case) -> Order {
    let value = c.any();
    match value.as_str() {
        Some("nuc") => Order::Named(MatrixNorm::Nuclear),
        Some("fro" | "f") => Order::Named(MatrixNorm::Frobenius),
        Some(_) => Order::Number(f64::INFINITY),
        None => value.as_f64().map_or(Order::Default, Order::Number),
    }
}

const TABLE: &[(&str, Run)] = table! {
    linalg::inv(a); linalg::det(a); linalg::slogdet(a); linalg::pinv(a); linalg::tri_inv(a, b);
    linalg::cholesky(a, b); linalg::cholesky_inv(a, b); linalg::singular_values(a); linalg::lu(a); linalg::lu_factor(a);
    linalg::solve(a, a); linalg::solve_triangular(a, a, b); linalg::cross(a, a, i);
    => "linalg::qr" => |c| magnitudes(linalg::qr(&c.array()).outputs()?);
    => "linalg::svd" => |c| magnitudes(linalg::svd(&c.array()).outputs()?);
    => "linalg::eigvalsh" => |c| linalg::eigvalsh(&c.array(), triangle(c)).outputs();
    => "linalg::eigh" => |c| magnitudes(linalg::eigh(&c.array(), triangle(c)).outputs()?);
    => "linalg::eigvals" => |c| ops::sort_axis(&ops::real(&linalg::eigvals(&c.array())?)?, -1).outputs();
    => "linalg::eig" => |c| {
        let (w, v) = linalg::eig(&c.array())?;
        let lengths = ops::abs(&ops::sum_axis(&ops::multiply(&v, &ops::conjugate(&v)?)?, -2, false)?)?;
        Ok(vec![ops::sort_axis(&ops::real(&w)?, -1)?, lengths])
    };
    => "linalg::norm" => |c| linalg::norm(&c.array(), order(c), c.optional_ints().as_deref(), c.flag()).outputs();
};

#[test]
fn linear_algebra_gives_the_values_of_python_mlx() {
    check("linalg", TABLE);
}
