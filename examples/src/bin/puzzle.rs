//! The program of [`ultramarine_examples::programs::puzzle`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::puzzle::main()
}
