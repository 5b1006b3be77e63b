"""What is asked and what is answered: problems, grids, results, checks and errors."""
