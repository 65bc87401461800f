"""The tools that an agent has at a lab, whatever protocol it speaks."""
