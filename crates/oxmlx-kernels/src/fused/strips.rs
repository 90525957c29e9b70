//! How results of a few rows lie between stages: in strips of columns, a strip's rows one after the other. So what one thread fills at a
//! time is one piece of memory, and what a reader takes of a row lies together.

use std::ops::Range;

/// The layout of `[rows, cols]` in strips of `width` columns; the last strip may be narrower.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strips {
    pub(super) rows: usize,
    pub(super) cols: usize,
    width: usize,
}

impl Strips {
    pub(super) fn new([rows, cols]: [usize; 2], width: usize) -> Self {
        // One row lies as it is, whatever the width.
        let width = if rows == 1 { cols } else { width };
        Self { rows, cols, width: width.max(1) }
    }

    /// Reads columns of a row, from `first` on.
    pub(super) fn read(self, data: &[f32], [row, first]: [usize; 2], to: &mut [f32]) {
        for (at, lies) in self.pieces(row, first..first + to.len()) {
            to[at.start - first..at.end - first].copy_from_slice(&data[lies]);
        }
    }

    /// Writes a whole row.
    pub(super) fn write(self, data: &mut [f32], row: usize, from: &[f32]) {
        for (at, lies) in self.pieces(row, 0..self.cols) {
            data[lies].copy_from_slice(&from[at]);
        }
    }

    /// Columns of a row that lie together, and where.
    fn pieces(self, row: usize, columns: Range<usize>) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let (mut at, end) = (columns.start, columns.end.min(self.cols));
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let start = at / self.width * self.width;
            let width = self.width.min(self.cols - start);
            let stop = end.min(start + width);
            let from = start * self.rows + row * width + at - start;
            let piece = (at..stop, from..from + stop - at);
            at = stop;
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_row_by_row_lies_strip_by_strip_and_is_read_again() {
        let strips = Strips::new([3, 10], 4);
        let mut data = vec![0.0; 30];
        let row = |m: usize| (0..10).map(|c| (m * 10 + c) as f32).collect::<Vec<_>>();
        (0..3).for_each(|m| strips.write(&mut data, m, &row(m)));
        assert_eq!(data[..8], [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]);
        assert_eq!(data[24..], [8.0, 9.0, 18.0, 19.0, 28.0, 29.0]);
        for first in 0..10 {
            for n in 0..=10 - first {
                let mut read = vec![-1.0; n];
                strips.read(&data, [2, first], &mut read);
                assert_eq!(read, row(2)[first..first + n], "{first}..{}", first + n);
            }
        }
    }
}
