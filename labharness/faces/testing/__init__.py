"""What driver and capability authors test with: a pytest plugin, and what its fixtures are made of.

``plugin`` gives the fixtures, ``conformance`` holds a driver to what the house asks of one, and
``pairs`` puts a driver and a simulator on one wire. Nothing is imported here: pytest loads the
plugin at its start, whether or not a test needs a laboratory.
"""
