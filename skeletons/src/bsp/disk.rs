//! What a PE does in the directory for checkpoints, on a thread beside the workers.

use super::error::BspError;
use super::folder::{Copies, Folder, Found, Lock};
use super::machine::{Key, Work};
use super::part::{RunPart, carry_out_but_tasks};
use super::program::Program;
use super::work::spawn_some;
use crate::own_thread::on_own_thread;
use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use ultramarine_group::{Groups, Name};
use ultramarine_runtime::executor::Context;

/// Something to be done there.
#[derive(Clone)]
pub(super) enum Errand {
    Look(Work, Range<u32>),
    Load(Work, Key, Range<u32>),
    Store(Work, Key, Copies),
    Prune(Key, u32),
    Discard(Key),
}

/// What has come of it.
enum Done {
    Found(Work, Found, Option<Lock>),
    Loaded(Work, Key, Copies),
    Stored(Work, Key, Option<Lock>),
    NotStored(Work, Key),
    Pruned,
    Failed(Work, BspError),
}

impl Errand {
    /// Does it. This blocks.
    fn run(self, folder: &Folder, is_locked: bool) -> Done {
        let failed = |message| BspError::Directory { message };
        match self {
            Errand::Look(work, ranks) => {
                let lock = lock_for(folder, ranks.contains(&0) && !is_locked);
                match lock.and_then(|lock| Ok((folder.look(ranks)?, lock))) {
                    Ok((found, lock)) => Done::Found(work, found, lock),
                    Err(message) => Done::Failed(work, failed(message)),
                }
            }
            Errand::Load(work, key, ranks) => match folder.load(key, ranks) {
                Ok(copies) => Done::Loaded(work, key, copies),
                Err(message) => Done::Failed(work, failed(message)),
            },
            Errand::Store(work, key, copies) => {
                // The first rank may be this PE's since a death.
                let lock = lock_for(folder, copies.contains_key(&0) && !is_locked);
                match lock.and_then(|lock| folder.store(key, &copies).map(|()| lock)) {
                    Ok(lock) => {
                        if folder.is_failing.swap(false, Relaxed) {
                            tracing::warn!("checkpoints are put into the directory again");
                        }
                        Done::Stored(work, key, lock)
                    }
                    Err(message) => {
                        let superstep = key.superstep;
                        if !folder.is_failing.swap(true, Relaxed) {
                            tracing::warn!(
                                "superstep {superstep} is not in the directory (nor are others, \
                                 until it is said that they are): {message}"
                            );
                        }
                        Done::NotStored(work, key)
                    }
                }
            }
            Errand::Discard(key) => {
                folder.discard(key);
                Done::Pruned
            }
            Errand::Prune(key, generation) => {
                folder.prune(key, generation);
                Done::Pruned
            }
        }
    }
}

/// The PE that has the first rank locks the directory for the job.
fn lock_for(folder: &Folder, is_wanted: bool) -> Result<Option<Lock>, String> {
    is_wanted.then(|| folder.lock()).transpose()
}

/// Does one thing after the other, as long as there is anything.
#[expect(
    clippy::manual_async_fn,
    reason = "it spawns itself by way of others, so its type must say that it is Send"
)]
pub(super) fn do_errands<P: Program>(cx: Context, name: Name) -> impl Future<Output = ()> + Send {
    async move {
        let Some(member) = Groups::<RunPart<P>>::on(&cx).get(name) else { return };
        let take = |_, part: &mut RunPart<P>| {
            let next = part.errands.pop_front().zip(part.folder.clone());
            part.is_on_errand = next.is_some();
            next.map(|next| (next, part.lock.is_some()))
        };
        while let Some(((errand, folder), is_locked)) = member.with(take).flatten() {
            let (begun, again) = (Instant::now(), errand.clone());
            let run = move || catch_unwind(AssertUnwindSafe(|| errand.run(&folder, is_locked)));
            let done = on_own_thread(run).await.and_then(|done| {
                done.map_err(|_| std::io::Error::other("what is done there has panicked"))
            });
            let wanted = member.act(|part| match done {
                Ok(Done::Found(work, Found { generation, keys }, lock)) => {
                    part.lock = part.lock.take().or(lock);
                    part.machine.found(work, generation, keys);
                }
                Ok(Done::Loaded(work, key, copies)) => part.machine.loaded(work, key, copies),
                Ok(Done::Stored(work, key, lock)) => {
                    part.lock = part.lock.take().or(lock);
                    part.pace.spend(begun.elapsed());
                    part.machine.stored(work, key, true);
                }
                Ok(Done::NotStored(work, key)) => part.machine.stored(work, key, false),
                Ok(Done::Pruned) => {}
                Ok(Done::Failed(work, error)) => part.machine.fail_in(work, error),
                Err(error) => part.give_up(&again, &error),
            });
            if let Some((id, todo)) = wanted {
                let tasks = todo.tasks;
                carry_out_but_tasks(&cx, &member, id, todo);
                spawn_some::<P>(&cx, id.name, tasks);
            }
        }
    }
}

impl<P: Program> RunPart<P> {
    /// It cannot be done.
    fn give_up(&mut self, errand: &Errand, error: &std::io::Error) {
        match errand {
            Errand::Look(work, _) | Errand::Load(work, ..) => {
                let message = format!("the directory for checkpoints: {error}");
                self.machine.fail_in(*work, BspError::Directory { message });
            }
            Errand::Store(work, key, _) => self.machine.stored(*work, *key, false),
            Errand::Prune(..) | Errand::Discard(_) => {}
        }
    }
}
