//! Bulk-synchronous programs in whole jobs.

use crate::common::{job, job_with_workers, on_all_hierarchies};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use ultramarine::Place;
use ultramarine::skeletons::bsp::{
    Comm, Next, Program, Progress, Start, bsp, files_in, op, own_range,
};

/// Each rank sends something to all in each of some supersteps, and adds floating-point numbers up
/// in each way there is.
#[derive(Serialize, Deserialize)]
struct Mixer {
    left: u32,
    number: f64,
}

impl Program for Mixer {
    type Argument = u32;
    type Stage = ();
    type Message = Vec<f64>;
    type Output = f64;

    fn new(start: &Start, &left: &u32) -> Self {
        Mixer { left, number: 1.0 / f64::from(start.rank + 3) }
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        let mut last = 0;
        while let Some((from, numbers)) = comm.next() {
            assert!(from >= last, "by their senders");
            last = from;
            self.number += numbers.iter().sum::<f64>() / f64::from(comm.ranks());
        }
        if comm.superstep() > 0 {
            assert_eq!(last, comm.ranks() - 1);
            let [all, least] = [(); 2].map(|()| comm.result::<f64>().unwrap());
            let before = comm.result::<f64>().unwrap_or(0.0);
            let told = comm.result::<Option<f64>>().unwrap();
            self.number = (self.number + all / 3.0 + before).sin() + least + told.unwrap();
        }
        if self.left == 0 {
            return Next::End(self.number);
        }
        self.left -= 1;
        comm.send_all(vec![self.number; 1 + comm.rank() as usize % 3]);
        comm.all_reduce(&self.number, op::sum::<f64>);
        comm.all_reduce(&self.number, f64::min);
        comm.scan(&self.number, op::sum::<f64>);
        comm.broadcast((comm.rank() == comm.ranks() / 2).then_some(&self.number));
        Next::Stage(())
    }
}

#[test]
fn the_outputs_are_the_same_bits_on_any_number_of_pes() {
    on_all_hierarchies(async |cx| {
        for ranks in [1, 3, 8, 13] {
            let here = bsp::<Mixer>(7).ranks(ranks).run(&cx).await?;
            // The same on one PE.
            let alone = alone(ranks);
            let bits = |numbers: &[f64]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&here), bits(&alone), "{ranks} ranks");
        }
        Ok(())
    });
}

/// What [`Mixer`] comes to on one PE.
fn alone(ranks: u32) -> Vec<f64> {
    let (send, receive) = std::sync::mpsc::channel();
    let run = move || {
        job_with_workers(3, vec![Place::default()], async move |cx| {
            let found = bsp::<Mixer>(7).ranks(ranks).run(&cx).await?;
            send.send(found)?;
            Ok(())
        });
    };
    std::thread::spawn(run).join().unwrap();
    receive.recv().unwrap()
}

/// A search from rank 0 through a ring with chords, by which each rank learns its distance.
#[derive(Serialize, Deserialize)]
struct Distances(Option<u32>);

impl Program for Distances {
    type Argument = ();
    type Stage = ();
    type Message = u32;
    type Output = Option<u32>;

    fn new(_: &Start, (): &()) -> Self {
        Distances(None)
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        if comm.all_slept() {
            return Next::End(self.0);
        }
        let is_first = comm.superstep() == 0 && comm.rank() == 0;
        let found = std::iter::from_fn(|| comm.next()).map(|(_, distance)| distance).min();
        if let (None, Some(distance)) = (self.0, found.or(is_first.then_some(0))) {
            self.0 = Some(distance);
            let (rank, ranks) = (comm.rank(), comm.ranks());
            // The last rank is reached by no edge.
            for to in [(rank + 1) % ranks, (rank + 5) % ranks] {
                if to != ranks - 1 {
                    comm.send(to, distance + 1);
                }
            }
        }
        Next::Sleep(())
    }
}

