//! The program of [`ultramarine_examples::programs::uts`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::uts::main()
}
