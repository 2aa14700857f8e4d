//! The program of [`ultramarine_examples::programs::pi`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::pi::main()
}
