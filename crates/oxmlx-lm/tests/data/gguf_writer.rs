//! Writes GGUF files, independently of the reader under test.

/// A metadata value with its type number.
#[derive(Clone)]
pub(crate) enum Val {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Str(String),
    Arr(u32, Vec<Val>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl Val {
    pub(crate) fn str(text: &str) -> Self {
        Self::Str(text.into())
    }

    pub(crate) fn strs(texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Arr(8, texts.into_iter().map(|t| Self::Str(t.into())).collect())
    }

    fn id(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::Str(_) => 8,
            Self::Arr(..) => 9,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(v) => out.push(*v),
            Self::I8(v) => out.extend(v.to_le_bytes()),
            Self::U16(v) => out.extend(v.to_le_bytes()),
            Self::I16(v) => out.extend(v.to_le_bytes()),
            Self::U32(v) => out.extend(v.to_le_bytes()),
            Self::I32(v) => out.extend(v.to_le_bytes()),
            Self::F32(v) => out.extend(v.to_le_bytes()),
            Self::Bool(v) => out.push(u8::from(*v)),
            Self::Str(v) => text(v.as_bytes(), out),
            Self::U64(v) => out.extend(v.to_le_bytes()),
            Self::I64(v) => out.extend(v.to_le_bytes()),
            Self::F64(v) => out.extend(v.to_le_bytes()),
            Self::Arr(id, items) => {
                out.extend(id.to_le_bytes());
                out.extend((items.len() as u64).to_le_bytes());
                items.iter().for_each(|v| v.write(out));
            }
        }
    }
}

/// A length and the bytes, as every text is written.
pub(crate) fn text(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

struct Tensor {
    name: String,
    dims: Vec<u64>,
    id: u32,
    data: Vec<u8>,
    offset: Option<u64>,
}

/// Collects a file.
pub(crate) struct Writer {
    version: u32,
    alignment: usize,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    tensors: Vec<Tensor>,
}

impl Default for Writer {
    fn default() -> Self {
        Self { version: 3, alignment: 32, entries: Vec::new(), tensors: Vec::new() }
    }
}

impl Writer {
    /// A file of this version whose data are padded to `alignment`; the reader is told by the key `general.alignment`.
    pub(crate) fn new(version: u32, alignment: usize) -> Self {
        Self { version, alignment, ..Self::default() }
    }

    pub(crate) fn key(mut self, key: &str, value: Val) -> Self {
        let mut bytes = value.id().to_le_bytes().to_vec();
        value.write(&mut bytes);
        self.entries.push((key.as_bytes().to_vec(), bytes));
        self
    }

    /// An entry whose type number and value are any bytes.
    pub(crate) fn raw_key(mut self, key: &[u8], typed_value: Vec<u8>) -> Self {
        self.entries.push((key.to_vec(), typed_value));
        self
    }

    /// A tensor with its shape slowest dimension first.
    pub(crate) fn tensor(mut self, name: &str, shape: &[u64], id: u32, data: Vec<u8>) -> Self {
        let dims = shape.iter().rev().copied().collect();
        self.tensors.push(Tensor { name: name.into(), dims, id, data, offset: None });
        self
    }

    /// Says that the last tensor's data are somewhere else.
    pub(crate) fn at_offset(mut self, offset: u64) -> Self {
        self.tensors.last_mut().unwrap().offset = Some(offset);
        self
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.entries.len() as u64).to_le_bytes());
        for (key, typed_value) in &self.entries {
            text(key, &mut out);
            out.extend(typed_value);
        }
        let mut data = Vec::new();
        for t in &self.tensors {
            data.resize(data.len().next_multiple_of(self.alignment), 0);
            text(t.name.as_bytes(), &mut out);
            out.extend((t.dims.len() as u32).to_le_bytes());
            t.dims.iter().for_each(|d| out.extend(d.to_le_bytes()));
            out.extend(t.id.to_le_bytes());
            out.extend(t.offset.unwrap_or(data.len() as u64).to_le_bytes());
            data.extend(&t.data);
        }
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        out.extend(data);
        out
    }
}
