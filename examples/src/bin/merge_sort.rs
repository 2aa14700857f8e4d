//! The program of [`ultramarine_examples::programs::merge_sort`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::merge_sort::main()
}
