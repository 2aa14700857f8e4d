//! What stands out in a job, in plain words.

use super::figures::{Summary, Task};
use super::page::{duration, percent};
use ultramarine_trace::{MOVED_BYTES, RAYON};

/// The share of the workers' time that is worth a word.
const WORTH_A_WORD: f64 = 0.05;

/// To bring a task to another PE and its result back takes a tenth of this or more.
const SMALL_NS: u64 = 100_000;

/// A host on which the same function takes this many times as long as on the fastest may be slow.
const SLOW: f64 = 1.3;

/// Each PE moves this many bytes in each second that its workers wait, or more: then they may wait
/// for data.
const MUCH_DATA: f64 = 50e6;

/// With fewer tasks for each worker, the last ones decide.
const TASKS_PER_WORKER: u64 = 8;

/// Sentences, the most important first: three at most.
pub(super) fn advice(job: &Summary<'_>) -> Vec<String> {
    let between = waits_for_data(job).or_else(|| too_small(job)).or_else(|| waits_between(job));
    let all = [waits_at_the_end(job), slow_host(job), too_few(job), between, starts_late(job)];
    let mut said: Vec<String> = all.into_iter().flatten().take(3).collect();
    if said.is_empty() {
        said.push(if job.functions.is_empty() {
            "No task has run, so there is nothing to say.".to_owned()
        } else {
            let computing = percent(job.times.share(job.times.computing));
            format!("The workers computed for {computing} of the time. Nothing stands out.")
        });
    }
    said
}

fn waits_at_the_end(job: &Summary<'_>) -> Option<String> {
    let times = &job.times;
    if times.share(times.end) < WORTH_A_WORD {
        return None;
    }
    let share = percent(times.end as f64 / times.waiting().max(1) as f64);
    // While it runs, others have nothing left to do.
    let is_last = |task: &&&Task| {
        let ended_after = task.end_ns.saturating_sub(job.begin_ns) as f64;
        ended_after >= 0.95 * job.took_ns as f64 && task.took_ns as f64 >= 0.1 * job.took_ns as f64
    };
    Some(match job.last.iter().find(is_last) {
        Some(Task { function, took_ns, .. }) => format!(
            "{share} of the waiting is at the end. A run of `{}` takes {} there: let others share \
             its work, or begin it earlier.",
            short(function),
            duration(*took_ns)
        ),
        None => format!(
            "{share} of the waiting is at the end, where no one run takes long: look at the last \
             steps of the program."
        ),
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
            "A run of `{}` takes {factor:.1} times as long on {} as on {}. If it has no more to do \
             there, the processors of that host are slow, or something else uses them.",
            short(name),
            slowest.0,
            fastest.0
        )
    })
}

fn too_few(job: &Summary<'_>) -> Option<String> {
    let tasks = job.counters.get("tasks started").copied()?;
    let workers = job.workers as u64;
    let waits = job.times.share(job.times.between + job.times.end) >= WORTH_A_WORD;
    (workers > 1 && waits && tasks < TASKS_PER_WORKER * workers).then(|| {
        format!(
            "There are {tasks} tasks for {workers} workers. With ten for each worker or more, a \
             long one would keep the others waiting for less. (A skeleton that divides makes as \
             many as thieves ask for.)"
        )
    })
}

fn too_small(job: &Summary<'_>) -> Option<String> {
    let (name, function) = job.functions.iter().find(|(name, _)| *name != RAYON)?;
    // A task that awaits has several runs.
    let tasks = job.counters.get("tasks started").copied()?.min(function.runs);
    let mean = function.busy_ns / tasks.max(1);
    let waits = job.times.share(job.times.between) >= WORTH_A_WORD;
    (waits && mean < SMALL_NS && tasks > 1000 && job.pes.len() > 1).then(|| {
        format!(
            "{tasks} runs of `{}` take {} on average. That is little beside what a task costs that \
             goes to another PE: let each do more.",
            short(name),
            duration(mean)
        )
    })
}

fn waits_for_data(job: &Summary<'_>) -> Option<String> {
    let bytes = *job.counters.get(MOVED_BYTES)? as f64;
    let share = job.times.share(job.times.between);
    let waited_s = job.times.between as f64 / 1e9;
    (share >= WORTH_A_WORD && bytes >= MUCH_DATA * waited_s).then(|| {
        format!(
            "For {} of the time the workers wait between two tasks, and meanwhile {:.0} MB move \
             between PEs. Let less of it move: `map_with` for what all tasks need, `Remote` for \
             results that stay where they are, larger tasks where each sends its border.",
            percent(share),
            bytes / 1e6
        )
    })
}

fn waits_between(job: &Summary<'_>) -> Option<String> {
    let share = job.times.share(job.times.between);
    (share >= WORTH_A_WORD).then(|| {
        format!(
            "For {} of the time the workers wait between two tasks, for work, for values, or for \
             the main task, or the runtime works. See below which PEs do, and when: they may need \
             more tasks that wait at the same time.",
            percent(share)
        )
    })
}

fn starts_late(job: &Summary<'_>) -> Option<String> {
    let share = job.times.share(job.times.start);
    (share >= WORTH_A_WORD).then(|| {
        format!(
            "{} of the workers' time passes before their first work: spawn earlier, or from more \
             than one task.",
            percent(share)
        )
    })
}

/// The name of a function without the modules that it and its parameters are in.
fn short(name: &str) -> String {
    let mut short = String::new();
    for piece in name.split_inclusive("::") {
        match piece.strip_suffix("::") {
            Some(before) if before.ends_with('>') => short.push_str(piece),
            Some(before) => {
                let is_of_word = |c: char| c.is_alphanumeric() || "_{}#".contains(c);
                short.push_str(before.trim_end_matches(is_of_word));
            }
            None => short.push_str(piece),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_short_name_has_no_modules() {
        for (name, expected) in [
            ("the main task", "the main task"),
            ("a::b::sum_totient", "sum_totient"),
            (
                "<m::Apply<a::{{closure}}, alloc::vec::Vec<f64>> as m::Operation<w::Walk>>::go",
                "<Apply<{{closure}}, Vec<f64>> as Operation<Walk>>::go",
            ),
        ] {
            assert_eq!(short(name), expected);
        }
    }
}
