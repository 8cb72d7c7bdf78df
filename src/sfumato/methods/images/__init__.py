"""The images of ConditionalGaussian: statistics, model, and a teacher for training."""
