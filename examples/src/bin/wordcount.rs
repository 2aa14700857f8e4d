//! The program of [`ultramarine_examples::programs::wordcount`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::wordcount::main()
}
