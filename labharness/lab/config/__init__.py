"""What a lab's files say: read strictly and checked against each other."""
