//! A table that is spread over all PEs, and outlives some of them.
//!
//! Each key belongs to a PE, its *owner*, by its hash; that PE does what is asked of the key, one
//! thing after the other. Other PEs have [copies](Opening::copies) of the owner's entries. If the
//! owner dies, the PE with the first copy becomes the owner, and what was under way is asked again
//! there, and done once. (`SymGridPar2` plans such tables for orbits, with replicas that are kept
//! in sync: the end of §5.)
//!
//! The future of a request is ready when all copies have made the change, too: then only the death
//! of all holders can undo it. What a task reads cannot be undone otherwise, either.
//!
//! - Inserts of the same keys in any order, and updates that commute, lead to the same entries,
//!   whatever dies. For other updates the order of each key is the owner's.
//! - A task that is supervised may run twice, and asks for its updates again then: these are done
//!   twice. `insert_if_absent` does not mind.
//! - The bulk forms (`…_all`) send many keys in a message: a hundred times as many a second as one
//!   by one.
//!
//! ```
//! use ultramarine_runtime::executor::Context;
//! use ultramarine_skeletons::table::{TableError, table};
//!
//! async fn count(cx: &Context, words: Vec<String>) -> Result<Option<u64>, TableError> {
//!     let counts = table::<String, u64>(cx, "words").open()?;
//!     let add = |_: &String, count: &mut Option<u64>, more: u64| {
//!         *count = Some(count.unwrap_or(0) + more);
//!     };
//!     counts.update_all(add, words.into_iter().map(|word| (word, 1))).await?;
//!     counts.get("the".to_owned()).await
//! }
//! ```
//!
//! A table must never know what its keys and values are for.

mod ask;
mod bulk;
mod error;
mod kind;
mod letter;
#[doc(hidden)]
pub mod machine;
mod open;
mod orbits;
mod part;
mod pieces;
mod seen;
mod store;
mod update;

pub use self::ask::{Table, TableRef};
pub use self::error::TableError;
pub use self::kind::{TableKey, TableValue};
pub use self::open::{Opening, table};

/// Runs the main task of a test on two PEs of this process.
#[cfg(test)]
pub(crate) fn job_of_two<T>(
    main: impl FnOnce(ultramarine_runtime::executor::Context) -> T + Send + 'static,
) where
    T: Future<Output = ()> + Send + 'static,
{
    let places = vec![ultramarine::Place::default(); 2];
    let options = ultramarine::Options::default().places(places).threads(2);
    let options = options.lane(ultramarine::LaneKind::Memory);
    let run = || {
        options.run(|cx| {
            let main = main(cx);
            async {
                main.await;
                Ok(())
            }
        })
    };
    ultramarine_testkit::bounded(run).expect("the job is well");
}
