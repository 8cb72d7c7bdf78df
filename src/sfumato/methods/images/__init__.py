"""The images of MaxEntropy: statistics, model, and a teacher for training."""
