//! The program of [`ultramarine_examples::programs::stencil`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::stencil::main()
}
