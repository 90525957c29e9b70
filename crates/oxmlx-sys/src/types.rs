//! The types that the generated bridges share: dtypes, modes, optional scalars, devices and streams.
//!
//! An enum crosses as a cxx shared enum, which C++ could give any value; Rust callers see a closed enum of the same name without
//! `Code`. Out of Rust the conversion cannot fail; into Rust it is checked ([`UnknownCode`]). Nothing is allocated to say "none".

mod dtype;
mod enums;
mod records;

use crate::Array;
use crate::runtime::DeviceType;

pub(crate) use enums::closed;
pub use enums::{
    CompileMode, Dtype, DtypeCategory, DtypeKind, FftNorm, Indexing, MaskMode, MatrixNorm, PadMode, QuantMode, Side,
    Triangle, UnknownCode,
};
pub use ffi::{IntPair, IntTriple};
pub use records::{Contraction, Fact, Gguf, Group, Metadata, PrintFormat, Safetensors};
pub(crate) use records::{metadata_parts, opt_group};

#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx expands a bridge function to several")]
#[cxx::bridge(namespace = "oxmlx")]
pub(crate) mod ffi {
    #[derive(Clone, Copy, Debug)]
    enum DtypeCode {
        Bool,
        Uint8,
        Uint16,
        Uint32,
        Uint64,
        Int8,
        Int16,
        Int32,
        Int64,
        Float16,
        Float32,
        Float64,
        Bfloat16,
        Complex64,
    }

    #[derive(Clone, Copy, Debug)]
    enum DtypeKindCode {
        Bool,
        Unsigned,
        Signed,
        Float,
        Complex,
        Bfloat,
    }

    #[derive(Clone, Copy, Debug)]
    enum DtypeCategoryCode {
        ComplexFloating,
        Floating,
        Inexact,
        SignedInteger,
        UnsignedInteger,
        Integer,
        Number,
        Generic,
    }

    #[derive(Clone, Copy, Debug)]
    enum QuantModeCode {
        Affine,
        Mxfp4,
        Mxfp8,
        Nvfp4,
    }

    #[derive(Clone, Copy, Debug)]
    enum FftNormCode {
        Backward,
        Ortho,
        Forward,
    }

    #[derive(Clone, Copy, Debug)]
    enum PadModeCode {
        Constant,
        Edge,
        Symmetric,
        Reflect,
    }

    #[derive(Clone, Copy, Debug)]
    enum MaskModeCode {
        None,
        Causal,
        Array,
    }

    #[derive(Clone, Copy, Debug)]
    enum IndexingCode {
        Xy,
        Ij,
    }

    #[derive(Clone, Copy, Debug)]
    enum SideCode {
        Left,
        Right,
    }

    #[derive(Clone, Copy, Debug)]
    enum TriangleCode {
        Lower,
        Upper,
    }

    #[derive(Clone, Copy, Debug)]
    enum MatrixNormCode {
        Frobenius,
        Nuclear,
    }

    #[derive(Clone, Copy, Debug)]
    enum CompileModeCode {
        Disabled,
        NoSimplify,
        NoFuse,
        Enabled,
    }

    #[derive(Clone, Copy, Debug)]
    enum MetadataKind {
        Empty,
        Array,
        Text,
        Texts,
    }

    #[derive(Clone, Copy, Debug)]
    struct OptInt {
        given: bool,
        value: i32,
    }

    #[derive(Clone, Copy, Debug)]
    struct OptFloat {
        given: bool,
        value: f32,
    }

    #[derive(Clone, Copy, Debug)]
    struct OptBool {
        given: bool,
        value: bool,
    }

    #[derive(Clone, Copy, Debug)]
    struct OptDtype {
        given: bool,
        value: DtypeCode,
    }

