//! Damaged GGUF files are errors that name the place.

use oxmlx_lm::ErrorKind;
use oxmlx_lm::gguf::Gguf;

use crate::gguf_writer::{Val, Writer, text};

fn parse_error(file: &[u8]) -> oxmlx_lm::Error {
    match Gguf::parse(file) {
        Ok(_) => panic!("parsed"),
        Err(error) => error,
    }
}

#[test]
fn f03_a_small_file_whose_string_says_it_is_4_mib_long_is_an_error() {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(0u64.to_le_bytes());
    file.extend(1u64.to_le_bytes());
    text(b"key", &mut file);
    file.extend(8u32.to_le_bytes());
    file.extend((4u64 << 20).to_le_bytes());
    file.extend(b"short");
    assert!(file.len() < 60);
    let error = parse_error(&file);
    assert_eq!((error.kind(), error.field()), (ErrorKind::Format, Some("key")));
    assert!(error.to_string().contains("4194304"), "{error}");
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let file = Writer::default()
        .key("a", Val::strs(["x", "y"]))
        .key("b", Val::F64(1.0))
        .tensor("t", &[2, 32], 8, vec![1; 68])
        .tensor("u", &[3], 0, vec![2; 12])
        .build();
    assert!(Gguf::parse(&file).is_ok());
    for length in 0..file.len() {
        assert_eq!(parse_error(&file[..length]).kind(), ErrorKind::Format, "{length} bytes");
    }
}

#[test]
fn smollm2_cut_short_is_an_error_that_says_so() {
    if crate::support::smollm2_is_left_out() {
        return;
    }
    let file = oxmlx_lm::Mapped::open(crate::support::smollm2()).unwrap();
    for length in [10, 100, 10_000, file.len() / 2, file.len() - 1] {
        let error = parse_error(&file[..length]);
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().contains("truncated"), "{length}: {error}");
    }
}

#[test]
fn other_files_versions_and_byte_orders_are_told_apart() {
    let with = |version: u32| Writer::new(version, 32).build();
    assert!(parse_error(b"PK\x03\x04 a zip file").to_string().contains("not a gguf file"));
    for (version, says) in [(1, "version 1"), (4, "version 4"), (3u32.swap_bytes(), "big-endian")] {
        let error = parse_error(&with(version));
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn damaged_metadata_name_their_key() {
    let typed = |id: u32, bytes: &[u8]| [&id.to_le_bytes(), bytes].concat();
    let array =
        |id: u32, count: u64, bytes: &[u8]| typed(9, &[&id.to_le_bytes()[..], &count.to_le_bytes(), bytes].concat());
    let bad_text = [&2u64.to_le_bytes()[..], b"\xff\xfe"].concat();
    let deep = (0..6).fold(array(0, 0, &[])[4..].to_vec(), |inner, _| array(9, 1, &inner)[4..].to_vec());
    let cases: [(&str, Vec<u8>); 9] = [
        ("neither 0 nor 1", typed(7, &[2])),
        ("not utf-8", typed(8, &bad_text)),
        ("13 is no value type", typed(13, &[0; 8])),
        ("13 is no value type", array(13, 1, &[0; 8])),
        ("18446744073709551615 array elements", array(0, u64::MAX, &[0; 8])),
        ("array elements", array(12, 1 << 61, &[0; 8])),
        ("array elements", array(8, 1000, &[0; 8])),
        ("not utf-8", array(8, 1, &bad_text)),
        ("nested", typed(9, &deep)),
    ];
    for (says, value) in cases {
        let error = parse_error(&Writer::default().raw_key(b"the.key", value).build());
        assert_eq!((error.kind(), error.field()), (ErrorKind::Format, Some("the.key")), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let twice = Writer::default().key("k", Val::U8(1)).key("k", Val::U8(2)).build();
    assert_eq!(parse_error(&twice).field(), Some("k"));
    assert_eq!(parse_error(&Writer::default().raw_key(b"\xff", typed(0, &[1])).build()).kind(), ErrorKind::Format);
    for alignment in [Val::U32(0), Val::U32(3), Val::str("32")] {
        let file = Writer::default().key("general.alignment", alignment).build();
        assert_eq!(parse_error(&file).field(), Some("general.alignment"));
    }
}

#[test]
fn damaged_tensors_are_named() {
    let tensor =
        |shape: &[u64], id: u32, bytes: usize| Writer::default().tensor("the.tensor", shape, id, vec![0; bytes]);
    let cases: [(&str, Writer); 9] = [
        ("no whole number of Q4_0 blocks of 32", tensor(&[2, 40], 2, 64)),
        ("no whole number of Q6_K blocks", tensor(&[32], 14, 210)),
        ("too large", tensor(&[1 << 32, 1 << 32], 0, 4)),
        ("too large", tensor(&[u64::MAX], 24, 4)),
        ("too large", tensor(&[0, 1 << 62, 1 << 62], 0, 0)),
        ("dimensions", tensor(&[1, 1, 1, 1, 1], 0, 4)),
        ("truncated file", tensor(&[100], 0, 4)),
        ("truncated file", tensor(&[1], 0, 4).at_offset(1 << 40)),
        ("no multiple of the alignment", tensor(&[1], 0, 64).at_offset(4)),
    ];
    for (says, writer) in cases {
        let error = parse_error(&writer.build());
        assert_eq!((error.kind(), error.tensor()), (ErrorKind::Format, Some("the.tensor")), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    for (id, says) in [(4, "removed"), (200, "number 200")] {
        let error = parse_error(&tensor(&[32], id, 32).build());
        assert_eq!((error.kind(), error.tensor()), (ErrorKind::Unsupported, Some("the.tensor")));
        assert!(error.to_string().contains(says), "{error}");
    }
    let twice = Writer::default().tensor("x", &[1], 0, vec![0; 4]).tensor("x", &[1], 0, vec![0; 4]).build();
    assert_eq!(parse_error(&twice).tensor(), Some("x"));
}

#[test]
fn overlapping_tensors_are_an_error_that_names_both() {
    let file = Writer::default()
        .tensor("first", &[16], 0, vec![0; 64])
        .tensor("second", &[16], 0, vec![0; 64])
        .at_offset(32)
        .build();
    let error = parse_error(&file);
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::Format, Some("second")));
    assert!(error.to_string().contains("first"), "{error}");
}
