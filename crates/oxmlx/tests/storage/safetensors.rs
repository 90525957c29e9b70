//! SafeTensors over a mapped file: what the copying loader gives, without reading before use.

use std::fs::File;
use std::sync::Arc;

use memmap2::Mmap;
use oxmlx::storage::{Adoption, CopyReason};
use oxmlx::{Array, Dtype, ErrorKind, io};

use crate::device::on_device;
use crate::on_host;

fn map(path: &std::path::Path) -> Mmap {
    // SAFETY: the tests' own file, which nobody changes.
    unsafe { Mmap::map(&File::open(path).unwrap()) }.unwrap()
}

/// A file with one tensor of each kind, `shift` bytes off the alignment of eight.
fn file(folder: &std::path::Path, shift: usize) -> std::path::PathBuf {
    let mut header = concat!(
        r#"{"__metadata__":{"by":"hand"},"c":{"dtype":"C64","shape":[1],"data_offsets":[0,8]},"#,
        r#""f":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},"b":{"dtype":"BOOL","shape":[2],"data_offsets":[24,26]},"#,
        r#""h":{"dtype":"BF16","shape":[3],"data_offsets":[26,32]},"e":{"dtype":"I64","shape":[0,4],"data_offsets":[32,32]}}"#
    )
    .to_owned();
    while header.len() % 8 != shift {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    [1.0f32, -2.0, 0.5, 1.5, 2.5, 3.5].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes.extend([1, 0, 0x80, 0x3f, 0, 0x40, 0x40, 0x40]);
    let path = folder.join(format!("{shift}.safetensors"));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn bytes_of(a: &Array) -> Vec<u8> {
    match a.dtype() {
        Dtype::Bool => a.to_vec::<bool>().unwrap().into_iter().map(u8::from).collect(),
        Dtype::Float32 => bytemuck::cast_slice(&a.to_vec::<f32>().unwrap()).to_vec(),
        Dtype::Bfloat16 => bytemuck::cast_slice(&a.to_vec::<oxmlx::bf16>().unwrap()).to_vec(),
        Dtype::Complex64 => bytemuck::cast_slice(&a.to_vec::<oxmlx::Complex32>().unwrap()).to_vec(),
        Dtype::Int64 => bytemuck::cast_slice(&a.to_vec::<i64>().unwrap()).to_vec(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_mapped_file_gives_what_the_copying_loader_gives() {
    on_device(|| {
        let folder = tempfile::tempdir().unwrap();
        for shift in [0, 1] {
            let path = file(folder.path(), shift);
            let mapped = io::map_safetensors(map(&path)).unwrap();
            let copied = io::load_safetensors(&path).unwrap();
            assert_eq!(mapped.metadata, copied.metadata);
            assert_eq!(mapped.arrays.len(), copied.arrays.len());
            for ((name, a, adoption), (copied_name, b)) in mapped.arrays.iter().zip(&copied.arrays) {
                assert_eq!((name, a.shape(), a.dtype()), (copied_name, b.shape(), b.dtype()));
                assert_eq!(bytes_of(a), bytes_of(b), "{name}");
                let expected = match (name.as_str(), shift) {
                    ("e", _) => Adoption::Copied(CopyReason::Empty),
                    ("b", 1) if on_host() => Adoption::Adopted,
                    ("b", 1) => Adoption::Copied(CopyReason::Device),
                    (_, 1) => Adoption::Copied(CopyReason::Unaligned),
                    _ if on_host() => Adoption::Adopted,
                    _ => Adoption::Copied(CopyReason::Device),
                };
                assert_eq!(*adoption, expected, "{name} at {shift}");
            }
        }
    });
}

#[test]
fn a_damaged_mapped_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(file(folder.path(), 0)).unwrap();
    let path = folder.path().join("cut");
    for length in [0, 7, 8, 40, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(io::map_safetensors(map(&path)).unwrap_err().kind(), ErrorKind::Format, "{length} bytes");
    }
    // SAFETY: there is no such file.
    let error = unsafe { io::map_safetensors_file(folder.path().join("none")) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn arrays_over_one_map_share_it_and_offsets_outside_are_errors() {
    on_device(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        std::fs::write(&path, (0..16u8).collect::<Vec<u8>>()).unwrap();
        let shared = Arc::new(map(&path));
        let (a, _) = Array::from_mmap(shared.clone(), 0, 4, Dtype::Uint8).unwrap();
        let (b, _) = Array::from_mmap(shared.clone(), 12, 2, Dtype::Uint16).unwrap();
        for offset in [13, 16, usize::MAX] {
            let error = Array::from_mmap(shared.clone(), offset, 2, Dtype::Uint16).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Shape);
        }
        drop(shared);
        assert_eq!(a.to_vec::<u8>().unwrap(), [0, 1, 2, 3]);
        assert_eq!(b.to_vec::<u16>().unwrap(), [u16::from_ne_bytes([12, 13]), u16::from_ne_bytes([14, 15])]);
    });
}

/// The small twin of the example `map_safetensors`, which does it with two GiB.
#[cfg(target_os = "linux")]
#[test]
fn a_mapped_file_takes_no_memory_before_it_is_used() {
    use std::io::Write as _;
    if !on_host() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.safetensors");
    let n = 256usize << 20;
    let mut header = format!(r#"{{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{n}]}}}}"#, n / 4);
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut file = File::create(&path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    // Sparse: the zeros are nowhere on the disk.
    file.set_len((8 + header.len() + n) as u64).unwrap();
    let once = || {
        let before = crate::resident();
        let mapped = io::map_safetensors(map(&path)).unwrap();
        (crate::resident().saturating_sub(before), mapped)
    };
    // Other tests run beside this one: what one try takes, others must.
    let (grown, mapped) = (0..5).map(|_| once()).min_by_key(|(grown, _)| *grown).unwrap();
    assert_eq!(mapped.arrays[0].2, Adoption::Adopted);
    assert!(grown < 8 << 20, "{grown} bytes");
    assert_eq!(oxmlx::ops::sum(&mapped.arrays[0].1).unwrap().item::<f32>().unwrap(), 0.0);
}
