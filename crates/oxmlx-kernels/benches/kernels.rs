//! Timings of the kernels. `cargo bench -p oxmlx-kernels`.

use oxmlx_kernels::Pool;

fn main() {
    divan::main();
}

#[divan::bench]
fn fork_join_of_two_empty_tasks() {
    Pool::global().parallel(2, |i| {
        divan::black_box(i);
    });
}

#[divan::bench]
fn ten_phases_of_two_empty_tasks() {
    Pool::global().phases(&[2; 10], |_, i| {
        divan::black_box(i);
    });
}
