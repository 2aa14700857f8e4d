//! Searches with journals: what is searched again, and whether a best node is lost with the record
//! of another.

use super::{ended, journal, keep_only, records, refused};
use crate::common::{NoSolution, here, job};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use ultramarine::prelude::*;
use ultramarine_testkit::{eventually, racks};

/// A word, as the numbers of its letters.
type Word = Vec<u64>;

/// The words of up to this length over some letters.
#[derive(Clone, Serialize, Deserialize)]
struct Words {
    letters: u64,
    length: usize,
}

impl Tree for Words {
    type Node = Word;

    fn children(&self, word: Word) -> impl Iterator<Item = Word> + Send {
        let letters = if word.len() < self.length { self.letters } else { 0 };
        (0..letters).map(move |letter| [&word[..], &[letter]].concat())
    }
}

const WORDS: Words = Words { letters: 3, length: 9 };

/// The number of all words, the empty one included.
const COUNT: u64 = (3_u64.pow(10) - 1) / 2;

/// The number of visits of each test. The PEs are threads of this process.
static VISITS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The number of visits since the last question.
fn visits(test: usize) -> u64 {
    VISITS[test].swap(0, SeqCst)
}

/// How many words there are, and the sum of all their letters.
type Count = (u64, u64);

fn count<const TEST: usize>(_: &Words, word: &Word, found: &mut Count) {
    VISITS[TEST].fetch_add(1, SeqCst);
    *found = (found.0 + 1, found.1 + word.iter().sum::<u64>());
}

fn add(found: &mut Count, other: Count) {
    *found = (found.0 + other.0, found.1 + other.1);
}

#[test]
fn subtrees_in_the_journal_are_not_searched_again() {
    job(racks(&[2, 1], 1), async |cx| {
        let (_folder, path) = journal();
        let splitting = Splitting::Budget(100);
        let words = |splitting| enumerate(splitting, count::<0>, add, WORDS, vec![]);
        let expected = words(splitting).run(&cx).await?;
        assert_eq!((expected.0, visits(0)), (COUNT, COUNT));

        // 27 words of three letters, and 13 shorter ones, which the caller visits at each start.
        let again = |splitting| words(splitting).journal(&path).records(27);
        assert_eq!(again(splitting).run(&cx).await?, expected);
        assert_eq!((records::<Count>(&path).len(), visits(0)), (27, COUNT));
        // How the rest is split makes no difference.
        for splitting in [Splitting::StealDriven, Splitting::Depth(5), splitting] {
            let before = ended(&cx).await?;
            assert_eq!(again(splitting).required().run(&cx.supervised()).await?, expected);
            assert_eq!((visits(0), ended(&cx).await? - before), (13, 27));
        }
        // The end of a crash: the last record is torn.
        let bytes = std::fs::read(&path)?;
        std::fs::write(&path, &bytes[..bytes.len() - 1])?;
        assert_eq!(again(splitting).run(&cx).await?, expected);
        assert_eq!(visits(0), 13 + (3_u64.pow(7) - 1) / 2);
        Ok(())
    });
}

#[test]
fn records_are_in_the_order_of_a_depth_first_search() {
    job(racks(&[2], 1), async |cx| {
        let (_folder, path) = journal();
        let list = |_: &Words, word: &Word, found: &mut Vec<Word>| found.push(word.clone());
        let append = |found: &mut Vec<Word>, mut other: Vec<_>| found.append(&mut other);
        let words = Words { letters: 3, length: 4 };
        // One of the words of a letter is divided further, and two are not.
        let words = enumerate(Splitting::Depth(0), list, append, words, vec![]);
        let all = words.journal(&path).records(5).run(&cx).await?;
        let mut records = records::<Vec<Word>>(&path);
        records.sort_unstable();
        let below: Vec<_> = records.iter().flat_map(|(_, words)| words).collect();
        assert!(records.len() == 5 && below.len() == 119 && below.is_sorted(), "{below:?}");
        let top = [vec![], vec![0]];
        assert!(all.iter().eq(top.iter().chain(below)), "{all:?}");
        Ok(())
    });
}

#[test]
fn a_small_tree_and_a_narrow_one_have_fewer_records() {
    job(racks(&[1, 1], 1), async |cx| {
        for (letters, length, nodes, in_journal) in [(3, 2, 13, 0), (1, 9_000, 9_001, 1)] {
            let (_folder, path) = journal();
            for _ in 0..2 {
                let (tree, splitting) = (Words { letters, length }, Splitting::StealDriven);
                let words = enumerate(splitting, count::<1>, add, tree, vec![]);
                assert_eq!(words.journal(&path).run(&cx).await?.0, nodes);
                assert_eq!(records::<Count>(&path).len(), in_journal);
            }
            // The caller visits the small tree at each start, and 4000 nodes of the path.
            assert_eq!(visits(1), if letters > 1 { 2 * nodes } else { nodes + 4_000 });
        }
        Ok(())
    });
}

#[test]
fn the_journal_of_another_search_is_refused() {
    job(racks(&[1], 1), async |cx| {
        let (_folder, path) = journal();
        let (begun, by_depth) = (vec![1], Splitting::Depth(1));
        let search = |tree: Words, root: Word, records| {
            let words = enumerate(by_depth, count::<2>, add, tree, root);
            words.journal(&path).records(records).run(&cx)
        };
        let found = search(WORDS, begun.clone(), 9).await?;
        let before = std::fs::read(&path)?;
        let longer = Words { length: 10, ..WORDS };
        let none = |_: &Words, _: &Word, _: &mut Count| {};
        for (ended, told) in [
            (search(longer, begun.clone(), 9).await, "its input differs"),
            (search(WORDS, vec![2], 9).await, "its input differs"),
            (search(WORDS, begun.clone(), 27).await, "it is for 9 items, and not 27"),
            (
                enumerate(by_depth, none, add, WORDS, begun.clone()).journal(&path).run(&cx).await,
                "its function is",
            ),
        ] {
            refused(ended, told);
        }
        let best = maximise(by_depth, NoSolution(WORDS), begun.clone());
        refused(best.journal(&path).run(&cx).await, "its result is");
        assert_eq!(std::fs::read(&path)?, before);
        assert_eq!(search(WORDS, begun, 9).await?, found);
        Ok(())
    });
}

