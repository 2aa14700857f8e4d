//! What a task in shared memory costs, beside rayon in the same run.
//!
//! `cargo run --release -p ultramarine-taskset --example overhead [TASKS] [ROUNDS]`

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use ultramarine_taskset::{Arena, Options, Worker};

const CODE: [u8; 16] = [1; 16];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    if let [role, path, tasks] = &arguments[..] {
        return child(role, Path::new(path), tasks.parse()?);
    }
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (tasks, rounds) = (number(0, 1_000_000)?, number(1, 5)?);
    let folder = tempfile::tempdir_in("/dev/shm")?;
    for round in 0..rounds {
        let path = folder.path().join(format!("arena-{round}"));
        println!("round {round}: {tasks} tasks");
        alone(&path, tasks)?;
        rayon(tasks)?;
        stolen(&path, tasks)?;
        taken_over(&path, tasks)?;
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

fn open(path: &Path) -> ultramarine_taskset::Result<Arena> {
    Arena::open(path, &Options::new(1, 1).size_bytes(8 << 30).workers(8))
}

fn add(worker: &Worker<'_>, set: &str, tasks: u64) -> Result<Duration, Box<dyn Error>> {
    let set = worker.set(set)?;
    let begun = Instant::now();
    for number in 0..tasks {
        set.add(number, CODE, &[])?;
    }
    Ok(begun.elapsed())
}

fn print(what: &str, time: Duration, tasks: u64) {
    println!("  {what:<44} {:>8.1} ns a task", time.as_nanos() as f64 / tasks as f64);
}

/// One worker adds tasks, and runs them.
fn alone(path: &Path, tasks: u64) -> Result<(), Box<dyn Error>> {
    let arena = open(path)?;
    let worker = arena.join()?;
    print("add", add(&worker, "alone", tasks)?, tasks);
    let set = worker.set("alone")?;
    let (mut count, mut ran) = (0, Duration::ZERO);
    let begun = Instant::now();
    set.run(|call| {
        count += 1;
        if count == tasks {
            ran = begun.elapsed();
        }
        call.number().to_le_bytes()
    })?;
    print("claim + run + finish", ran, tasks);
    print("and the sweep at the end", begun.elapsed().saturating_sub(ran), tasks);
    assert_eq!(count, tasks, "each task has run once");
    Ok(())
}

/// One thread of rayon spawns tasks, and runs them.
fn rayon(tasks: u64) -> Result<(), Box<dyn Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (spawned, all) = pool.install(|| {
        let begun = Instant::now();
        let mut spawned = Duration::ZERO;
        rayon::scope(|scope| {
            for number in 0..tasks {
                scope.spawn(move |_| _ = black_box(number));
            }
            spawned = begun.elapsed();
        });
        (spawned, begun.elapsed())
    });
    print("rayon: spawn", spawned, tasks);
    print("rayon: run", all.saturating_sub(spawned), tasks);
    Ok(())
}

/// Another process steals all tasks of a worker.
fn stolen(path: &Path, tasks: u64) -> Result<(), Box<dyn Error>> {
    let arena = open(path)?;
    let worker = arena.join()?;
    let tasks = tasks / 10;
    add(&worker, "stolen", tasks)?;
    let output = start("thief", path, tasks)?.wait_with_output()?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// Another process adds tasks, and is killed.
fn taken_over(path: &Path, tasks: u64) -> Result<(), Box<dyn Error>> {
    let arena = open(path)?;
    let worker = arena.join()?;
    let mut child = start("victim", path, tasks)?;
    let stdout = child.stdout.take().ok_or("the child has an output")?;
    io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut String::new())?;
    child.kill()?;
    child.wait()?;
    let set = worker.set("left")?;
    let (mut count, mut first) = (0, Duration::ZERO);
    let begun = Instant::now();
    set.run(|call| {
        if count == 0 {
            first = begun.elapsed();
        }
        count += 1;
        call.number().to_le_bytes()
    })?;
    println!("  {tasks} tasks of a dead worker: the first after {first:?}");
    assert_eq!(count, tasks, "each task has run once");
    Ok(())
}

fn start(role: &str, path: &Path, tasks: u64) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(role).arg(path).arg(tasks.to_string()).stdout(Stdio::piped());
    command.spawn()
}

fn child(role: &str, path: &Path, tasks: u64) -> Result<(), Box<dyn Error>> {
    let arena = open(path)?;
    let worker = arena.join()?;
    if role == "victim" {
        add(&worker, "left", tasks)?;
        println!("added");
        thread::park();
        return Ok(());
    }
    let mut times = Vec::with_capacity(tasks as usize);
    let mut last = Instant::now();
    worker.set("stolen")?.run(|call| {
        let now = Instant::now();
        times.push(now - last);
        last = now;
        call.number().to_le_bytes()
    })?;
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 100];
    println!("  steal + claim + run + finish: p50 {:?}, p99 {:?}", at(50), at(99));
    Ok(())
}
