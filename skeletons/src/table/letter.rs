//! What the parts of a table tell each other, and how it is sent.

use super::error::TableError;
use super::kind::{Answer, Of, TableKey, TableValue};
use super::machine::{MessageOf, Request, Told};
use super::part::TablePart;
use super::pieces::send_in_pieces;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use ultramarine_group::{GroupId, Groups, Member, Site};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_topology::Pe;

/// What parts tell each other.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) enum Letter<K: TableKey, V: TableValue> {
    Told(Told<Of<K, V>>),
    /// The table is over.
    Over(TableError),
    /// What has come cannot be decoded, for this reason. A part tells it itself.
    #[serde(skip)]
    Unread(Sent, String),
}

/// What a letter is. This is decoded, whatever the keys and values are.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum Sent {
    Request(Pe, u64),
    Answer(Pe, u64),
    /// What copies need.
    Copy,
    Over,
}

/// Sends what is to be sent.
pub(super) fn send_all<K: TableKey, V: TableValue>(
    cx: &Context,
    member: &Member<TablePart<K, V>>,
    id: GroupId,
) {
    while let Some(Some((to, letter))) = member.with(|_, part| part.next_to_send()) {
        let what = match &letter {
            Letter::Told((share, MessageOf::Ask(Request { number, .. }, _))) => {
                Sent::Request(*share, *number)
            }
            Letter::Told((share, MessageOf::Answer { number, .. })) => {
                Sent::Answer(*share, *number)
            }
            Letter::Told(_) => Sent::Copy,
            Letter::Over(_) | Letter::Unread(..) => Sent::Over,
        };
        let Err(error) = send(cx, id, to, what, letter) else { continue };
        match what {
            Sent::Request(share, number) => {
                let refuse = |part: &mut TablePart<K, V>| {
                    part.machine.withdraw(share, number);
                    part.answer((share, number), Err(error.into()))
                };
                let mut answer = None;
                member.act_at_once(cx, |part| answer = Some(refuse(part)));
                if let Some(Ok(Some(waker))) = answer {
                    waker.wake();
                }
            }
            Sent::Answer(share, number) => {
                // It is done, but what came of it cannot be told.
                let answer = Answer::Failed(error.to_string());
                let told = (share, MessageOf::Answer { number, answer });
                drop(send::<K, V>(cx, id, to, what, Letter::Told(told)));
            }
            Sent::Copy => member.act_at_once(cx, |part| {
                let over = match error {
                    TaskError::ShuttingDown => TaskError::ShuttingDown.into(),
                    error => part.head.copies_not_told(error.to_string()),
                };
                part.end_with(cx, over, true);
            }),
            // The job is ending.
            Sent::Over => {}
        }
    }
}

fn send<K: TableKey, V: TableValue>(
    cx: &Context,
    id: GroupId,
    to: Pe,
    what: Sent,
    letter: Letter<K, V>,
) -> Result<(), TaskError> {
    let receive = |cx: &Context, sender, letter: Result<Arc<_>, _>| {
        deliver::<K, V>(cx, sender, letter.map(Arc::unwrap_or_clone));
    };
    let letter = Arc::new(letter);
    match cx.tell_with(to, receive, (id, cx.pe(), what), letter.clone()) {
        Err(TaskError::TooLarge { .. }) => send_in_pieces(cx, id, to, what, &letter),
        sent => sent,
    }
}

/// A letter has come.
pub(super) fn deliver<K: TableKey, V: TableValue>(
    cx: &Context,
    (id, from, what): (GroupId, Pe, Sent),
    letter: Result<Letter<K, V>, TaskError>,
) {
    let letter = letter.unwrap_or_else(|error| match error {
        TaskError::Codec { reason, .. } => Letter::Unread(what, reason),
        error => Letter::Unread(what, error.to_string()),
    });
    Groups::<TablePart<K, V>>::on(cx).receive(id, from, [letter]);
}
