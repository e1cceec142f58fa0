"""horovod: a world of one process."""
