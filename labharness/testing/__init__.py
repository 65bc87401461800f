"""What driver and capability authors test with. Nothing is built here yet."""
