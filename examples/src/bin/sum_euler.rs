//! The program of [`ultramarine_examples::programs::sum_euler`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::sum_euler::main()
}
