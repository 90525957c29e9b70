//! Functions in files: traced and written here, read and called here or by any other MLX.

use cxx::UniquePtr;

use crate::call::call;
use crate::transforms::{NamedClosure, Outcome, ffi, run};
use crate::{Array, Result, lock, trace};

/// A file that traces of one function are written to.
pub struct Exporter {
    exporter: UniquePtr<ffi::Exporter>,
}

// SAFETY: every use of the C++ object, the destructor included, happens under the process-wide lock.
unsafe impl Send for Exporter {}

/// Opens a file for traces of a function. A shapeless trace fits inputs of other shapes.
///
/// # Errors
/// What MLX throws when it can't write the file.
pub fn exporter(file: &str, closure: NamedClosure, shapeless: bool, metadata: &str) -> Result<Exporter> {
    let exporter = call("exporter", || ffi::exporter(file, Box::new(closure), shapeless, metadata))?;
    Ok(Exporter { exporter })
}

impl Exporter {
    /// Traces the function for these inputs and writes the trace.
    ///
    /// # Errors
    /// The closure's failure; what MLX throws for a primitive that can't be written.
    pub fn add(&mut self, args: &[Array], names: &[&str], values: &[Array]) -> Outcome<()> {
        run(|| {
            call("export_function", || {
                trace::enter_export(|| trace::enter(|| self.exporter.pin_mut().add(args, names, values)))
            })
        })
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// What MLX throws when writing fails.
    pub fn close(mut self) -> Result<()> {
        call("export_function", || self.exporter.pin_mut().close())
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        lock::free(&mut self.exporter);
    }
}

/// Traces a function once and writes it to a file.
///
/// # Errors
/// As [`exporter`] and [`Exporter::add`].
pub fn export_function(
    file: &str,
    closure: NamedClosure,
    shapeless: bool,
    inputs: (&[Array], &[&str], &[Array]),
) -> Outcome<()> {
    let mut exporter = exporter(file, closure, shapeless, "").map_err(crate::transforms::Failed::Mlx)?;
    exporter.add(inputs.0, inputs.1, inputs.2)?;
    exporter.close().map_err(crate::transforms::Failed::Mlx)
}

/// A function that was read from a file.
pub struct Imported {
    function: UniquePtr<ffi::Imported>,
}

// SAFETY: every use of the C++ object, the destructor included, happens under the process-wide lock.
unsafe impl Send for Imported {}

// SAFETY: as for `Send`: no access without the lock.
unsafe impl Sync for Imported {}

/// Reads the function that a file holds.
///
/// # Errors
/// What MLX throws for a file that is not there or not of this format.
pub fn import_function(file: &str) -> Result<Imported> {
    Ok(Imported { function: call("import_function", || ffi::import_function(file))? })
}

impl Imported {
    /// Builds the function's graph over these inputs.
    ///
    /// # Errors
    /// What MLX throws when no trace in the file fits them.
    pub fn call(&self, args: &[Array], names: &[&str], values: &[Array]) -> Result<Vec<Array>> {
        call("import_function", || self.function.call(args, names, values))
    }

    /// The text that was saved with the function.
    ///
    /// # Errors
    /// Those of every entry.
    pub fn metadata(&self) -> Result<String> {
        call("import_function", || self.function.metadata())
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        lock::free(&mut self.function);
    }
}
