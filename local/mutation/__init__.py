"""`make mutants`: changes the code in small ways, and checks that its tests notice."""