#[test]
fn who_sleeps_is_woken_by_a_message_or_when_all_sleep() {
    on_all_hierarchies(async |cx| {
        let found = bsp::<Distances>(()).ranks(12).run(&cx).await?;
        let expected = [0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 2].map(Some);
        assert_eq!(found, [&expected[..], &[None]].concat());
        Ok(())
    });
}

/// Uses what the others here do not: a rank's file and items, reductions to one rank, what all have
/// gathered, and messages that are combined.
#[derive(Serialize, Deserialize)]
struct Collector {
    items: Vec<u32>,
    text: String,
}

impl Program for Collector {
    type Argument = Vec<PathBuf>;
    type Stage = ();
    type Message = u32;
    type Output = (Option<u32>, Vec<String>, Option<Vec<u32>>, Vec<(u32, u32)>);

    fn new(start: &Start, files: &Vec<PathBuf>) -> Self {
        let items = own_range(100, start.rank, start.ranks).map(|item| item as u32).collect();
        let file = files.get(start.rank as usize);
        let text = file.map_or_else(String::new, |file| std::fs::read_to_string(file).unwrap());
        Collector { items, text }
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        if comm.superstep() == 0 {
            comm.reduce(1, &self.items.iter().sum(), op::sum::<u32>);
            comm.all_gather(&self.text);
            comm.gather(2, &(comm.rank() * 2));
            for item in &self.items {
                // Three ranks get a sum of each.
                comm.send_combined(item % 3, *item, |sum, item| *sum += item);
            }
            if comm.rank() == 3 {
                comm.scatter([7]);
            }
            return Next::Stage(());
        }
        let (sum, texts) = (comm.result(), comm.result().unwrap());
        let messages = std::iter::from_fn(|| comm.next()).collect();
        Next::End((sum, texts, comm.result(), messages))
    }
}

#[test]
fn ranks_have_files_and_ranges_and_gather_what_they_find() {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let error = files_in(&path, 3).unwrap_err().to_string();
    assert!(error.contains("has no files"), "{error}");
    for name in ["b", "a"] {
        std::fs::write(path.join(name), name).unwrap();
    }
    let error = files_in(&path, 1).unwrap_err().to_string();
    assert!(error.contains("has 2 files, and there are 1 ranks"), "{error}");
    assert!(files_in(path.join("none"), 3).unwrap_err().to_string().contains("cannot be read"));
    let files = files_in(&path, 4).unwrap();
    FILES.set(files).unwrap();
    on_all_hierarchies(async |cx| {
        let files = FILES.get().unwrap().clone();
        let found = bsp::<Collector>(files).ranks(4).run(&cx).await?;
        for (rank, (sum, texts, doubled, messages)) in (0..).zip(found) {
            assert_eq!(sum, (rank == 1).then_some(99 * 50), "only rank 1 has the sum");
            assert_eq!(texts, ["a", "b", "", ""]);
            assert_eq!(doubled, (rank == 2).then_some(vec![0, 2, 4, 6]));
            let sum = |from: u32| (from * 25..from * 25 + 25).filter(|item| item % 3 == rank).sum();
            let mut expected = (0..4).map(|from| (from, sum(from))).collect::<Vec<(u32, u32)>>();
            expected.extend((rank == 0).then_some((3, 7)));
            assert_eq!(messages, if rank < 3 { expected } else { Vec::new() });
        }
        Ok(())
    });
}

/// Takes its time.
#[derive(Serialize, Deserialize)]
struct Slow;

impl Program for Slow {
    type Argument = ();
    type Stage = ();
    type Message = ();
    type Output = ();

    fn new(_: &Start, (): &()) -> Self {
        Slow
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        std::thread::sleep(Duration::from_millis(2));
        comm.note(comm.superstep());
        if comm.superstep() == 50 { Next::End(()) } else { Next::Stage(()) }
    }
}

