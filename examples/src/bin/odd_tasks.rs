//! The program of [`ultramarine_examples::programs::odd_tasks`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::odd_tasks::main()
}
