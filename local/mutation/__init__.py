"""Mutation of the code that must not be wrong: `make mutants`. Do its tests see a small change?"""
