"""What a study will take, before anything starts: runs, optimizer steps, hours, memory, disk.

Every number is one that can be known beforehand, or says where it was taken from; what is not known is said to be so.
"""