/// Words with values: a word of full length is worth its letters, read as a number that is then
/// scrambled. The bound is loose, so that much is visited.
#[derive(Clone, Serialize, Deserialize)]
struct Letters(Words);

/// The value of the best word, and the bound of all words that have not the full length.
const BEST: u64 = 1 << 20;

/// The first letters of the best word. Its subtree is the first. The home PE begins with it.
const BEST_BEGINS: [u64; 3] = [0, 0, 0];

/// Whether the home PE has gone on to another subtree.
static IS_BEST_FOUND: AtomicBool = AtomicBool::new(false);

/// The number of visits of words below each of the first three letters.
static BELOW: [AtomicU64; 27] = [const { AtomicU64::new(0) }; 27];

/// The number of the subtree that a word is in.
fn subtree(word: &[u64]) -> Option<usize> {
    (word.len() >= 3)
        .then(|| word[..3].iter().fold(0, |number, letter| 3 * number + letter) as usize)
}

impl Tree for Letters {
    type Node = Word;

    fn children(&self, word: Word) -> impl Iterator<Item = Word> + Send {
        self.0.children(word)
    }
}

impl Bounded for Letters {
    fn value(&self, word: &Word) -> Option<u64> {
        let number = word.iter().fold(0, |number, letter| 3 * number + letter);
        let is_best = word.starts_with(&BEST_BEGINS) && number % 3_u64.pow(6) == 500;
        let scrambled = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 45;
        (word.len() == self.0.length).then_some(if is_best { BEST } else { scrambled })
    }

    fn bound(&self, word: &Word) -> u64 {
        if let Some(subtree) = subtree(word) {
            BELOW[subtree].fetch_add(1, SeqCst);
            if word.len() == 3 && word[..] != BEST_BEGINS && !IS_BEST_FOUND.load(SeqCst) {
                match here() {
                    0 => IS_BEST_FOUND.store(true, SeqCst),
                    _ => eventually("the best is found", || IS_BEST_FOUND.load(SeqCst)),
                }
            }
        }
        if word.len() == self.0.length { self.value(word).unwrap_or(0) } else { BEST }
    }
}

/// The subtrees in which words were visited since the last question.
fn searched() -> Vec<usize> {
    (0..27).filter(|subtree| BELOW[*subtree].swap(0, SeqCst) > 0).collect()
}

/// A value, the place of the subtree, and the word.
type BestWord = Option<(u64, Vec<u64>, Word)>;

#[test]
fn each_record_alone_vouches_for_its_subtree() {
    job(racks(&[1, 1], 1), async |cx| {
        let best_subtree = subtree(&BEST_BEGINS).expect("it has three letters");
        let (_folder, path) = journal();
        let search = async || {
            let words = maximise(Splitting::StealDriven, Letters(WORDS), vec![]);
            let best = words.journal(&path).records(27).required().run(&cx).await?;
            let (value, word) = best.expect("there are words");
            assert!(value == BEST && word.starts_with(&BEST_BEGINS), "{value}: {word:?}");
            Ok::<_, JournalError>(())
        };
        search().await?;
        assert!(searched().contains(&best_subtree));
        search().await?;
        assert!(searched().is_empty(), "all is in the journal");

        // A subtree that another PE searched when the best was known has a record with the best,
        // though that PE found none as good.
        let records = records::<BestWord>(&path);
        let is_best = |(_, best): &&(u64, BestWord)| best.as_ref().is_some_and(|it| it.0 == BEST);
        let later: Vec<_> = records.iter().skip_while(|record| !is_best(record)).collect();
        assert!(
            later.len() > 1 && later.iter().copied().all(|record| is_best(&record)),
            "{records:?}"
        );
        let pruned = later.last().expect("there are some").0;

        // With this record alone the best is known from the start. So no search finds it, as none
        // does that runs again after a death. The records are as good nevertheless.
        keep_only::<BestWord>(&path, |subtree| subtree == pruned);
        search().await?;
        assert_eq!(searched().len(), 26);
        let whole = std::fs::read(&path)?;
        for alone in 0..27 {
            std::fs::write(&path, &whole)?;
            keep_only::<BestWord>(&path, |subtree| subtree == alone);
            search().await?;
            let searched = searched();
            assert!(!searched.contains(&(alone as usize)), "{alone}: {searched:?}");
        }
        Ok(())
    });
}

#[test]
fn a_search_without_solutions_has_none_when_it_starts_again() {
    job(racks(&[1, 1], 1), async |cx| {
        let (_folder, path) = journal();
        for lost in [false, true] {
            let words = NoSolution(Words { length: 8, letters: 2 });
            let none = maximise(Splitting::Depth(2), words, vec![]);
            assert_eq!(none.journal(&path).records(8).run(&cx).await?, None);
            let mut records = records::<BestWord>(&path);
            records.sort_unstable();
            assert_eq!(records, (0..8).map(|n| (n, None)).collect::<Vec<_>>());
            keep_only::<BestWord>(&path, |subtree| lost || subtree % 2 == 0);
        }
        Ok(())
    });
}
