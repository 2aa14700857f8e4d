//! What a rank has in a superstep: what was sent to it, and how it sends.

use super::kind::{Operation, Tagged, Value};
use super::machine::Letter;
use super::program::{Program, Start};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Display;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::Portable;

/// A rank's communicator in one superstep.
///
/// What is sent in a superstep is there in the next one, and only there: what a rank does not take
/// is dropped.
#[derive(Debug)]
pub struct Comm<P: Program> {
    start: Start,
    superstep: u64,
    have_all_slept: bool,
    letters: VecDeque<Letter<Tagged<P::Message>>>,
    results: VecDeque<Option<Value>>,
    pub(super) sent: Vec<Letter<Tagged<P::Message>>>,
    /// Where among these the message is to which more is added, by its rank.
    combined: HashMap<u32, usize>,
    pub(super) offered: Vec<(Operation, Value)>,
    /// What is said of the progress.
    pub(super) note: Option<String>,
}

impl<P: Program> Comm<P> {
    pub(super) fn new(
        start: Start,
        (superstep, have_all_slept): (u64, bool),
        letters: Vec<Letter<Tagged<P::Message>>>,
        results: Vec<Option<Value>>,
    ) -> Self {
        let (letters, results) = (letters.into(), results.into());
        let (sent, combined, offered, note) = (Vec::new(), HashMap::new(), Vec::new(), None);
        Comm { start, superstep, have_all_slept, letters, results, sent, combined, offered, note }
    }

    /// The tags of messages that were not taken.
    pub(super) fn left(&self) -> BTreeSet<u32> {
        self.letters.iter().map(|letter| letter.content.0).collect()
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.start.rank
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.start.ranks
    }

    /// Says something of the progress, a residual, say: see
    /// [`Bsp::progress`](super::Bsp::progress).
    pub fn note(&mut self, note: impl Display) {
        self.note = Some(note.to_string());
    }

    /// The number of the superstep, from 0 on.
    pub fn superstep(&self) -> u64 {
        self.superstep
    }

    /// Whether this rank was woken because in the superstep before all ranks slept or had ended,
    /// and nothing was sent: in a search that spreads from rank to rank, the end. If all sleep
    /// again, and send nothing, the run fails, since nothing would ever wake them.
    pub fn all_slept(&self) -> bool {
        self.have_all_slept
    }

    /// Sends a message to a rank, which may be this one.
    ///
    /// # Panics
    ///
    /// There is no such rank.
    #[track_caller]
    pub fn send(&mut self, to: u32, message: P::Message) {
        self.send_tagged(to, 0, message);
    }

    /// Sends a message with a tag, by which it can be [received](Self::receive_tagged). Others have
    /// tag 0.
    ///
    /// # Panics
    ///
    /// There is no such rank.
    #[track_caller]
    pub fn send_tagged(&mut self, to: u32, tag: u32, message: P::Message) {
        let Start { rank: from, ranks, .. } = self.start;
        assert!(to < ranks, "a message to rank {to}, but the ranks are 0 to {}", ranks - 1);
        self.sent.push(Letter { from, to, content: (tag, message) });
    }

    /// Sends a message, or adds it to the one that this rank has sent to the same rank in this
    /// superstep by this method: a combiner on the sender's side (Malewicz et al., Pregel, 2010).
    /// Messages of other ranks are never added, so that the same comes to the same on any number of
    /// PEs.
    ///
    /// # Panics
    ///
    /// There is no such rank.
    #[track_caller]
    pub fn send_combined(
        &mut self,
        to: u32,
        message: P::Message,
        combine: impl FnOnce(&mut P::Message, P::Message),
    ) {
        let next = self.sent.len();
        match *self.combined.entry(to).or_insert(next) {
            at if at == next => self.send(to, message),
            at => combine(&mut self.sent[at].content.1, message),
        }
    }

    /// Sends a message to all ranks, this one included.
    pub fn send_all(&mut self, message: P::Message)
    where
        P::Message: Clone,
    {
        for to in 1..self.start.ranks {
            self.send(to, message.clone());
        }
        self.send(0, message);
    }

    /// The next message, and the rank that has sent it. They come in the order of their senders,
    /// and from each in the order in which they were sent.
    #[expect(clippy::should_implement_trait, reason = "a communicator is no sequence of messages")]
    pub fn next(&mut self) -> Option<(u32, P::Message)> {
        let Letter { from, content: (_, message), .. } = self.letters.pop_front()?;
        Some((from, message))
    }

    /// The next message of this rank with tag 0.
    pub fn receive(&mut self, from: u32) -> Option<P::Message> {
        self.receive_tagged(from, 0)
    }

    /// The next message of this rank with this tag.
    pub fn receive_tagged(&mut self, from: u32, tag: u32) -> Option<P::Message> {
        // They are in the order of their senders.
        let first = self.letters.partition_point(|letter| letter.from < from);
        let those = self.letters.range(first..).take_while(|letter| letter.from == from);
        let at = those.take_while(|letter| letter.content.0 != tag).count() + first;
        let is_there = self.letters.get(at).is_some_and(|letter| letter.from == from);
        let letter = is_there.then(|| self.letters.remove(at)).flatten()?;
        Some(letter.content.1)
    }

