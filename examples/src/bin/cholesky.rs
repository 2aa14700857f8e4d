//! The program of [`ultramarine_examples::programs::cholesky`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::cholesky::main()
}
