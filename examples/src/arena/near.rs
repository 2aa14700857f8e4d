//! Whom a worker of an arena robs first: those of its own PE, then those of the nearest others.
//!
//! Workers are numbered as they join, and that is as it happens. So each writes into a cell of the
//! set on which PE it is, and reads from there where the others are.

use std::mem::size_of;
use ultramarine::Topology;
use ultramarine::prelude::*;
use ultramarine::taskset::{Result, TaskSet, Worker};

/// The cell of a set that names the PE of each worker, in four bytes each, by the workers' numbers.
const PES: u64 = 1;
const PE_BYTES: usize = size_of::<u32>();

/// Says for the others on which PE this worker is.
///
/// # Errors
///
/// The arena is full, or damaged.
pub(super) fn say_where(worker: &Worker<'_>, set: &TaskSet<'_>, pe: Pe) -> Result<()> {
    let at = worker.number() * PE_BYTES;
    set.cell(PES)?.update(|pes| {
        let mut pes = pes.to_vec();
        pes.resize(pes.len().max(at + PE_BYTES), u8::MAX);
        pes[at..][..PE_BYTES].copy_from_slice(&pe.number().to_le_bytes());
        pes
    })
}

/// Has the worker rob the nearest others first, as far as they have said where they are.
///
/// # Errors
///
/// The arena is full, or damaged.
pub(super) fn rob_nearest(worker: &Worker<'_>, set: &TaskSet<'_>, cx: &Context) -> Result<()> {
    let pes = set.cell(PES)?.read()?;
    worker.set_victims(&nearest_first(&pes, worker.number(), cx.pe(), cx.topology()));
    Ok(())
}

/// The workers whose PEs stand there, in four bytes each, the nearest first. Of those that are
/// equally near, each begins with another: those behind itself.
pub fn nearest_first(pes: &[u8], me: usize, pe: Pe, topology: &Topology) -> Vec<usize> {
    let (pes, _) = pes.as_chunks::<PE_BYTES>();
    let pes = pes.iter().map(|pe| Pe::new(u32::from_le_bytes(*pe)));
    // Others have left their numbers there, too, maybe in a larger job.
    let here = pes.enumerate().filter(|(_, pe)| pe.number() < topology.pes());
    let mut near: Vec<(usize, Pe)> = here.filter(|(worker, _)| *worker != me).collect();
    near.sort_by_key(|(worker, other)| (topology.distance(pe, *other), *worker < me, *worker));
    near.into_iter().map(|(worker, _)| worker).collect()
}
