//! The program of [`ultramarine_examples::programs::maxclique`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::maxclique::main()
}
