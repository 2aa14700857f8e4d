//! The program of [`ultramarine_examples::programs::liouville`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::liouville::main()
}
