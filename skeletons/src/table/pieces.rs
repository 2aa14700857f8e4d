//! A letter that is longer than a message travels in pieces.
//!
//! What is asked of a share fits into a message, but for what an update makes of it: that may be
//! longer, and copies must have it, or the table would end.

use super::kind::{TableKey, TableValue};
use super::letter::{Letter, Sent, deliver};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use ultramarine_group::GroupId;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_runtime::wire::{WireError, decode, encode};
use ultramarine_topology::Pe;

/// What a message of a table has beside its contents, in bytes, is shorter.
pub(super) const MESSAGE_OVERHEAD_BYTES: usize = 256;

/// The most of a letter that a message has, in bytes: other messages have their turn in between.
const LETTER_PIECE_BYTES_MAX: usize = 1 << 20;

/// Some bytes of a letter. No other letter of this table comes from that PE before its last.
#[derive(Serialize, Deserialize)]
struct LetterPiece {
    id: GroupId,
    from: Pe,
    what: Sent,
    is_first: bool,
    is_last: bool,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

/// The letters that have come in part, by their tables and senders.
#[derive(Default)]
struct InPart(Mutex<HashMap<(GroupId, Pe), Vec<u8>>>);

/// Sends a letter in as many messages as it needs.
///
/// # Errors
///
/// It cannot be encoded, or the job ends.
pub(super) fn send_in_pieces<K: TableKey, V: TableValue>(
    cx: &Context,
    id: GroupId,
    to: Pe,
    what: Sent,
    letter: &Letter<K, V>,
) -> Result<(), TaskError> {
    let bytes = encode(letter).map_err(|error| unread(&error))?;
    let room = cx.value_bytes_max().saturating_sub(MESSAGE_OVERHEAD_BYTES);
    let mut pieces = bytes.chunks(room.clamp(1, LETTER_PIECE_BYTES_MAX)).peekable();
    let mut is_first = true;
    while let Some(bytes) = pieces.next() {
        let (from, is_last, bytes) = (cx.pe(), pieces.peek().is_none(), bytes.to_vec());
        let piece = LetterPiece { id, from, what, is_first, is_last, bytes };
        cx.tell_fn(to, |cx: &Context, piece| receive::<K, V>(cx, piece), piece)?;
        is_first = false;
    }
    Ok(())
}

fn receive<K: TableKey, V: TableValue>(cx: &Context, piece: LetterPiece) {
    let LetterPiece { id, from, what, is_first, is_last, bytes } = piece;
    let in_part = cx.pe_local::<InPart>();
    let whole = {
        let mut all = in_part.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_first {
            all.insert((id, from), Vec::new());
        }
        if let Some(letter) = all.get_mut(&(id, from)) {
            letter.extend(bytes);
        }
        if is_last { all.remove(&(id, from)) } else { None }
    };
    if let Some(whole) = whole {
        deliver::<K, V>(cx, (id, from, what), decode(&whole).map_err(|error| unread(&error)));
    }
}

/// The rest of what these PEs have begun does not come: all that they sent before their deaths is
/// here.
pub(super) fn forget_of(cx: &Context, dead: &[Pe]) {
    let in_part = cx.pe_local::<InPart>();
    let mut all = in_part.0.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, from), _| !dead.contains(from));
}

fn unread(error: &WireError) -> TaskError {
    TaskError::Codec { what: "a letter of a table".to_owned(), reason: error.to_string() }
}