#[test]
fn progress_is_told_while_it_runs() {
    job(vec![Place::default(); 2], async |cx| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = told.clone();
        let note = move |progress: &Progress| tell.lock().unwrap().push(progress.clone());
        bsp::<Slow>(()).ranks(4).progress(Duration::from_millis(5), note).run(&cx).await?;
        let told = told.lock().unwrap();
        assert!(told.len() > 2, "{told:?}");
        assert!(told.windows(2).all(|pair| pair[0].superstep < pair[1].superstep), "{told:?}");
        let last = told.last().unwrap();
        assert!(last.per_superstep > Duration::from_millis(1), "{last:?}");
        let said: u64 = last.note.as_ref().unwrap().parse().unwrap();
        assert!(said.abs_diff(last.superstep) <= 1, "{last:?}");
        Ok(())
    });
}

/// What a rank of [`Wrong`] does.
#[derive(Clone, Serialize, Deserialize, Default, Debug)]
enum Fault {
    #[default]
    Panic,
    NoSuchRank,
    ToEnded,
    Mixed,
    Stall,
    PanicInOperation,
    OtherType,
}

/// Rank 1 does something wrong.
#[derive(Serialize, Deserialize)]
struct Wrong(Fault);

impl Program for Wrong {
    type Argument = Fault;
    type Stage = Fault;
    type Message = String;
    type Output = ();

    fn new(_: &Start, fault: &Fault) -> Self {
        Wrong(fault.clone())
    }

    fn step(&mut self, _: Fault, comm: &mut Comm<Self>) -> Next<Self> {
        let is_second = comm.rank() == 1;
        match (&self.0, comm.superstep()) {
            (Fault::Panic, 1) => assert!(!is_second, "as it was told"),
            (Fault::NoSuchRank, 1) if is_second => comm.send(3, "nobody".into()),
            (Fault::ToEnded, 0) if !is_second => return Next::End(()),
            (Fault::ToEnded, 1) => comm.send(2, "late".into()),
            (Fault::Mixed, 0) if is_second => comm.all_reduce(&1, op::sum::<u64>),
            (Fault::Mixed, 0) => comm.all_reduce(&1, op::max::<u64>),
            (Fault::Stall, _) => return Next::Sleep(Fault::Stall),
            (Fault::PanicInOperation, 0) => {
                comm.all_reduce(&1, |_: u64, _: u64| -> u64 { panic!("too much") });
            }
            (Fault::OtherType, 0) => comm.all_reduce(&-3, op::sum::<i64>),
            (Fault::PanicInOperation | Fault::OtherType, _) => drop(comm.result::<u64>()),
            _ => {}
        }
        if comm.superstep() == 2 { Next::End(()) } else { Next::Stage(Fault::Stall) }
    }
}

#[test]
fn what_no_program_may_do_is_an_error_that_names_it() {
    for (fault, said) in [
        (Fault::Panic, "rank 1 panicked in superstep 1, stage Stall: as it was told"),
        (
            Fault::NoSuchRank,
            "superstep 1, stage Stall: a message to rank 3, but the ranks are 0 to 2",
        ),
        (Fault::ToEnded, "rank 1 has sent a message to rank 2, which had ended by superstep 2"),
        (Fault::Stall, "in superstep 1 all ranks slept, and went to sleep again"),
        (Fault::PanicInOperation, "the result of a collective operation, as a u64: too much"),
        (Fault::OtherType, "the result of a collective operation, as a u64: it is of another type"),
    ] {
        job(vec![Place::default(); 3], async move |cx| {
            let error = bsp::<Wrong>(fault.clone()).ranks(3).run(&cx).await.unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            // The next run is not disturbed.
            assert_eq!(bsp::<Distances>(()).run(&cx).await?.len(), 3);
            Ok(())
        });
    }
    for (pes, said) in [(1, "ranks 0 and 1 take part"), (3, "ranks of different PEs take part")] {
        job(vec![Place::default(); pes], async move |cx| {
            let error = bsp::<Wrong>(Fault::Mixed).ranks(3).run(&cx).await.unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            Ok(())
        });
    }
}
