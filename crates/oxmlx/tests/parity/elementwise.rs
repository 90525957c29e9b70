//! Functions of one, two or three arrays, element by element.

use oxmlx::ops::{self, Tolerance};

use crate::table::{Outputs, Run, check, table};

const TABLE: &[(&str, Run)] = table! {
    ops::abs(a); ops::positive(a); ops::square(a); ops::negative(a); ops::sign(a); ops::reciprocal(a);
    ops::floor(a); ops::ceil(a); ops::trunc(a); ops::round(a, i);
    ops::sqrt(a); ops::rsqrt(a); ops::log(a); ops::log2(a); ops::log10(a); ops::log1p(a); ops::exp(a); ops::expm1(a);
    ops::sin(a); ops::cos(a); ops::tan(a); ops::sinh(a); ops::cosh(a); ops::tanh(a);
    ops::arcsin(a); ops::arccos(a); ops::arctan(a); ops::arcsinh(a); ops::arccosh(a); ops::arctanh(a);
    ops::sigmoid(a); ops::erf(a); ops::erfinv(a); ops::degrees(a); ops::radians(a);
    ops::conjugate(a); ops::real(a); ops::imag(a); ops::stop_gradient(a); ops::logical_not(a); ops::bitwise_invert(a);
    ops::isnan(a); ops::isinf(a); ops::isfinite(a); ops::isposinf(a); ops::isneginf(a);
    ops::nan_to_num(a, x32, ox32, ox32); ops::to_fp8(a); ops::from_fp8(a, d); ops::hadamard_transform(a, ox32);
    ops::softmax(a, i, b); ops::softmax_axes(a, is, b); ops::softmax_all(a, b);
    ops::add(a, a); ops::subtract(a, a); ops::multiply(a, a); ops::divide(a, a); ops::power(a, a);
    ops::maximum(a, a); ops::minimum(a, a); ops::arctan2(a, a); ops::logaddexp(a, a);
    ops::floor_divide(a, a); ops::remainder(a, a); ops::divmod(a, a); ops::left_shift(a, a); ops::right_shift(a, a);
    ops::bitwise_and(a, a); ops::bitwise_or(a, a); ops::bitwise_xor(a, a);
    ops::logical_and(a, a); ops::logical_or(a, a); ops::logical_xor(a, a);
    ops::equal(a, a); ops::not_equal(a, a); ops::greater(a, a); ops::greater_equal(a, a); ops::less(a, a); ops::less_equal(a, a);
    ops::array_equal(a, a, b); ops::where_(a, a, a); ops::clip(a, oa, oa);
    => "ops::isclose" => |c| ops::isclose(&c.array(), &c.array(), Tolerance::new(c.float(), c.float()).equal_nan(c.flag())).outputs();
    => "ops::allclose" => |c| ops::allclose(&c.array(), &c.array(), Tolerance::new(c.float(), c.float()).equal_nan(c.flag())).outputs();
};

#[test]
fn elementwise_operations_give_the_values_of_python_mlx() {
    check("elementwise", TABLE);
}
