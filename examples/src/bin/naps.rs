//! The program of [`ultramarine_examples::programs::naps`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::naps::main()
}
