//! Tensors by name, whatever files they come from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::{self, Shards};
use super::{Dtype, Tensor, TensorData, names, safetensors};
use crate::gguf::{self, GROUP, GgmlType, Gguf};
use crate::{Error, ErrorKind, Mapped, Result};

/// The tensors of a model, listed by name; their files stay mapped while this or any of its mapped tensors lives.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    files: Vec<Arc<Mapped>>,
    entries: BTreeMap<String, Entry>,
    warnings: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    file: usize,
    range: Range<usize>,
    shape: Vec<usize>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// The bytes of the file as they stand.
    Plain(Dtype),
    /// A part of the triple that blocks convert to.
    Blocks(Blocks, Part),
    /// Blocks of a type that can't be converted.
    Unreadable(Blocks),
}

/// A block-quantized tensor of a GGUF file, as the file describes it.
#[derive(Clone, Debug)]
struct Blocks {
    name: String,
    ggml_type: GgmlType,
    shape: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Weights,
    Scales,
    Biases,
}

impl Checkpoint {
    /// Opens a folder with SafeTensors files, one SafeTensors file, or one GGUF file.
    ///
    /// Of a folder with `model.safetensors.index.json` the files that it names are read, and only the tensors that it lists;
    /// others are left out with a [warning](Checkpoint::warnings).
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a missing file or shard or a broken link; [`ErrorKind::Format`] and
    /// [`ErrorKind::Unsupported`] for damaged or unknown files, naming file and tensor.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Self::from_shards(path, folder::shards(path)?);
        }
        let file = Arc::new(Mapped::open(path)?);
        if file.starts_with(b"GGUF") {
            let gguf = Gguf::parse(&file).map_err(|e| e.at_path(path))?;
            return Self::from_gguf(&gguf, &file);
        }
        let mut checkpoint = Self::empty(path);
        checkpoint.add_file(file)?;
        Ok(checkpoint)
    }

    /// The tensors of a GGUF file that has been parsed already; `gguf` must come from the bytes of `file`.
    ///
    /// Names become Hugging Face's where they are known. A quantized tensor `x.weight` of a convertible type becomes
    /// `x.weight`, `x.scales` and `x.biases`; one of another type stays listed, and asking for its values is an error.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if two tensors get one name.
    pub fn from_gguf(gguf: &Gguf<'_>, file: &Arc<Mapped>) -> Result<Self> {
        let mut checkpoint = Self::empty(file.path());
        checkpoint.files.push(file.clone());
        for tensor in gguf.tensors() {
            checkpoint.add_ggml(tensor).map_err(|e| e.at_tensor(tensor.name()).at_path(file.path()))?;
        }
        Ok(checkpoint)
    }

    fn empty(path: &Path) -> Self {
        Self { path: path.to_owned(), files: Vec::new(), entries: BTreeMap::new(), warnings: Vec::new() }
    }

    fn from_shards(folder: &Path, shards: Shards) -> Result<Self> {
        let mut checkpoint = Self { warnings: shards.warnings, ..Self::empty(folder) };
        for path in &shards.files {
            checkpoint.add_file_of(Arc::new(Mapped::open(path)?), shards.index.as_ref())?;
        }
        if let Some(index) = &shards.index
            && let Some((name, &file)) = index.iter().find(|(n, _)| !checkpoint.entries.contains_key(*n))
        {
            let what = "the index says that it is in this file, which hasn't got it: fetch both again";
            return Err(Error::new(ErrorKind::Format, what).at_tensor(name).at_path(&shards.files[file]));
        }
        Ok(checkpoint)
    }

    fn add_file(&mut self, file: Arc<Mapped>) -> Result<()> {
        self.add_file_of(file, None)
    }

    fn add_file_of(&mut self, file: Arc<Mapped>, index: Option<&BTreeMap<String, usize>>) -> Result<()> {
        let path = file.path().to_owned();
        let position = self.files.len();
        for tensor in safetensors::parse(&file).map_err(|e| e.at_path(&path))? {
            if index.is_some_and(|i| i.get(&tensor.name) != Some(&position)) {
                let name = tensor.name.escape_debug();
                self.warnings.push(format!("{}: tensor {name}: not in the index, ignored", path.display()));
                continue;
            }
            let form = Form::Plain(tensor.dtype);
            let entry = Entry { file: position, range: tensor.range, shape: tensor.shape, form };
            self.insert(tensor.name, entry).map_err(|e| e.at_path(&path))?;
        }
        self.files.push(file);
        Ok(())
    }

    fn add_ggml(&mut self, tensor: &gguf::Tensor<'_>) -> Result<()> {
        let range = tensor.offset()..tensor.offset() + tensor.data().len();
        let range = if tensor.data().is_empty() { 0..0 } else { range };
        let (module, part) = match names::module_of(tensor.name()) {
            Some((module, part)) => (module, part),
            None => match tensor.name().strip_suffix(".weight") {
                Some(stem) => (stem.to_owned(), "weight"),
                None => (tensor.name().to_owned(), ""),
            },
        };
        let name = if part.is_empty() { module.clone() } else { format!("{module}.{part}") };
        let ggml_type = tensor.ggml_type();
        let shape = tensor.shape().to_vec();
        if let Some(dtype) = ggml_type.dtype() {
            return self.insert(name, Entry { file: 0, range, shape, form: Form::Plain(dtype) });
        }
        let blocks = Blocks { name: tensor.name().to_owned(), ggml_type, shape: shape.clone() };
        let (Some(bits), "weight", Some(&columns)) = (ggml_type.affine_bits(), part, shape.last()) else {
            return self.insert(name, Entry { file: 0, range, shape, form: Form::Unreadable(blocks) });
        };
        let parts = [
            ("weight", Part::Weights, columns / 32 * bits),
            ("scales", Part::Scales, columns / GROUP),
            ("biases", Part::Biases, columns / GROUP),
        ];
        for (suffix, part, columns) in parts {
            let mut shape = shape.clone();
            if let Some(last) = shape.last_mut() {
                *last = columns;
            }
            let form = Form::Blocks(blocks.clone(), part);
            self.insert(format!("{module}.{suffix}"), Entry { file: 0, range: range.clone(), shape, form })?;
        }
        Ok(())
    }

    fn insert(&mut self, name: String, entry: Entry) -> Result<()> {
        if self.entries.contains_key(&name) {
            return Err(Error::new(ErrorKind::Format, "damaged checkpoint: the name occurs twice").at_tensor(name));
        }
        self.entries.insert(name, entry);
        Ok(())
    }

    /// The folder or file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was left out and why, one line each, to be shown to the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// All names, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Whether there is a tensor called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The shape of `name`, the slowest dimension first; for part of a converted triple the part's own.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.entries.get(name).map(|e| &*e.shape)
    }

    /// The dtype that [`Checkpoint::tensor`] gives `name`.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] if there is no such tensor; [`ErrorKind::Unsupported`] if its type can't be read.
    pub fn dtype(&self, name: &str) -> Result<Dtype> {
        let entry = self.entry(name)?;
        match &entry.form {
            Form::Plain(dtype) => Ok(*dtype),
            Form::Blocks(_, Part::Weights) => Ok(Dtype::U32),
            Form::Blocks(_, Part::Scales | Part::Biases) => Ok(Dtype::F16),
            Form::Unreadable(blocks) => Err(self.unreadable(name, blocks)),
        }
    }

    /// The bytes that the tensors take in their files, for a progress bar.
    pub fn file_bytes(&self) -> usize {
        let whole = |e: &&Entry| !matches!(e.form, Form::Blocks(_, Part::Scales | Part::Biases));
        self.entries.values().filter(whole).map(|e| e.range.len()).sum()
    }

    /// The tensor called `name`: mapped where it stands in a file as MLX wants it, converted here otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] if there is no such tensor; [`ErrorKind::Unsupported`], naming tensor and type, if its type
    /// can't be read; [`ErrorKind::Format`] if its blocks hold a scale that is no scale.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let entry = self.entry(name)?;
        let dtype = self.dtype(name)?;
        let file = &self.files[entry.file];
        let data = match &entry.form {
            Form::Plain(_) | Form::Unreadable(_) => {
                TensorData::Mapped { file: file.clone(), range: entry.range.clone() }
            }
            Form::Blocks(b, part) => {
                let blocks = gguf::Tensor::of_parts(&b.name, b.ggml_type, &b.shape, &file[entry.range.clone()]);
                match part {
                    Part::Weights => gguf::affine_weights(&blocks).map(TensorData::Words),
                    Part::Scales => gguf::affine_scales(&blocks).map(TensorData::Halves),
                    Part::Biases => gguf::affine_biases(&blocks).map(TensorData::Halves),
                }
                .map_err(|e| e.at_path(&self.path))?
            }
        };
        Ok(Tensor { name: name.to_owned(), dtype, shape: entry.shape.clone(), data })
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        self.entries.get(name).ok_or_else(|| {
            let what = "missing from the checkpoint, which doesn't fit its configuration";
            Error::new(ErrorKind::Weights, what).at_tensor(name).at_path(&self.path)
        })
    }

    fn unreadable(&self, name: &str, blocks: &Blocks) -> Error {
        let what = match blocks.ggml_type.affine_bits() {
            Some(_) => format!("type {} is read for names that end in .weight only", blocks.ggml_type),
            None => gguf::unreadable(blocks.ggml_type),
        };
        let tensor = if blocks.name == name { name.to_owned() } else { format!("{} ({name})", blocks.name) };
        Error::new(ErrorKind::Unsupported, what).at_tensor(tensor).at_path(&self.path)
    }
}
