//! An external consumer of oxmlx's storage: a small "renderer" that knows memory, shapes and strides, and nothing of MLX.
//!
//! `cargo run --example storage_consumer` computes an image on MLX, hands it over without a copy, goes on computing, and prints what
//! the renderer made of it.
#![allow(unsafe_code)] // the renderer reads raw memory: that is the point

use std::sync::mpsc;
use std::thread;

use oxmlx::storage::{StorageBuffer, StorageExportOptions, StorageView};
use oxmlx::{Array, Dtype, ops};

/// What a renderer takes: an address, a layout, and something to drop when it is done.
struct Picture {
    first: *const f32,
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
    /// Keeps the memory: MLX may use it again when this is gone.
    _keep: StorageView,
}

// SAFETY: nobody writes the memory while the view lives, and the view may be used and dropped on any thread.
unsafe impl Send for Picture {}

impl Picture {
    fn of(view: StorageView) -> Result<Self, Box<dyn std::error::Error>> {
        if !matches!(view.buffer(), StorageBuffer::Host(_)) || view.dtype() != Dtype::Float32 {
            return Err("the renderer reads f32 in the host's memory".into());
        }
        let (&[rows, columns], &[row_stride, column_stride]) = (view.shape(), view.strides()) else {
            return Err("the renderer takes two dimensions".into());
        };
        let first = view.data().ok_or("no address")?.cast();
        let count = |n: i64| usize::try_from(n);
        Ok(Self {
            first,
            rows: count(rows.into())?,
            columns: count(columns.into())?,
            row_stride: count(row_stride)?,
            column_stride: count(column_stride)?,
            _keep: view,
        })
    }

    fn render(&self) -> String {
        let mut text = String::new();
        for row in 0..self.rows {
            for column in 0..self.columns {
                let element = self.first.wrapping_add(row * self.row_stride + column * self.column_stride);
                // SAFETY: the element lies within the storage: shape and strides are the view's.
                let value = unsafe { element.read() };
                text.push(if value > 0.66 {
                    '#'
                } else if value > 0.33 {
                    '+'
                } else {
                    '.'
                });
            }
            text.push('\n');
        }
        text
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (to_renderer, pictures) = mpsc::channel::<Picture>();
    let renderer = thread::spawn(move || pictures.iter().map(|picture| picture.render()).collect::<Vec<_>>());

    let mut image = Array::zeros::<f32>((4, 12))?;
    for step in 0..3i32 {
        image = ops::slice_update(
            &image,
            &Array::full((4, 4), 1.0f32 - 0.3 * step as f32)?,
            &[0, 4 * step],
            &[4, 4 * step + 4],
            &[1, 1],
        )?;
        image.eval()?;
        // An available array needs no synchronisation from our side. The view keeps MLX from writing the next step into this memory.
        let options = StorageExportOptions::default().require_row_contiguous(false);
        to_renderer.send(Picture::of(image.storage_view(&options)?)?)?;
    }
    // A transpose is the same memory with other strides.
    let turned = image.transpose()?;
    turned.eval()?;
    to_renderer
        .send(Picture::of(turned.storage_view(&StorageExportOptions::default().require_row_contiguous(false))?)?)?;
    drop(to_renderer);

    for picture in renderer.join().map_err(|_| "the renderer panicked")? {
        println!("{picture}");
    }
    Ok(())
}
