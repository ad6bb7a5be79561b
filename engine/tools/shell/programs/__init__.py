"""What each known program does with the words it is given."""
