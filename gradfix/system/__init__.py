"""What gradfix asks of the operating system: files, processes, the terminal."""
