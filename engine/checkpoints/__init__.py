"""What is source, how it is captured, and what the captures of a workspace add up to."""
