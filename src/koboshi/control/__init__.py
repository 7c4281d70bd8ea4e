"""What an operator can ask and do, served alike to the command line, the socket and the page."""
