//! What stands out in a job, in plain words.

use super::figures::Summary;
use super::page::{duration, percent};

/// The share of the workers' time that is worth a word.
const WORTH_A_WORD: f64 = 0.05;

/// A task that is shorter costs more than a tenth of itself to spawn, run and end.
const TINY_NS: u64 = 2_000;

/// A host on which the same function takes this many times as long as on the fastest is slow.
const SLOW: f64 = 1.3;

/// With fewer tasks for each worker, the last ones decide.
const TASKS_PER_WORKER: u64 = 8;

/// Sentences, the most important first: three at most.
pub(super) fn advice(job: &Summary<'_>) -> Vec<String> {
    let mut said: Vec<String> =
        [waits_at_the_end(job), slow_host(job), too_few(job), too_small(job), starts_late(job)]
            .into_iter()
            .flatten()
            .take(3)
            .collect();
    if said.is_empty() {
        said.push(if job.functions.is_empty() {
            "No task has run, so there is nothing to say.".to_owned()
        } else {
            let computing = percent(job.times.share(job.times.computing_ns));
            format!("The workers computed for {computing} of the time. Nothing stands out.")
        });
    }
    said
}

fn waits_at_the_end(job: &Summary<'_>) -> Option<String> {
    let times = &job.times;
    let waiting = times.all_ns() - times.computing_ns;
    if times.share(times.end_ns) < WORTH_A_WORD {
        return None;
    }
    let share = percent(times.end_ns as f64 / waiting.max(1) as f64);
    let longest = job.longest.first()?;
    let (name, took) = (&longest.function, duration(longest.took_ns));
    let is_long = longest.took_ns as f64 >= 0.1 * job.took_ns as f64;
    Some(if is_long {
        format!(
            "{share} of the waiting is at the end. The longest task, of `{name}`, takes {took}: \
             make such tasks smaller, or start them first."
        )
    } else {
        format!(
            "{share} of the waiting is at the end, after the last task of each worker. The \
             longest task takes {took} only, so it is not one task that the others wait for: look \
             at what the program does after its tasks, and at its last steps."
        )
    })
}

fn slow_host(job: &Summary<'_>) -> Option<String> {
    let by_time = |one: &&(&str, f64), other: &&(&str, f64)| one.1.total_cmp(&other.1);
    let slowest = job.by_host.iter().max_by(by_time)?;
    let fastest = job.by_host.iter().min_by(by_time)?;
    let (name, _) = job.functions.first()?;
    let factor = slowest.1 / fastest.1;
    (factor >= SLOW).then(|| {
        format!(
            "A run of `{name}` takes {factor:.1} times as long on {} as on {}: that host is slow, \
             or something else uses it.",
            slowest.0, fastest.0
        )
    })
}

fn too_few(job: &Summary<'_>) -> Option<String> {
    let tasks = job.counters.get("tasks started").copied()?;
    let workers = job.times.workers as u64;
    let waits = job.times.share(job.times.between_ns + job.times.end_ns) >= WORTH_A_WORD;
    (workers > 1 && waits && tasks < TASKS_PER_WORKER * workers).then(|| {
        format!(
            "There are {tasks} tasks for {workers} workers. With ten for each worker or more, a \
             long one would keep the others waiting for less."
        )
    })
}

fn too_small(job: &Summary<'_>) -> Option<String> {
    let (name, function) = job.functions.first()?;
    let mean = function.mean_ns();
    let waits = job.times.share(job.times.between_ns) >= WORTH_A_WORD;
    (waits && mean < TINY_NS && function.runs > 1000).then(|| {
        format!(
            "The {} runs of `{name}` take {} on average. That is little beside what a task costs: \
             let each do more.",
            function.runs,
            duration(mean)
        )
    })
}

fn starts_late(job: &Summary<'_>) -> Option<String> {
    let share = job.times.share(job.times.start_ns);
    (share >= WORTH_A_WORD).then(|| {
        format!(
            "{} of the workers' time passes before their first tasks: spawn earlier, or from more \
             than one task.",
            percent(share)
        )
    })
}
