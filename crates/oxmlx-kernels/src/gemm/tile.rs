//! The inner product of packed blocks: a tile of sums held in registers.
//!
//! Rows come as `[rows][STRIDE]`, each element being broadcast; lanes come as panels `[depth][2 vectors]`.

use crate::level::Work;
use crate::simd::Simd;

/// Most of the shared dimension that is packed at a time: a panel then fits the first cache.
pub(crate) const DEPTH: usize = 256;
/// Floats from one packed row to the next; not a power of two, so that rows do not share cache sets.
pub(crate) const STRIDE: usize = DEPTH + 16;

/// Adds (or, for the first block, stores) the products of packed rows and panels to `sums`.
pub(crate) struct Block<'a> {
    /// `[rows][STRIDE]`, where `rows` is a multiple of [`Simd::TILE_ROWS`].
    pub(crate) rows: &'a [f32],
    /// The panels of this block: panel `p` starts at `p * panel_step` and has `depth * 2 * LANES` floats.
    pub(crate) panels: &'a [f32],
    pub(crate) panel_step: usize,
    pub(crate) depth: usize,
    /// `[rows][sums_stride]`; as many panels are used as fit into a row.
    pub(crate) sums: &'a mut [f32],
    pub(crate) sums_stride: usize,
    pub(crate) first: bool,
}

impl Work for Block<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        match S::TILE_ROWS {
            12 => self.tiles::<S, 12>(s),
            8 => self.tiles::<S, 8>(s),
            6 => self.tiles::<S, 6>(s),
            _ => self.tiles::<S, 4>(s),
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn tiles<S: Simd, const R: usize>(&mut self, s: S) {
        let width = 2 * S::LANES;
        let row_tiles = self.rows.as_chunks::<STRIDE>().0.as_chunks::<R>().0;
        for (p, panel) in self.panels.chunks(self.panel_step).enumerate() {
            let panel = &panel[..self.depth * width];
            for (rows, sums) in row_tiles.iter().zip(self.sums.chunks_mut(R * self.sums_stride)) {
                let tile = product::<S, R>(s, rows, panel);
                for (r, tile) in tile.into_iter().enumerate() {
                    let at = r * self.sums_stride + p * width;
                    let (low, high) = sums[at..at + width].split_at_mut(S::LANES);
                    if self.first {
                        s.store(tile[0], low);
                        s.store(tile[1], high);
                    } else {
                        s.store(s.add(s.load(low), tile[0]), low);
                        s.store(s.add(s.load(high), tile[1]), high);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn product<S: Simd, const R: usize>(s: S, rows: &[[f32; STRIDE]; R], panel: &[f32]) -> [[S::V; 2]; R] {
    let mut sums = [[s.zero(); 2]; R];
    for (k, lanes) in panel.chunks_exact(2 * S::LANES).enumerate().take(STRIDE) {
        let lanes = [s.load(lanes), s.load(&lanes[S::LANES..])];
        for r in 0..R {
            let x = s.splat(rows[r][k % STRIDE]);
            sums[r] = [s.fma(x, lanes[0], sums[r][0]), s.fma(x, lanes[1], sums[r][1])];
        }
    }
    sums
}
