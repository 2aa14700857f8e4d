//! The program of [`ultramarine_examples::programs::orbit`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::orbit::main()
}
