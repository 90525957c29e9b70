//! The safe API against values of Python MLX: indexing, fused operations, quantization, groups of processes, printing.

mod api {
    mod exchange;
    mod fast;
    mod guide;
    mod indexing;
    mod process;
    mod quantize;
    mod reference;
}
