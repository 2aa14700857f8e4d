//! The program of [`ultramarine_examples::programs::quadrature`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::quadrature::main()
}
