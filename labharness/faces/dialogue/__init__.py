"""What an agent is offered of a lab, whatever protocol it speaks."""
