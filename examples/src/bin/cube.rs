//! The program of [`ultramarine_examples::programs::cube`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::cube::main()
}
