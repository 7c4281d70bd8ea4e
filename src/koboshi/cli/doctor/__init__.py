"""`koboshi doctor`: is this machine right for a gateway?"""
