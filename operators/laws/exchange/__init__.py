"""Judge an exchange: a function from the vectors of m workers to their mean."""
