//! The program of [`ultramarine_examples::programs::task_bench`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::task_bench::main()
}
