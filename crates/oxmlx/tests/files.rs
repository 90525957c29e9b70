//! Files: what is written is read, and what is damaged is an error that says what is wrong (rows A04, F01 to F04, F08).

use oxmlx::io::{self, GgufValue};
use oxmlx::{Array, Dtype, ErrorKind, ops};

fn header(text: &str, data: usize) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn refused(bytes: Vec<u8>, words: &[&str]) {
    let error = io::load_safetensors_bytes(bytes).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Dtype), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error} says nothing of {word}");
    }
}

/// Rows F01 and F02.
#[test]
fn a_damaged_safetensors_header_is_an_error_that_names_the_tensor() {
    refused(header(r#"{"w":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}}"#, 4), &["\"w\"", "4000000"]);
    refused(header(r#"{"w":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}}"#, 40), &["\"w\"", "40"]);
    refused(
        header(
            r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}"#,
            6,
        ),
        &["\"a\"", "\"b\"", "overlap"],
    );
    refused(
        header(
            r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#,
            2,
        ),
        &["twice"],
    );
    refused(header("{not json", 0), &["JSON"]);
    refused(vec![1, 2, 3], &["3 bytes"]);
    refused(u64::MAX.to_le_bytes().to_vec(), &["header"]);
    refused((200_000_000u64).to_le_bytes().iter().copied().chain([0; 8]).collect(), &["200000000"]);
    let mut not_text = 2u64.to_le_bytes().to_vec();
    not_text.extend([0xFF, 0xFE]);
    refused(not_text, &["UTF-8"]);
    refused(header(r#"{"w":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]}}"#, 4), &["\"w\"", "F8_E8M0"]);
}

/// Row F04, for what MLX writes.
#[test]
fn every_dtype_of_safetensors_comes_back() {
    let dtypes = Dtype::ALL.into_iter().filter(|&dtype| dtype != Dtype::Float64);
    let arrays: Vec<(String, Array)> = dtypes
        .map(|dtype| (dtype.to_string(), ops::arange(0.0, 6.0, 1.0, Dtype::Float32).unwrap().astype(dtype).unwrap()))
        .collect();
    let named: Vec<(&str, Array)> = arrays.iter().map(|(name, a)| (name.as_str(), a.clone())).collect();
    let file = io::load_safetensors_bytes(io::save_safetensors_bytes(&named, &[("k", "v")]).unwrap()).unwrap();
    assert_eq!(file.metadata.iter().find(|(key, _)| key == "k").unwrap().1, "v");
    assert_eq!(file.arrays.len(), named.len());
    for (name, array) in &file.arrays {
        let (_, original) = named.iter().find(|(known, _)| known == name).unwrap();
        assert_eq!(array.dtype(), original.dtype());
        assert!(array.array_equal(original).unwrap(), "{name}");
    }
}

/// Row A04.
#[test]
fn two_threads_that_save_lazy_arrays_write_both_files_right() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|s| {
        for t in 0..2i32 {
            let folder = folder.path();
            s.spawn(move || {
                for round in 0..20 {
                    let lazy =
                        ops::add(&Array::scalar(t).unwrap(), &ops::arange_i32(0, 100 + round, 1).unwrap()).unwrap();
                    let path = folder.join(format!("{t}.safetensors"));
                    io::save_safetensors(&path, &[("x", lazy)], &[]).unwrap();
                    let back = io::load_safetensors(&path).unwrap().arrays.swap_remove(0).1;
                    assert_eq!(back.to_vec::<i32>().unwrap(), (t..t + 100 + round).collect::<Vec<_>>());
                }
            });
        }
    });
}

#[test]
fn npy_files_come_back_and_damaged_ones_are_errors() {
    let a = Array::matrix(&[[1.5f32, 2.0], [3.0, 4.0]]).unwrap();
    let bytes = io::save_npy_bytes(&a.transpose().unwrap()).unwrap();
    assert_eq!(io::load_npy_bytes(bytes.clone()).unwrap().to_vec::<f32>().unwrap(), [1.5, 3.0, 2.0, 4.0]);
    for end in 0..bytes.len() {
        let error = io::load_npy_bytes(bytes[..end].to_vec()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "cut at {end}");
    }
    assert_eq!(io::load_npy("/nowhere/x.npy").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(io::save_npy("/nowhere/x.npy", &a).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn safetensors_cut_anywhere_are_errors() {
    let bytes = io::save_safetensors_bytes(&[("x", Array::vector(&[1.0f32, 2.0]).unwrap())], &[]).unwrap();
    for end in 0..bytes.len() {
        assert_eq!(io::load_safetensors_bytes(bytes[..end].to_vec()).unwrap_err().kind(), ErrorKind::Format, "{end}");
    }
}

/// Rows F03 and F08.
#[test]
fn gguf_files_come_back_and_damaged_ones_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    let a = Array::matrix(&[[1.0f32, 2.0, 3.0]]).unwrap();
    let metadata =
        [("text", GgufValue::Text("hello".into())), ("list", GgufValue::Texts(vec!["a".into(), "b".into()]))];
    io::save_gguf(&path, &[("x", a)], &metadata).unwrap();
    let file = io::load_gguf(&path).unwrap();
    assert_eq!(file.arrays[0].1.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    assert!(file.metadata.iter().any(|(k, v)| k == "text" && matches!(v, GgufValue::Text(t) if t == "hello")));
    assert!(file.metadata.iter().any(|(k, v)| k == "list" && matches!(v, GgufValue::Texts(t) if t[..] == ["a", "b"])));
    let bytes = std::fs::read(&path).unwrap();
    let cut = folder.path().join("cut.gguf");
    for end in (0..bytes.len()).step_by(3) {
        std::fs::write(&cut, &bytes[..end]).unwrap();
        assert_eq!(io::load_gguf(&cut).unwrap_err().kind(), ErrorKind::Format, "cut at {end}");
    }
    // A text that says it is 4 MiB long, in a file of 50 bytes.
    let mut long = b"GGUF".to_vec();
    long.extend(3u32.to_le_bytes());
    long.extend(0u64.to_le_bytes());
    long.extend(1u64.to_le_bytes());
    long.extend((4u64 << 20).to_le_bytes());
    long.resize(50, b'x');
    std::fs::write(&cut, &long).unwrap();
    let error = io::load_gguf(&cut).unwrap_err();
    assert!(error.kind() == ErrorKind::Format && error.to_string().contains("4194304"), "{error}");
}

/// Row F08: MLX's reader drops such tensors, or crashes on such values.
#[test]
fn what_mlx_reads_wrong_in_a_gguf_file_is_an_error_that_names_it() {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let header = |tensors: u64, values: u64| {
        [&b"GGUF"[..], &3u32.to_le_bytes(), &tensors.to_le_bytes(), &values.to_le_bytes()].concat()
    };
    let value = [header(0, 1), text("a.number"), 12u32.to_le_bytes().to_vec(), 2.5f64.to_le_bytes().to_vec()].concat();
    let tensor = |kind: u32, bytes: usize| {
        let mut file =
            [header(1, 0), text("a.tensor"), 1u32.to_le_bytes().to_vec(), 32u64.to_le_bytes().to_vec()].concat();
        file.extend(kind.to_le_bytes());
        file.extend(0u64.to_le_bytes());
        file.resize(file.len().next_multiple_of(32) + bytes, 0);
        file
    };
    // A float64; BF16 and MXFP4 by their numbers in ggml.
    for (file, name) in [(value, "a.number"), (tensor(30, 64), "a.tensor"), (tensor(39, 17), "a.tensor")] {
        let error = io::load_gguf_bytes(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    // The same file with a type that it reads.
    assert_eq!(io::load_gguf_bytes(&tensor(0, 128)).unwrap().arrays[0].1.to_vec::<f32>().unwrap(), [0.0; 32]);
}
