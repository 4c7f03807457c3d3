"""The effect of another policy: in open loop over the recorded past, and in closed loop with its effect fed
back.
"""
