//! Trees of tasks that spawn tasks: each problem that is not small is a task that spawns one for
//! each of its parts, and awaits them. Fibonacci numbers and queens (`HdpH-RS` §6.5).

use super::{Activity, Batch, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::Distance;

/// A problem in eight bytes.
pub trait Problem: Copy + Send + Sync + 'static {
    /// The problem as a number, and back.
    fn to_word(self) -> u64;
    /// The problem of this number.
    fn of_word(word: u64) -> Self;
    /// Its parts; none if it is solved as it is.
    fn parts(self) -> Vec<Self>;
    /// The steps that its solution takes, without its parts.
    fn steps(self) -> u64;
}

/// See the [module](self). The value of each task is the number of steps that it and the tasks
/// below it take.
#[derive(Clone, Copy, Debug)]
pub struct SpawnTree<P> {
    /// The whole problem.
    pub whole: P,
    /// What a step costs, in nanoseconds.
    pub step_ns: f64,
    /// Whether its tasks are supervised.
    pub is_supervised: bool,
}

impl<P: Problem> SpawnTree<P> {
    fn task(&self, problem: P) -> (Bytes, SpawnMode) {
        let place = SpawnPlace::Within(Distance::ONE);
        let body = problem.to_word().to_le_bytes().to_vec();
        (body.into(), SpawnMode { is_supervised: self.is_supervised, place })
    }
}

impl<P: Problem> Workload for SpawnTree<P> {
    fn main(&self) -> Box<dyn Activity> {
        let tasks = Some(vec![self.task(self.whole)]);
        Box::new(Batch { tasks, end: |cx: &TaskContext<'_>| cx.sum() })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        let problem = P::of_word(u64::from_le_bytes((*body.few).try_into().ok()?));
        let (own, parts) = (problem.steps(), Some(problem.parts()));
        Some(Box::new(TreeTask { tree: *self, own, parts, is_computed: false }))
    }

    fn expected(&self) -> u64 {
        steps(self.whole)
    }
}

/// The steps of a problem and all below it.
fn steps<P: Problem>(problem: P) -> u64 {
    problem.steps() + problem.parts().into_iter().map(steps).sum::<u64>()
}

struct TreeTask<P> {
    tree: SpawnTree<P>,
    /// The steps of this task alone.
    own: u64,
    parts: Option<Vec<P>>,
    is_computed: bool,
}

impl<P: Problem> Activity for TreeTask<P> {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        if !std::mem::replace(&mut self.is_computed, true) {
            return Step::Compute((self.own as f64 * self.tree.step_ns) as u64);
        }
        if let Some(parts) = self.parts.take() {
            for part in parts {
                let (body, mode) = self.tree.task(part);
                cx.spawn(body, mode);
            }
            return Step::Await;
        }
        Step::End(self.own + cx.sum(), None)
    }
}

/// The Fibonacci number of `n`, divided while `n` is above the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Fibonacci {
    /// Which number.
    pub n: u32,
    /// From this on it is computed in one task.
    pub threshold: u32,
}

impl Problem for Fibonacci {
    fn to_word(self) -> u64 {
        u64::from(self.n) << 32 | u64::from(self.threshold)
    }

    fn of_word(word: u64) -> Self {
        Fibonacci { n: (word >> 32) as u32, threshold: word as u32 }
    }

    fn parts(self) -> Vec<Self> {
        let part = |less: u32| Fibonacci { n: self.n - less, ..self };
        if self.n <= self.threshold.max(1) { Vec::new() } else { vec![part(1), part(2)] }
    }

    fn steps(self) -> u64 {
        if self.n > self.threshold.max(1) {
            return 1;
        }
        // The calls of the plain recursion: 2 F(n + 1) - 1.
        let (mut one, mut other) = (0_u64, 1_u64);
        for _ in 0..self.n {
            (one, other) = (other, one + other);
        }
        2 * other - 1
    }
}

/// Queens on a board, divided by rows as far as the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Queens {
    /// The number of rows and columns, at most 16.
    pub size: u32,
    /// The number of rows that are divided.
    pub threshold: u32,
    /// The columns of the queens in the first rows, four bits each, the last first.
    placed: u64,
    row: u32,
}

impl Queens {
    /// The empty board.
    pub fn empty(size: u32, threshold: u32) -> Self {
        Queens { size, threshold: threshold.min(size).min(12), placed: 0, row: 0 }
    }

    /// The attacked squares of the next row: along columns and both diagonals.
    fn attacked(self) -> [u32; 3] {
        let mut attacked = [0; 3];
        for row in 0..self.row {
            let queen = 1_u32 << (self.placed >> (4 * (self.row - 1 - row)) & 15);
            attacked = attack(attacked, queen);
        }
        attacked
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

fn attack([columns, falling, rising]: [u32; 3], queen: u32) -> [u32; 3] {
    [columns | queen, (falling | queen) << 1, (rising | queen) >> 1]
}

impl Problem for Queens {
    fn to_word(self) -> u64 {
        // Twelve rows at most are in the word.
        self.placed
            | u64::from(self.row) << 48
            | u64::from(self.threshold) << 52
            | u64::from(self.size) << 58
    }

    fn of_word(word: u64) -> Self {
        Queens {
            placed: word & ((1 << 48) - 1),
            row: (word >> 48 & 15) as u32,
            threshold: (word >> 52 & 63) as u32,
            size: (word >> 58) as u32,
        }
    }

    fn parts(self) -> Vec<Self> {
        if self.row >= self.threshold {
            return Vec::new();
        }
        let free = self.free(self.attacked());
        let columns = (0..self.size).filter(|column| free >> column & 1 == 1);
        let part = |column| Queens {
            placed: self.placed << 4 | u64::from(column),
            row: self.row + 1,
            ..self
        };
        columns.map(part).collect()
    }

    fn steps(self) -> u64 {
        if self.row >= self.threshold { self.count(self.row, self.attacked()) } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<P: Problem>(problem: P) -> usize {
        1 + problem.parts().into_iter().map(all).sum::<usize>()
    }

    #[test]
    fn queens_14_has_the_papers_tasks() {
        // HdpH-RS, table 6.5: 65,234 tasks beside the whole.
        assert_eq!(all(Queens::empty(14, 5)), 65_235);
    }

    #[test]
    fn the_steps_of_a_problem_do_not_depend_on_the_threshold() {
        let [one, other] = [3, 5].map(|threshold| steps(Queens::empty(9, threshold)));
        assert_eq!(one, other);
        let fibonacci = |threshold| steps(Fibonacci { n: 20, threshold });
        assert_eq!(fibonacci(5), fibonacci(10));
        assert_eq!(fibonacci(20), 21_891);
    }

    #[test]
    fn problems_survive_their_words() {
        let board = Queens::empty(14, 5).parts()[3].parts()[2];
        assert_eq!(format!("{board:?}"), format!("{:?}", Queens::of_word(board.to_word())));
    }
}
