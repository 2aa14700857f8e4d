//! Trees of tasks that spawn tasks. Each problem that is not small is a task that spawns one for
//! each of its parts, and awaits them; or a task solves it with all of its parts, but for those
//! that others take, as `par_divide_and_conquer` does. Fibonacci numbers and queens (`HdpH-RS`
//! §6.5).

use super::{Activity, Batch, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use ultramarine_runtime::executor::Backlog;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::Distance;

/// What is divided. A problem, and each part of it, is a number.
pub trait Problem: Copy + Send + Sync + 'static {
    /// The whole.
    fn whole(self) -> u64;
    /// The parts of a problem; none if it is solved as it is.
    fn parts(self, problem: u64) -> Vec<u64>;
    /// The steps that the solution of a problem takes, without its parts.
    fn steps(self, problem: u64) -> u64;
}

/// See the [module](self). The value of each task is the number of steps that it and the tasks
/// below it take.
#[derive(Clone, Copy, Debug)]
pub struct SpawnTree<P> {
    /// What is divided.
    pub problem: P,
    /// What a step costs, in nanoseconds.
    pub step_ns: f64,
    /// Whether its tasks are supervised.
    pub is_supervised: bool,
    /// Whether a part becomes a task only if another worker may take it.
    pub is_lazy: bool,
}

/// What a task that keeps its parts solves between two beats: the time on its clock.
const BEAT_NS: u64 = 16_000;

/// A task that keeps its parts, as the recursion of `par_divide_and_conquer`.
struct Division<P> {
    all: SpawnTree<P>,
    /// What it solves next, before the youngest part of the backlog.
    first: Option<u64>,
    backlog: Backlog<u64, ()>,
    /// The steps that it has taken.
    steps: u64,
    is_awaited: bool,
}

impl<P: Problem> Division<P> {
    fn new(all: SpawnTree<P>, problem: u64) -> Self {
        // Other PEs may always take parts.
        let backlog = Backlog::new(1, 2);
        Division { all, first: Some(problem), backlog, steps: 0, is_awaited: false }
    }
}

impl<P: Problem> Activity for Division<P> {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        let Division { all, backlog, .. } = self;
        let (mut steps, mut offered) = (0, Vec::new());
        while (steps as f64 * all.step_ns) < BEAT_NS as f64
            && let Some(problem) = self.first.take().or_else(|| backlog.pop())
        {
            steps += all.problem.steps(problem);
            let mut parts = all.problem.parts(problem).into_iter();
            self.first = parts.next();
            parts.for_each(|part| backlog.push(part));
            if backlog.offers_too_little() {
                backlog.offer(|_| Distance::ONE, |_, part| offered.push(part));
            }
        }
        if cx.is_work_wanted && offered.is_empty() {
            backlog.offer(|_| Distance::ONE, |_, part| offered.push(part));
        }
        for part in offered {
            let (body, mode) = all.task(part);
            cx.spawn(body, mode);
        }
        self.steps += steps;
        if steps > 0 {
            return Step::Compute((steps as f64 * self.all.step_ns) as u64);
        }
        if !std::mem::replace(&mut self.is_awaited, true) {
            return Step::Await;
        }
        Step::End(self.steps + cx.sum(), None)
    }
}

impl<P: Problem> SpawnTree<P> {
    fn task(&self, problem: u64) -> (Bytes, SpawnMode) {
        let place = SpawnPlace::Within(Distance::ONE);
        let body = problem.to_le_bytes().to_vec();
        (body.into(), SpawnMode { is_supervised: self.is_supervised, place })
    }

    /// The steps of a problem and all below it.
    fn steps(&self, problem: u64) -> u64 {
        let parts = self.problem.parts(problem).into_iter().map(|part| self.steps(part));
        self.problem.steps(problem) + parts.sum::<u64>()
    }
}

impl<P: Problem> Workload for SpawnTree<P> {
    fn main(&self) -> Box<dyn Activity> {
        let tasks = Some(vec![self.task(self.problem.whole())]);
        Box::new(Batch { compute_ns: None, tasks, end: |cx: &TaskContext<'_>| cx.sum() })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let problem = u64::from_le_bytes((*body.few).try_into().ok()?);
        if self.is_lazy {
            return Some(Box::new(Division::new(*self, problem)));
        }
        let (own, parts) = (self.problem.steps(problem), self.problem.parts(problem));
        let compute_ns = Some((own as f64 * self.step_ns) as u64);
        let tasks = Some(parts.into_iter().map(|part| self.task(part)).collect());
        let end = move |cx: &TaskContext<'_>| own + cx.sum();
        Some(Box::new(Batch { compute_ns, tasks, end }))
    }

    fn expected(&self) -> u64 {
        self.steps(self.problem.whole())
    }

    fn polls(&self) -> bool {
        self.is_lazy
    }
}

/// The Fibonacci number of `n`, divided while the number is above the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Fibonacci {
    /// Which number.
    pub n: u32,
    /// From this on it is computed in one task.
    pub threshold: u32,
}

impl Fibonacci {
    fn is_divided(self, n: u64) -> bool {
        n > u64::from(self.threshold.max(1))
    }
}

impl Problem for Fibonacci {
    fn whole(self) -> u64 {
        self.n.into()
    }

