"""Features that everybody computes alike: fixed by public rows and a public seed, the same in numpy and as a graph."""
