//! The program of [`ultramarine_examples::programs::k_medoids`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::k_medoids::main()
}
