//! The program of [`ultramarine_examples::programs::sweep`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::sweep::main()
}
