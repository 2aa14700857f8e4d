//! The program of [`ultramarine_examples::programs::conjugate_gradient`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::conjugate_gradient::main()
}
