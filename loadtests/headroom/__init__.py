"""Whether anything that is asked of the stack brings a part near its memory limit, or down."""
