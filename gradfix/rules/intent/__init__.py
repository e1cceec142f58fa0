"""What training code means: which optimizer each loss is for, and which parameters. No name decides it."""
