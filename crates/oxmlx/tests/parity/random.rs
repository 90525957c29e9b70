//! Random numbers: the same key gives the values of Python MLX.

use oxmlx::{Dtype, random};

use oxmlx::Array;

use crate::table::{Run, check, table};

const TABLE: &[(&str, Run)] = table! {
    random::key(u); random::split(a); random::split_many(a, i); random::bits(is, i, a);
    random::uniform(is, d, a); random::uniform_between(a, a, is, d, a); random::normal(is, d, a); random::normal_with(is, d, oa, oa, a);
    random::multivariate_normal(a, a, is, d, a); random::randint(a, a, is, d, a); random::bernoulli(a, is, a);
    random::truncated_normal(a, a, is, d, a); random::gumbel(is, d, a); random::laplace(is, d, x32, x32, a);
    random::categorical(a, i, a); random::categorical_many(a, i, i, a); random::categorical_shape(a, i, is, a);
    random::permutation(a, i, a); random::permutation_of(i, a);
    => "random::seed" => |c| {
        // The process's own sequence: nothing else in this binary draws from it.
        random::seed(c.wide());
        Ok(vec![
            random::uniform(2, Dtype::Float32, None)?,
            random::normal(2, Dtype::Float32, None)?,
            random::randint(&Array::scalar(0i32)?, &Array::scalar(100i32)?, 3, Dtype::Int32, None)?,
            random::bernoulli(&Array::scalar(0.5f32)?, 4, None)?,
        ])
    };
};

#[test]
fn the_same_key_gives_the_values_of_python_mlx() {
    check("random", TABLE);
}
