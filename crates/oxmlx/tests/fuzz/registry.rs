//! What the fuzzer calls: the table of functions, which is generated, and the programs, which are not.

use oxmlx::ops::Unique;
use oxmlx::quantize::Quantized;
use oxmlx::{Array, Result};

use crate::draw::Draw;
use crate::programs::PROGRAMS;
use crate::table::TABLE;

/// A name and what it does with drawn arguments.
pub(crate) type Entry = (&'static str, fn(&mut Draw) -> Result<Vec<Array>>);

/// The entry of a call: a program each third time, since one program has many functions.
pub(crate) fn pick(draw: &mut Draw) -> Entry {
    if draw.below(3) == 0 { PROGRAMS[draw.below(PROGRAMS.len())] } else { TABLE[draw.below(TABLE.len())] }
}

/// What a function returns, as the arrays in it.
pub(crate) trait Outputs {
    fn arrays(self) -> Vec<Array>;
}

impl Outputs for Array {
    fn arrays(self) -> Vec<Array> {
        vec![self]
    }
}

impl Outputs for Vec<Array> {
    fn arrays(self) -> Vec<Array> {
        self
    }
}

impl Outputs for (Array, Array) {
    fn arrays(self) -> Vec<Array> {
        vec![self.0, self.1]
    }
}

impl Outputs for (Array, Array, Array) {
    fn arrays(self) -> Vec<Array> {
        vec![self.0, self.1, self.2]
    }
}

impl Outputs for Unique {
    fn arrays(self) -> Vec<Array> {
        vec![self.values, self.index, self.inverse, self.counts]
    }
}

impl Outputs for Quantized {
    fn arrays(self) -> Vec<Array> {
        let mut arrays = vec![self.weight, self.scales];
        arrays.extend(self.biases);
        arrays
    }
}
