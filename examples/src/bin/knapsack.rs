//! The program of [`ultramarine_examples::programs::knapsack`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::knapsack::main()
}
