"""What another policy would have done: in open loop over what was, and in closed loop with its effect fed
back.
"""
