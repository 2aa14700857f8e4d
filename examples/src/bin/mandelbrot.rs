//! The program of [`ultramarine_examples::programs::mandelbrot`].

fn main() -> ultramarine::Result<()> {
    ultramarine_examples::programs::mandelbrot::main()
}
