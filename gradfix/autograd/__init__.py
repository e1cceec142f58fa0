"""The static model of autograd: syntax trees in, what a training step does to gradients out."""
