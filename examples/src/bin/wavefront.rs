//! The program of [`ultramarine_examples::programs::wavefront`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::wavefront::main()
}
