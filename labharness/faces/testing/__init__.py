"""Test kit for authors of drivers and capabilities: a pytest plugin, and the parts of its fixtures.

``plugin`` defines the fixtures, ``conformance`` checks a driver, and ``pairs`` puts a driver and a
simulator on one wire. Nothing is imported here: pytest loads the plugin at every start, also for
tests without a lab.
"""
