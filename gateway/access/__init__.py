"""Who is heard: admission, pairing, the one door, and what people are told who stay outside."""
