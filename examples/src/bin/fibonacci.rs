//! The program of [`ultramarine_examples::programs::fibonacci`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::fibonacci::main()
}
