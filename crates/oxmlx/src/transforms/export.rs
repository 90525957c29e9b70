//! Functions in `.mlxfn` files: any MLX, Python's too, reads what is written here, and the other way round.

use std::path::Path;

use oxmlx_sys::export as sys;
use oxmlx_sys::transforms::NamedClosure;

use super::run;
use crate::{Array, Error, ErrorKind, Result};

/// A file that traces of one function are written to, one for each combination of inputs it should accept.
pub struct Exporter(sys::Exporter);

impl Exporter {
    /// Opens a file for a function of arrays by place. A shapeless function accepts other shapes with as many dimensions.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a path that is not UTF-8 or whose folder does not exist.
    ///
    /// # Source
    /// C++ `mlx::core::exporter` (`mlx/export.h`).
    pub fn new<F>(path: impl AsRef<Path>, f: F, shapeless: bool) -> Result<Self>
    where
        F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    {
        Self::with_names(path, move |x, _| f(x), shapeless, "")
    }

    /// Opens a file for a function of arrays by place and by name, with a text that is saved beside it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a path that is not UTF-8 or whose folder does not exist.
    ///
    /// # Source
    /// C++ `mlx::core::exporter` (`mlx/export.h`).
    pub fn with_names<F>(path: impl AsRef<Path>, f: F, shapeless: bool, metadata: &str) -> Result<Self>
    where
        F: Fn(&[Array], &[(String, Array)]) -> Result<Vec<Array>> + Send + Sync + 'static,
    {
        let path = crate::io::writable(path.as_ref(), "export_function")?;
        Ok(Self(sys::exporter(path, named_closure(f), shapeless, metadata)?))
    }

    /// Traces the function for inputs like these and writes the trace.
    ///
    /// # Errors
    /// The closure's own error; [`ErrorKind::InvalidArgument`] for an operation that can't be written, such as a kernel of one's own.
    pub fn add(&mut self, args: &[Array], named: &[(&str, Array)]) -> Result<()> {
        let (names, values): (Vec<&str>, Vec<Array>) = named.iter().map(|(name, a)| (*name, a.clone())).unzip();
        run(|| self.0.add(Array::raw(args), &names, Array::raw(&values)))
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// What writing reports.
    pub fn close(self) -> Result<()> {
        Ok(self.0.close()?)
    }
}

/// A function of arrays by place and by name as the bridge takes it.
pub(super) fn named_closure<F>(f: F) -> NamedClosure
where
    F: Fn(&[Array], &[(String, Array)]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    NamedClosure::new(move |args, named| {
        let args = Array::wrap_all(args.to_vec());
        let mut named: Vec<(String, Array)> = named.into_iter().map(|(name, a)| (name, a.into())).collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Array::peel_all(f(&args, &named)?))
    })
}

/// Traces a function once and writes it to a file.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let path = std::env::temp_dir().join(format!("oxmlx-doc-{}.mlxfn", std::process::id()));
/// let x = Array::vector(&[1.0f32, 2.0])?;
/// transforms::export_function(&path, |x| Ok(vec![ops::exp(&x[0])?]), std::slice::from_ref(&x), false)?;
/// // SAFETY: the file is as it was written above.
/// let f = unsafe { transforms::import_function(&path) }?;
/// assert!(f.call(std::slice::from_ref(&x), &[])?[0].all_close(&ops::exp(&x)?)?);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`Exporter::new`] and [`Exporter::add`].
///
/// # Source
/// C++ `mlx::core::export_function` (`mlx/export.h`).
pub fn export_function<F>(path: impl AsRef<Path>, f: F, args: &[Array], shapeless: bool) -> Result<()>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    let mut exporter = Exporter::new(path, f, shapeless)?;
    exporter.add(args, &[])?;
    exporter.close()
}

/// A function that was read from a file.
pub struct Imported(sys::Imported);

/// Reads a function from a file that [`export_function`], or any other MLX, wrote.
///
/// # Safety
/// The file must be one that MLX wrote and that nobody changed or damaged since. It holds a program: MLX takes its shapes, indices and the
/// arguments of its operations on trust, and reads and writes foreign memory for what does not fit together.
///
/// # Errors
/// [`ErrorKind::Io`] for a file that can't be read; what MLX reports for one of another format.
///
/// # Source
/// C++ `mlx::core::import_function` (`mlx/export.h`).
#[allow(unsafe_code)] // there is no unsafe block: the caller promises what MLX doesn't check
pub unsafe fn import_function(path: impl AsRef<Path>) -> Result<Imported> {
    let path = crate::io::readable(path.as_ref(), "import_function")?;
    Ok(Imported(sys::import_function(path)?))
}

impl Imported {
    /// Builds the function's graph over these inputs, by place and by name. Lazy.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when no trace in the file fits the inputs.
    pub fn call(&self, args: &[Array], named: &[(&str, Array)]) -> Result<Vec<Array>> {
        let (names, values): (Vec<&str>, Vec<Array>) = named.iter().map(|(name, a)| (*name, a.clone())).unzip();
        if let Some(name) = names.iter().enumerate().find_map(|(i, name)| names[..i].contains(name).then_some(name)) {
            let text = format!("the input {name:?} is given twice");
            return Err(Error::new(ErrorKind::InvalidArgument, "import_function", text));
        }
        Ok(Array::wrap_all(self.0.call(Array::raw(args), &names, Array::raw(&values))?))
    }

    /// The text that was saved with the function.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn metadata(&self) -> Result<String> {
        Ok(self.0.metadata()?)
    }
}