    /// Two integers: rows and columns, or before and after.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct IntPair {
        /// The first.
        first: i32,
        /// The second.
        second: i32,
    }

    /// Three integers, one a dimension.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct IntTriple {
        /// The first.
        first: i32,
        /// The second.
        second: i32,
        /// The third.
        third: i32,
    }

    #[derive(Clone, Copy, Debug)]
    struct DeviceCode {
        gpu: bool,
        index: i32,
    }

    #[derive(Clone, Copy, Debug)]
    struct StreamCode {
        index: i32,
        device: DeviceCode,
    }

    #[derive(Clone, Copy, Debug)]
    struct OptStream {
        given: bool,
        value: StreamCode,
    }

    struct ArrayPair {
        first: Array,
        second: Array,
    }

    #[derive(Clone, Copy, Debug)]
    struct PrintCode {
        capitalize_bool: bool,
        precision: i32,
    }

    struct Ints {
        values: Vec<i32>,
    }

    struct ContractionParts {
        steps: Vec<Ints>,
        report: String,
    }

    struct FactParts {
        key: String,
        is_text: bool,
        text: String,
        number: usize,
    }

    struct SafetensorsParts {
        names: Vec<String>,
        arrays: Vec<Array>,
        keys: Vec<String>,
        values: Vec<String>,
    }

    struct MetadataParts {
        key: String,
        kind: MetadataKind,
        arrays: Vec<Array>,
        texts: Vec<String>,
    }

    struct GgufParts {
        names: Vec<String>,
        arrays: Vec<Array>,
        metadata: Vec<MetadataParts>,
    }

    unsafe extern "C++" {
        include!("array_handle.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        include!("group.h");

        #[namespace = "mlx::core::distributed"]
        type Group;
        #[namespace = "oxmlx::group"]
        fn rank(group: &Group) -> Result<i32>;
        #[namespace = "oxmlx::group"]
        fn size(group: &Group) -> Result<i32>;
        #[namespace = "oxmlx::group"]
        fn split(group: &Group, color: i32, key: i32) -> Result<UniquePtr<Group>>;
    }

    // Their vectors cross in other bridges.
    impl Vec<FactParts> {}
    impl Vec<StreamCode> {}
    impl Vec<MetadataParts> {}
    impl UniquePtr<Group> {}
}

/// A device: its kind and which of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// Processor or GPU.
    pub kind: DeviceType,
    /// Which one, from 0.
    pub index: i32,
}

impl From<Device> for ffi::DeviceCode {
    fn from(device: Device) -> Self {
        Self { gpu: device.kind == DeviceType::Gpu, index: device.index }
    }
}

impl From<ffi::DeviceCode> for Device {
    fn from(code: ffi::DeviceCode) -> Self {
        Self { kind: if code.gpu { DeviceType::Gpu } else { DeviceType::Cpu }, index: code.index }
    }
}

/// A stream of MLX's: its number and its device. Only a name; MLX keeps the stream itself for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The number, over all devices.
    pub index: i32,
    /// Where its work runs.
    pub device: Device,
}

impl From<Stream> for ffi::StreamCode {
    fn from(stream: Stream) -> Self {
        Self { index: stream.index, device: stream.device.into() }
    }
}

impl From<ffi::StreamCode> for Stream {
    fn from(code: ffi::StreamCode) -> Self {
        Self { index: code.index, device: code.device.into() }
    }
}

/// A name that stands for a stream of its own on every thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadLocalStream(pub Stream);

impl From<ThreadLocalStream> for ffi::StreamCode {
    fn from(stream: ThreadLocalStream) -> Self {
        stream.0.into()
    }
}

impl From<ffi::StreamCode> for ThreadLocalStream {
    fn from(code: ffi::StreamCode) -> Self {
        Self(code.into())
    }
}

impl From<ffi::OptStream> for Option<Stream> {
    fn from(code: ffi::OptStream) -> Self {
        code.given.then(|| code.value.into())
    }
}

/// `None` as a null pointer, for bridges that take an optional array. The pointer lives as long as the borrow.
pub(crate) fn opt(array: Option<&Array>) -> *const Array {
    array.map_or(std::ptr::null(), std::ptr::from_ref)
}

impl From<Option<i32>> for ffi::OptInt {
    fn from(value: Option<i32>) -> Self {
        Self { given: value.is_some(), value: value.unwrap_or_default() }
    }
}

impl From<Option<f32>> for ffi::OptFloat {
    fn from(value: Option<f32>) -> Self {
        Self { given: value.is_some(), value: value.unwrap_or_default() }
    }
}

impl From<Option<bool>> for ffi::OptBool {
    fn from(value: Option<bool>) -> Self {
        Self { given: value.is_some(), value: value.unwrap_or_default() }
    }
}

impl From<Option<Dtype>> for ffi::OptDtype {
    fn from(value: Option<Dtype>) -> Self {
        Self { given: value.is_some(), value: value.unwrap_or(Dtype::Bool).into() }
    }
}

impl From<[i32; 2]> for IntPair {
    fn from([first, second]: [i32; 2]) -> Self {
        Self { first, second }
    }
}

impl From<[i32; 3]> for IntTriple {
    fn from([first, second, third]: [i32; 3]) -> Self {
        Self { first, second, third }
    }
}

impl From<ffi::ArrayPair> for (Array, Array) {
    fn from(pair: ffi::ArrayPair) -> Self {
        (pair.first, pair.second)
    }
}
