"""What every room stands on: time and chance, and the nouns."""
