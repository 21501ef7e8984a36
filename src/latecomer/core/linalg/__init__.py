"""Dense linear algebra for kernels: products, norms, factorisations."""
