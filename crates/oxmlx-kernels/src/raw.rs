//! Shared writing: a matrix cut into tiles, each of which one task may claim and write; once all tiles are given back,
//! everyone may read.
#![allow(unsafe_code, reason = "tiles of one slice interleave in memory, which slices cannot express")]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A row-major matrix cut into tiles of at most `step` rows and columns; tile `i` is row block `i / across`, column block
/// `i % across`.
pub(crate) struct Tiles<'a, T> {
    data: *mut T,
    shape: [usize; 2],
    stride: usize,
    step: [usize; 2],
    claimed: Vec<AtomicU64>,
    /// Tiles that are out, and above them whether the matrix may be read.
    open: AtomicUsize,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

/// Set in `Tiles::open` for good by the first reader; no tile is handed out after.
const SEALED: usize = 1 << (usize::BITS - 1);

// SAFETY: tiles are disjoint and each is handed out once (`claim`), so threads that share a `Tiles` write different
// elements; `T: Send` because an element is then written, and may be dropped, by another thread than its owner, and `T: Sync`
// because `read` shares them. `read` succeeds only when no tile is out or will be.
unsafe impl<T: Send + Sync> Sync for Tiles<'_, T> {}

impl<'a, T> Tiles<'a, T> {
    /// Cuts `shape[0]` rows, `stride` apart, of `shape[1]` elements each. What does not fit into `data` is cut off.
    pub(crate) fn new(data: &'a mut [T], shape: [usize; 2], stride: usize, step: [usize; 2]) -> Self {
        let cols = if shape[0] > 1 { shape[1].min(stride) } else { shape[1] }.min(data.len());
        let more = (data.len() - cols).checked_div(stride).unwrap_or(0);
        let fit = if cols == 0 { 0 } else { more + 1 };
        let shape = [shape[0].min(fit), cols];
        let step = step.map(|n| n.max(1));
        let count = shape[0].div_ceil(step[0]) * shape[1].div_ceil(step[1]);
        let claimed = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (len, open) = (data.len(), AtomicUsize::new(0));
        Self { data: data.as_mut_ptr(), shape, stride, step, claimed, open, len, owner: PhantomData }
    }

    pub(crate) fn across(&self) -> usize {
        self.shape[1].div_ceil(self.step[1])
    }

    pub(crate) fn count(&self) -> usize {
        self.shape[0].div_ceil(self.step[0]) * self.across()
    }

    /// The tile, unless it does not exist, has been claimed before, or the matrix has been read.
    pub(crate) fn claim(&self, index: usize) -> Option<Tile<'_, T>> {
        if index >= self.count() {
            return None;
        }
        let open = Open::enter(&self.open)?;
        let bit = 1 << (index % 64);
        if self.claimed.get(index / 64)?.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        let (row, col) = (index / self.across() * self.step[0], index % self.across() * self.step[1]);
        let shape = [self.step[0].min(self.shape[0] - row), self.step[1].min(self.shape[1] - col)];
        let data = self.data.wrapping_add(row * self.stride + col);
        Some(Tile { data, origin: [row, col], shape, stride: self.stride, _open: open, owner: PhantomData })
    }

    /// The whole slice, unless a tile is still out. From then on no tile can be claimed.
    pub(crate) fn read(&self) -> Option<&[T]> {
        if self.open.fetch_or(SEALED, Ordering::AcqRel) & !SEALED != 0 {
            return None;
        }
        // SAFETY: the pointer and the length are those of the slice that `self` borrows mutably. No tile is out (the count was
        // zero, and the giving back of each happened before), and none will be, since `claim` refuses once sealed.
        Some(unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }
}

/// Counts a tile for as long as it is out.
struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn enter(open: &'a AtomicUsize) -> Option<Self> {
        let before = open.fetch_add(1, Ordering::AcqRel);
        let entered = Self(open);
        (before & SEALED == 0).then_some(entered)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// One task's part of a matrix.
pub(crate) struct Tile<'a, T> {
    data: *mut T,
    origin: [usize; 2],
    shape: [usize; 2],
    stride: usize,
    _open: Open<'a>,
    owner: PhantomData<&'a mut [T]>,
}

impl<T> Tile<'_, T> {
    /// Row and column of the tile's first element.
    pub(crate) fn origin(&self) -> [usize; 2] {
        self.origin
    }

    pub(crate) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// One row of the tile; empty if there is none.
    pub(crate) fn row(&mut self, row: usize) -> &mut [T] {
        if row >= self.shape[0] {
            return &mut [];
        }
        // SAFETY: `Tiles::new` cut the shape so that every row lies in the slice; this tile is the only one with these
        // elements and was claimed once; the borrow of `self` keeps two rows from being borrowed at a time.
        unsafe { std::slice::from_raw_parts_mut(self.data.wrapping_add(row * self.stride), self.shape[1]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_the_matrix_once_and_leave_the_gaps() {
        let mut x = vec![0u32; 5 * 9];
        let tiles = Tiles::new(&mut x, [5, 7], 9, [2, 3]);
        assert_eq!((tiles.count(), tiles.across()), (9, 3));
        for i in (0..tiles.count()).rev() {
            let mut tile = tiles.claim(i).expect("first claim");
            assert!(tiles.claim(i).is_none());
            for r in 0..tile.shape()[0] {
                tile.row(r).iter_mut().for_each(|y| *y += 1);
            }
            assert!(tile.row(tile.shape()[0]).is_empty());
        }
        assert!(tiles.claim(9).is_none());
        for (i, &y) in x.iter().enumerate() {
            assert_eq!(y, u32::from(i % 9 < 7), "element {i}");
        }
    }

    #[test]
    fn reading_waits_for_all_tiles_and_ends_the_handing_out() {
        let mut x = vec![0u32; 12];
        let tiles = Tiles::new(&mut x, [3, 4], 4, [1, 4]);
        let mut tile = tiles.claim(1).expect("first claim");
        tile.row(0).fill(7);
        drop(tile);
        assert_eq!(tiles.read().expect("no tile is out"), [0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0]);
        assert!(tiles.claim(0).is_none(), "readers may hold the slice");
        drop(tiles);
        let tiles = Tiles::new(&mut x, [3, 4], 4, [1, 4]);
        let tile = tiles.claim(0);
        assert!(tile.is_some() && tiles.read().is_none());
    }

    #[test]
    fn rows_that_do_not_fit_are_cut_off() {
        let mut x = vec![0u8; 10];
        assert_eq!(Tiles::new(&mut x, [4, 4], 4, [1, 4]).count(), 2);
        assert_eq!(Tiles::new(&mut x, [4, 0], 4, [1, 4]).count(), 0);
        assert_eq!(Tiles::new(&mut x, [1, 4], 0, [1, 4]).count(), 1);
        assert_eq!(Tiles::new(&mut x[..0], [1, 4], 4, [1, 4]).count(), 0);
    }
}
