"""The plans for Apache JMeter, with which the source was measured."""
