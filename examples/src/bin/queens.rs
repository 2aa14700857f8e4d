//! The program of [`ultramarine_examples::programs::queens`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::queens::main()
}
