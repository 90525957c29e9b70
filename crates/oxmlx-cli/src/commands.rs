//! The commands, one file each.

pub(crate) mod answer;
pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod generate;
pub(crate) mod info;
pub(crate) mod verify;
