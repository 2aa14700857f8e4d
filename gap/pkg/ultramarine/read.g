ReadPackage("ultramarine", "lib/values.g");
ReadPackage("ultramarine", "lib/worker.g");
