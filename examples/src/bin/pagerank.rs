//! The program of [`ultramarine_examples::programs::pagerank`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::pagerank::main()
}
