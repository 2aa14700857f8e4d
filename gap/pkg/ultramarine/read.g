ReadPackage("ultramarine", "lib/values.g");
ReadPackage("ultramarine", "lib/worker.g");
ReadPackage("ultramarine", "lib/link.g");
ReadPackage("ultramarine", "lib/functions.g");
ReadPackage("ultramarine", "lib/coordinate.g");
ReadPackage("ultramarine", "lib/images.g");
