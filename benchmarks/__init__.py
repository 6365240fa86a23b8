"""What a durable save costs: the same work for lousho and for bare loops, measured side by side.

Not part of the package. Only ratios within one run mean anything: disks and machines differ, and change.
"""