    fn parts(self, n: u64) -> Vec<u64> {
        if self.is_divided(n) { vec![n - 1, n - 2] } else { Vec::new() }
    }

    fn steps(self, n: u64) -> u64 {
        if self.is_divided(n) {
            return 1;
        }
        // The calls of the plain recursion: 2 F(n + 1) - 1.
        let (mut one, mut other) = (0_u64, 1_u64);
        for _ in 0..n {
            (one, other) = (other, one + other);
        }
        2 * other - 1
    }
}

/// Queens on a board, divided by rows as far as the threshold. The number of a problem has the row
/// in its upper 16 bits, and the columns of the queens above it, four bits each, the last first.
#[derive(Clone, Copy, Debug)]
pub struct Queens {
    size: u32,
    threshold: u32,
}

/// The bits of the columns: twelve rows at most are divided.
const PLACED_BITS: u32 = 48;

impl Queens {
    /// The board has this many rows and columns, at most 16. So many rows are divided, at most 12.
    pub fn new(size: u32, threshold: u32) -> Self {
        Queens { size, threshold: threshold.min(size).min(12) }
    }

    fn free(self, attacked: [u32; 3]) -> u32 {
        !(attacked[0] | attacked[1] | attacked[2]) & ((1 << self.size) - 1)
    }

    /// The boards below this one with the given attacks, this one included.
    fn count(self, row: u32, attacked: [u32; 3]) -> u64 {
        let (mut free, mut boards) = (self.free(attacked), 1);
        while row < self.size && free != 0 {
            let queen = free & free.wrapping_neg();
            free ^= queen;
            boards += self.count(row + 1, attack(attacked, queen));
        }
        boards
    }
}

/// The row of a board, and its attacked squares: along columns and both diagonals, a bit each.
fn row(board: u64) -> (u32, [u32; 3]) {
    let (row, placed) = ((board >> PLACED_BITS) as u32, board & ((1 << PLACED_BITS) - 1));
    let queens = (0..row).map(|above| 1 << (placed >> (4 * (row - 1 - above)) & 15));
    (row, queens.fold([0; 3], attack))
}

/// The attacked squares of the next row, with this queen in the row.
fn attack([columns, falling, rising]: [u32; 3], queen: u32) -> [u32; 3] {
    [columns | queen, (falling | queen) << 1, (rising | queen) >> 1]
}

impl Problem for Queens {
    fn whole(self) -> u64 {
        0
    }

    fn parts(self, board: u64) -> Vec<u64> {
        let (row, attacked) = row(board);
        if row >= self.threshold {
            return Vec::new();
        }
        let free = self.free(attacked);
        let columns = (0..u64::from(self.size)).filter(|column| free >> column & 1 == 1);
        let placed = board << 4 & ((1 << PLACED_BITS) - 1);
        columns.map(|column| u64::from(row + 1) << PLACED_BITS | placed | column).collect()
    }

    fn steps(self, board: u64) -> u64 {
        let (row, attacked) = row(board);
        if row >= self.threshold { self.count(row, attacked) } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<P: Problem>(problem: P, part: u64) -> usize {
        1 + problem.parts(part).into_iter().map(|part| all(problem, part)).sum::<usize>()
    }

    #[test]
    fn queens_14_has_the_papers_tasks() {
        // HdpH-RS, table 6.5: 65,234 tasks beside the whole.
        assert_eq!(all(Queens::new(14, 5), 0), 65_235);
    }

    #[test]
    fn the_steps_of_a_problem_do_not_depend_on_the_threshold() {
        fn steps<P: Problem>(problem: P) -> u64 {
            SpawnTree { problem, step_ns: 1.0, is_supervised: false, is_lazy: false }.expected()
        }
        let [one, other] = [3, 5].map(|threshold| steps(Queens::new(9, threshold)));
        assert_eq!(one, other);
        let fibonacci = |threshold| steps(Fibonacci { n: 20, threshold });
        assert_eq!(fibonacci(5), fibonacci(10));
        assert_eq!(fibonacci(20), 21_891);
    }

    #[test]
    fn twelve_rows_fit_into_the_number_of_a_board() {
        assert_eq!(all(Queens::new(8, 8), 0), 2_057);
        assert_eq!(all(Queens::new(12, 12), 0), 856_189);
    }
}
