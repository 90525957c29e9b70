//! The safe API against values of Python MLX: indexing, fused operations, quantization, groups of processes, printing.

mod api {
    mod fast;
    mod indexing;
    mod quantize;
    mod reference;
}
