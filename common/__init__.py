"""What there is, said once: all parts of the stack read it, and it does nothing by itself.

The standard library only: the gateway and the bootstrap have nothing else.
"""
