"""Plans from theory: the problem, the run, the choices and their ranking."""
