//! The program of [`ultramarine_examples::programs::karatsuba`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::karatsuba::main()
}