    /// Takes part in a collective operation: the values of all ranks that do so are combined. In
    /// the next superstep each of them has the [result](Self::result). All ranks that take part
    /// give the same function, which must be associative; there are [some for
    /// arithmetic](super::op). Of several operations in one superstep, the first of each rank
    /// belong together, then the second, and so on.
    ///
    /// The values are combined in an order that follows from the number of ranks alone, so that
    /// sums of floating-point numbers are the same whatever PEs there are. They travel with what
    /// the PEs tell each other after each superstep anyway. While a PE combines values it handles
    /// no messages: the function should be quick.
    pub fn all_reduce<T, F>(&mut self, value: &T, combine: F)
    where
        T: Portable,
        F: Fn(T, T) -> T + Stateless,
    {
        const { F::CHECKED };
        self.offered.push((Operation::of::<T, F>(false, combine), Value::of(value)));
    }

    /// Takes part in an [`all_reduce`](Self::all_reduce) of which only one rank has the
    /// [result](Self::result); that of the others is `None`.
    ///
    /// # Panics
    ///
    /// There is no such rank.
    #[track_caller]
    pub fn reduce<T, F>(&mut self, to: u32, value: &T, combine: F)
    where
        T: Portable,
        F: Fn(T, T) -> T + Stateless,
    {
        const { F::CHECKED };
        assert!(to < self.start.ranks, "a result for rank {to} of {}", self.start.ranks);
        let operation = Operation::of::<T, F>(false, combine);
        self.offered.push((operation.only_to(to), Value::of(value)));
    }

    /// The values of all ranks that take part, by their numbers: the [result](Self::result) is a
    /// `Vec<T>`. All PEs get all values, so they should be small. What is large is
    /// [sent](Self::send) to the rank that needs it, which takes it in the same order.
    pub fn all_gather<T: Portable>(&mut self, value: &T) {
        self.offered
            .push((Operation::of(false, join::<T>), Value::encoding::<Vec<T>>(&&[value][..])));
    }

    /// Takes part in an [`all_gather`](Self::all_gather) of which only one rank has the
    /// [result](Self::result); that of the others is `None`.
    ///
    /// # Panics
    ///
    /// There is no such rank.
    #[track_caller]
    pub fn gather<T: Portable>(&mut self, to: u32, value: &T) {
        assert!(to < self.start.ranks, "values for rank {to} of {}", self.start.ranks);
        let operation = Operation::of(false, join::<T>).only_to(to);
        self.offered.push((operation, Value::encoding::<Vec<T>>(&&[value][..])));
    }

    /// Sends the first message to rank 0, the second to rank 1, and so on. Each rank
    /// [receives](Self::receive) its own from this one.
    ///
    /// # Panics
    ///
    /// There are more messages than ranks.
    #[track_caller]
    pub fn scatter(&mut self, messages: impl IntoIterator<Item = P::Message>) {
        (0..).zip(messages).for_each(|(to, message)| self.send(to, message));
    }

    /// Takes part in an exclusive scan: the [result](Self::result) of each rank is what the values
    /// of the ranks before it come to, combined as by [`all_reduce`](Self::all_reduce). The first
    /// rank has none. (PEs tell each other the values of each PE, and not only what they amount to:
    /// with thousands of PEs that takes a while.)
    pub fn scan<T, F>(&mut self, value: &T, combine: F)
    where
        T: Portable,
        F: Fn(T, T) -> T + Stateless,
    {
        const { F::CHECKED };
        self.offered.push((Operation::of::<T, F>(true, combine), Value::of(value)));
    }

    /// Sends a value from one rank to all, with what the PEs tell each other after the superstep:
    /// each PE gets it once in each of ⌈log₂ n⌉ rounds. All ranks take part; one has the value.
    /// The [result](Self::result) is an `Option<T>`.
    pub fn broadcast<T: Portable>(&mut self, value: Option<&T>) {
        let first = |one: Option<T>, other: Option<T>| one.or(other);
        self.offered.push((Operation::of(false, first), Value::encoding::<Option<T>>(&value)));
    }

    /// The result of a collective operation of the superstep before: of the first in which this
    /// rank took part, then of the second, and so on. `None`: it took part in no more, another rank
    /// has the result ([`reduce`](Self::reduce), [`gather`](Self::gather)), or it is the first of a
    /// [scan](Self::scan).
    ///
    /// # Panics
    ///
    /// The result is of another type, or the function has panicked.
    #[track_caller]
    pub fn result<T: Portable>(&mut self) -> Option<T> {
        self.results.pop_front()?.map(|value| value.get())
    }
}

fn join<T>(mut one: Vec<T>, mut other: Vec<T>) -> Vec<T> {
    one.append(&mut other);
    one
}
