//! A reading position in the file's bytes that can't run past their end.

use crate::{Error, ErrorKind, Result};

#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let bytes = self.bytes[self.at..].get(..count).ok_or_else(|| {
            self.damaged(format!(
                "truncated or damaged file, fetch it again: {count} bytes wanted at offset {}, {} left",
                self.at,
                self.remaining()
            ))
        })?;
        self.at += count;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of things of which each takes at least `least` bytes: refused if the rest of the file can't hold them.
    pub(super) fn count(&mut self, things: &str, least: usize) -> Result<usize> {
        let count = self.u64()?;
        let most = self.remaining() / least;
        usize::try_from(count).ok().filter(|&n| n <= most).ok_or_else(|| {
            self.damaged(format!(
                "truncated or damaged file, fetch it again: it says it has {count} {things}, there is room for {most}"
            ))
        })
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        let at = self.at;
        let length = self.count("bytes of text", 1)?;
        std::str::from_utf8(self.take(length)?)
            .map_err(|e| self.damaged(format!("damaged file: the text at offset {at} is not utf-8")).caused_by(e))
    }

    pub(super) fn damaged(&self, what: String) -> Error {
        Error::new(ErrorKind::Format, what)
    }
}
