//! The program of [`ultramarine_examples::programs::steal_picture`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::steal_picture::main()
}
