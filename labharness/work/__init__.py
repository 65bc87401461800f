"""What is asked of a lab, from admission to the answer."""
